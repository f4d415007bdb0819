//! `cudaDeviceProp`: three layouts, each what its release's header declares, filled from one list.

use super::lookup::{DRIVER, ready};
use super::release::Release;
use driver::prelude::*;

/// A layout of the struct.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layout {
    /// What `cudaGetDeviceProperties` of release 12 fills, for programs built with 11.
    Eleven,
    Twelve,
    Thirteen,
}

impl Layout {
    /// Bytes of the struct.
    pub(super) fn size(self) -> usize {
        match self {
            Layout::Eleven => 728,
            Layout::Twelve => 1032,
            Layout::Thirteen => 1008,
        }
    }
}

/// Which layouts have a member.
#[derive(Clone, Copy)]
enum In {
    All,
    /// Gone in 13.
    Old,
    /// Since 12.
    New,
    /// Since 13.
    Thirteen,
}

/// Members in the order of the struct: numbers of the device attributes they hold.
enum Member {
    Ints(In, &'static [c_uint]),
    /// A `size_t`.
    Size(c_uint),
}
use In::{All, New, Old};
use Member::{Ints, Size};

/// All members from `sharedMemPerBlock` on.
const MEMBERS: &[Member] = &[
    Size(8),
    Ints(All, &[12, 10]),
    Size(11),
    Ints(All, &[1, 2, 3, 4, 5, 6, 7]),
    Ints(Old, &[13]),
    Size(9),
    Ints(All, &[75, 76]),
    Size(14),
    Size(51),
    Ints(Old, &[15]),
    Ints(All, &[16]),
    Ints(Old, &[17]),
    Ints(All, &[18, 19]),
    Ints(Old, &[20]),
    Ints(All, &[21, 77]),
    Ints(Old, &[69]),
    Ints(
        All,
        &[
            22, 23, 73, 74, 70, 71, 72, 45, 46, 24, 25, 26, 47, 48, 49, 52, 42, 43, 27, 28, 29, 53, 54,
        ],
    ),
    Ints(All, &[55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68]),
    Size(30),
    Ints(All, &[31, 32, 33, 34, 50, 35, 40, 41]),
    Ints(Old, &[36]),
    Ints(All, &[37, 38, 108, 39, 78, 79, 80]),
    Size(81),
    Ints(All, &[82, 83, 84, 85, 86]),
    Ints(Old, &[87]),
    Ints(All, &[88, 89, 90, 91, 95]),
    Ints(Old, &[96]),
    Size(97),
    Ints(All, &[100, 101, 106, 109]),
    Size(111),
    Ints(
        New,
        &[99, 112, 113, 114, 115, 116, 117, 118, 119, 121, 122, 120, 129],
    ),
    Ints(In::Thirteen, &[130, 131, 133, 134, 139, 140, 143]),
];

/// Where the members of [`MEMBERS`] begin, after name, UUID, LUID, node mask and total memory.
const FIRST: usize = 296;
const UUID_AT: usize = 256;
const TOTAL_AT: usize = 288;

impl In {
    fn has(self, layout: Layout) -> bool {
        match self {
            In::All => true,
            In::Old => layout != Layout::Thirteen,
            In::New => layout != Layout::Eleven,
            In::Thirteen => layout == Layout::Thirteen,
        }
    }
}

/// The members of `layout` as (offset, is a `size_t`, attribute).
pub(super) fn members(layout: Layout) -> Vec<(usize, bool, c_uint)> {
    let mut at = FIRST;
    let mut list = Vec::new();
    for member in MEMBERS {
        match *member {
            Ints(which, attributes) if which.has(layout) => {
                for &attribute in attributes {
                    list.push((at, false, attribute));
                    at += size_of::<c_int>();
                }
            }
            Ints(..) => {}
            Size(attribute) => {
                at = at.next_multiple_of(size_of::<usize>());
                list.push((at, true, attribute));
                at += size_of::<usize>();
            }
        }
    }
    list
}

pub unsafe fn current(to: *mut u8, device: c_int) -> CuResult {
    let layout = match Release::own() {
        Release::Twelve => Layout::Eleven,
        Release::Thirteen => Layout::Thirteen,
    };
    // SAFETY: the caller's struct, as its header lays it out.
    unsafe { fill(to, device, layout) }
}

/// Only release 12 exports it.
pub unsafe fn second(to: *mut u8, device: c_int) -> CuResult {
    // SAFETY: as above.
    unsafe { fill(to, device, Layout::Twelve) }
}

/// # Safety
/// `to` is null or valid for `layout.size()` bytes.
unsafe fn fill(to: *mut u8, device: c_int, layout: Layout) -> CuResult {
    ready()?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    let (mut uuid, mut total) = (CUuuid::default(), 0usize);
    // SAFETY: locals, then places within the struct, whose size the layout says.
    unsafe {
        DRIVER.cuDeviceTotalMem_v2(StreamApi::Legacy, &mut total, device)?;
        DRIVER.cuDeviceGetUuid(StreamApi::Legacy, &mut uuid, device)?;
        to.write_bytes(0, layout.size());
        DRIVER.cuDeviceGetName(StreamApi::Legacy, to.cast(), UUID_AT as c_int, device)?;
        to.add(UUID_AT).cast::<CUuuid>().write_unaligned(uuid);
        to.add(TOTAL_AT).cast::<usize>().write_unaligned(total);
    }
    for (at, is_size, attribute) in members(layout) {
        let mut value = 0;
        // SAFETY: a local. An attribute that the driver does not know stays 0.
        let _ = unsafe { DRIVER.cuDeviceGetAttribute(StreamApi::Legacy, &mut value, attribute, device) };
        // SAFETY: within the struct; see `every_member_lies_where_the_headers_have_it`.
        unsafe {
            match is_size {
                true => to
                    .add(at)
                    .cast::<usize>()
                    .write_unaligned(value as c_uint as usize),
                false => to.add(at).cast::<c_int>().write_unaligned(value),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets of some members, as offsetof says with the headers of 11.8, 12.9 and 13.5.
    #[test]
    fn every_member_lies_where_the_headers_have_it() {
        const MULTIPROCESSORS: c_uint = 16;
        const MAJOR: c_uint = 75;
        const RESERVED_SHARED: c_uint = 111;
        const UNIFIED_FUNCTIONS: c_uint = 129;
        const LAST_OF_13: c_uint = 143;
        let at = |layout, attribute| {
            members(layout)
                .iter()
                .find(|member| member.2 == attribute)
                .map(|member| member.0)
        };
        for layout in [Layout::Eleven, Layout::Twelve] {
            assert_eq!(at(layout, MAJOR), Some(OFFSETS_12[0]));
            assert_eq!(at(layout, MULTIPROCESSORS), Some(OFFSETS_12[1]));
            assert_eq!(at(layout, RESERVED_SHARED), Some(OFFSETS_12[2]));
        }
        assert_eq!(at(Layout::Eleven, UNIFIED_FUNCTIONS), None);
        assert_eq!(at(Layout::Twelve, UNIFIED_FUNCTIONS), Some(OFFSETS_12[3]));
        assert_eq!(at(Layout::Thirteen, MAJOR), Some(OFFSETS_13[0]));
        assert_eq!(at(Layout::Thirteen, MULTIPROCESSORS), Some(OFFSETS_13[1]));
        assert_eq!(at(Layout::Thirteen, RESERVED_SHARED), Some(OFFSETS_13[2]));
        assert_eq!(at(Layout::Thirteen, LAST_OF_13), Some(OFFSETS_13[3]));
    }

    const OFFSETS_12: [usize; 4] = [360, 388, 720, 776];
    const OFFSETS_13: [usize; 4] = [360, 384, 696, 780];
}
