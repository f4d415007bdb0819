//! Which runtime this is: both are linked from one archive and told apart by the name they are loaded under.

use std::ffi::{CStr, c_char, c_void};
use std::sync::LazyLock;

/// A release of the runtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// `libcudart.so.12`, as of 12.9.
    Twelve,
    /// `libcudart.so.13`, as of 13.5.
    Thirteen,
}

static OWN: LazyLock<Release> = LazyLock::new(|| match own_soname() {
    Some(name) if name.ends_with(b".so.12") => Release::Twelve,
    // A program that holds this code itself, a test, is of the newest.
    _ => Release::Thirteen,
});

impl Release {
    /// The one this code was linked into.
    pub fn own() -> Release {
        *OWN
    }

    /// What `cudaRuntimeGetVersion` answers.
    pub fn version(self) -> i32 {
        match self {
            Release::Twelve => 12_090,
            Release::Thirteen => 13_050,
        }
    }

    /// The oldest driver it works with.
    pub fn least_driver(self) -> i32 {
        match self {
            Release::Twelve => 12_000,
            Release::Thirteen => 13_000,
        }
    }

    /// What it asks the driver for at its first call: `name version flags`, a line each.
    pub fn lookups(self) -> &'static str {
        match self {
            Release::Twelve => include_str!("../../symbols/cudart-12-lookups.txt"),
            Release::Thirteen => include_str!("../../symbols/cudart-13-lookups.txt"),
        }
    }
}

/// The loader's record of an object, as far as it is public.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const Dynamic,
}

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

const DT_STRTAB: i64 = 5;
const DT_SONAME: i64 = 14;
const RTLD_DL_LINKMAP: i32 = 2;

unsafe extern "C" {
    fn dladdr1(address: *const c_void, info: *mut libc::Dl_info, extra: *mut *mut c_void, flags: i32) -> i32;
}

/// `DT_SONAME` of the object that holds this code.
fn own_soname() -> Option<&'static [u8]> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let mut map: *mut c_void = std::ptr::null_mut();
    let here = own_soname as *const c_void;
    // SAFETY: both results are writable; the loader fills them or answers 0.
    if unsafe { dladdr1(here, info.as_mut_ptr(), &mut map, RTLD_DL_LINKMAP) } == 0 || map.is_null() {
        return None;
    }
    // SAFETY: the loader's record of an object that is loaded as long as this code is.
    let map = unsafe { &*map.cast::<LinkMap>() };
    let (mut strings, mut name) = (None, None);
    for i in 0.. {
        // SAFETY: the dynamic section of a loaded object ends with a zero tag.
        let entry = unsafe { &*map.dynamic.add(i) };
        match entry.tag {
            0 => break,
            DT_STRTAB => strings = Some(entry.value),
            DT_SONAME => name = Some(entry.value),
            _ => {}
        }
    }
    // Some loaders relocate addresses in the section, some do not.
    let strings = strings.map(|at| if at < map.base { at + map.base } else { at })?;
    // SAFETY: an offset into the object's string table.
    Some(unsafe { CStr::from_ptr((strings + name?) as *const c_char) }.to_bytes())
}
