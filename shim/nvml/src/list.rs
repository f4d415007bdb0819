//! Lists as NVML returns them: the caller says how many it has room for and is told how many there are.

use driver::nvml::{NvmlError, NvmlResult, c_uint};

/// Gives the caller `items`, as the real library would.
///
/// # Safety
/// `count` is valid; `to` is null or valid for `*count` items.
pub unsafe fn give<T: Copy>(count: *mut c_uint, to: *mut T, items: &[T]) -> NvmlResult {
    // SAFETY: as the caller says.
    let room = unsafe { count.replace(items.len() as c_uint) } as usize;
    if room < items.len() {
        return Err(NvmlError::INSUFFICIENT_SIZE);
    }
    if to.is_null() {
        return if items.is_empty() {
            Ok(())
        } else {
            Err(NvmlError::INVALID_ARGUMENT)
        };
    }
    // SAFETY: there is room for `items`.
    unsafe { to.copy_from_nonoverlapping(items.as_ptr(), items.len()) };
    Ok(())
}

/// Processes that come between two questions.
const MORE: usize = 16;
/// How often a list may outgrow its room before its caller is told so.
const TRIES: usize = 4;

/// Everything `ask` has to give: it is asked for the number first.
pub fn all<T: Copy>(
    empty: T,
    mut ask: impl FnMut(&mut c_uint, *mut T) -> NvmlResult,
) -> Result<Vec<T>, NvmlError> {
    let mut count = 0;
    match ask(&mut count, core::ptr::null_mut()) {
        Ok(()) => return Ok(Vec::new()),
        Err(NvmlError::INSUFFICIENT_SIZE) => {}
        Err(error) => return Err(error),
    }
    for _ in 0..TRIES {
        let mut items = vec![empty; count as usize + MORE];
        count = items.len() as c_uint;
        match ask(&mut count, items.as_mut_ptr()) {
            Ok(()) => {
                items.truncate(count as usize);
                return Ok(items);
            }
            Err(NvmlError::INSUFFICIENT_SIZE) => {}
            Err(error) => return Err(error),
        }
    }
    Err(NvmlError::INSUFFICIENT_SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_too_little_room_is_told_how_much_there_is() {
        let (mut count, mut room) = (1, [0u32; 1]);
        // SAFETY: room for one.
        let short = unsafe { give(&mut count, room.as_mut_ptr(), &[7, 8]) };
        assert_eq!((short, count, room[0]), (Err(NvmlError::INSUFFICIENT_SIZE), 2, 0));
        let (mut count, mut room) = (3, [0u32; 3]);
        // SAFETY: room for three.
        let whole = unsafe { give(&mut count, room.as_mut_ptr(), &[7, 8]) };
        assert_eq!((whole, count, room), (Ok(()), 2, [7, 8, 0]));
        let mut none = 0;
        // SAFETY: nothing is written.
        let nothing = unsafe { give::<u32>(&mut none, core::ptr::null_mut(), &[]) };
        assert_eq!(nothing, Ok(()));
    }

    #[test]
    fn a_list_is_asked_for_again_while_it_grows() {
        let mut size = 2u32;
        let list = all(0u32, |count, to| {
            let room = core::mem::replace(count, size);
            size += 10;
            if room < *count {
                return Err(NvmlError::INSUFFICIENT_SIZE);
            }
            // SAFETY: `all` gave room for as many.
            unsafe { to.write_bytes(0xff, *count as usize) };
            Ok(())
        });
        assert_eq!(list.map(|list| list.len()), Ok(12));
        assert_eq!(
            all(0u32, |_, _| Err(NvmlError::NOT_SUPPORTED)),
            Err(NvmlError::NOT_SUPPORTED)
        );
    }
}
