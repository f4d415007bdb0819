//! Address space: where the stand-in's memory appears in the process.

use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null_mut;

/// What the device hands out memory in.
pub const GRANULE: u64 = 2 << 20;

/// `bytes` rounded up to whole granules; `None` beyond u64.
pub fn granules(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(GRANULE)
}

fn map(at: *mut c_void, bytes: u64, protection: i32, flags: i32, fd: i32, offset: u64) -> Option<u64> {
    let bytes = usize::try_from(bytes).ok()?;
    let offset = i64::try_from(offset).ok()?;
    // SAFETY: either a fresh range of the kernel's choice or, with MAP_FIXED, one inside a reservation
    // of ours, as the callers below ensure.
    let address = unsafe { libc::mmap(at, bytes, protection, flags, fd, offset) };
    (address != libc::MAP_FAILED).then_some(address as u64)
}

/// Fresh private memory, zero, committed page by page as it is touched.
pub fn zeroed(bytes: u64) -> Option<u64> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    map(
        null_mut(),
        bytes,
        libc::PROT_READ | libc::PROT_WRITE,
        flags,
        -1,
        0,
    )
}

/// A range nobody else gets, not accessible. `align` is a power of two; `hint` 0 or where it should be.
pub fn reserve(bytes: u64, align: u64, hint: u64) -> Option<u64> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    if hint != 0 && hint.is_multiple_of(align) {
        let flags = flags | libc::MAP_FIXED_NOREPLACE;
        if let Some(address) = map(hint as *mut c_void, bytes, libc::PROT_NONE, flags, -1, 0) {
            if address == hint {
                return Some(address);
            }
            unmap(address, bytes);
        }
    }
    let page = 4096;
    let slack = if align > page { align } else { 0 };
    let address = map(
        null_mut(),
        bytes.checked_add(slack)?,
        libc::PROT_NONE,
        flags,
        -1,
        0,
    )?;
    let aligned = address.next_multiple_of(align.max(page));
    if aligned > address {
        unmap(address, aligned - address);
    }
    let end = aligned + bytes.next_multiple_of(page);
    let whole = address + (bytes + slack).next_multiple_of(page);
    if whole > end {
        unmap(end, whole - end);
    }
    Some(aligned)
}

/// Gives a range of ours back.
pub fn unmap(address: u64, bytes: u64) {
    // SAFETY: a range that `reserve` or `zeroed` made and nobody uses any more.
    unsafe { libc::munmap(address as *mut c_void, bytes as usize) };
}

/// Lets part of a file appear at `address` inside a reservation. Children do not inherit it.
pub fn show(address: u64, bytes: u64, file: BorrowedFd<'_>, offset: u64, writable: bool) -> bool {
    let protection = if writable {
        libc::PROT_READ | libc::PROT_WRITE
    } else {
        libc::PROT_NONE
    };
    let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE;
    let mapped = map(
        address as *mut c_void,
        bytes,
        protection,
        flags,
        file.as_raw_fd(),
        offset,
    )
    .is_some();
    // SAFETY: the range just mapped. A failure only lets children see the memory.
    mapped && unsafe { libc::madvise(address as *mut c_void, bytes as usize, libc::MADV_DONTFORK) } <= 0
}

/// Makes a range of a reservation unreachable again.
pub fn hide(address: u64, bytes: u64) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    map(address as *mut c_void, bytes, libc::PROT_NONE, flags, -1, 0).is_some()
}

/// Sets what the program may do with a range: nothing, read, or read and write.
pub fn protect(address: u64, bytes: u64, readable: bool, writable: bool) -> bool {
    let read = if readable { libc::PROT_READ } else { 0 };
    let write = if writable { libc::PROT_WRITE } else { 0 };
    // SAFETY: a mapped range inside a reservation of ours.
    unsafe { libc::mprotect(address as *mut c_void, bytes as usize, read | write) == 0 }
}

/// Makes whole pages of a shown file zero without touching them, in every process that shows them.
pub fn clear(address: u64, bytes: u64) -> bool {
    // SAFETY: a range of known device memory, which the caller is about to overwrite anyway.
    unsafe { libc::madvise(address as *mut c_void, bytes as usize, libc::MADV_REMOVE) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_are_aligned_and_leave_nothing_behind() {
        let a = reserve(GRANULE, GRANULE, 0).expect("address space");
        assert!(a.is_multiple_of(GRANULE));
        let b = reserve(GRANULE, GRANULE, a).expect("elsewhere");
        assert_ne!(a, b, "a hint that is taken is only a hint");
        unmap(a, GRANULE);
        let c = reserve(GRANULE, GRANULE, a).expect("address space");
        assert_eq!(a, c, "a free hint is honoured");
        unmap(b, GRANULE);
        unmap(c, GRANULE);
    }
}
