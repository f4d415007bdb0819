//! The NVML twin: `libnvidia-ml.so.1` preloaded beside us. Only one library can export `dlsym`, so lookups of NVML names in
//! the real library's handle are answered here, by the twin's functions.
//!
//! Next: `real.rs`.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::dl::{self, Answer};
use crate::lookup::Find;
use crate::{real, scope};

const SONAME: &CStr = c"libnvidia-ml.so.1";

/// The real library's handle, opened when somebody first needs it through the twin's.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Answers a lookup of an NVML name; libc does where the twin is not loaded.
pub fn answer(handle: *mut c_void, name: &CStr, find: Find<'_>) -> Answer {
    let Some(twin) = handle_of_twin() else {
        return Answer::PASS;
    };
    let library = if handle == twin {
        real_library().unwrap_or(twin)
    } else {
        handle
    };
    // SAFETY: the twin's handle came from dlopen just now.
    let ours = unsafe { dl::find(twin, name) };
    // Last, so that the error libc keeps is about this lookup.
    let theirs = find(library, name);
    if theirs.is_null() || ours.is_null() {
        return Answer::is(theirs);
    }
    Answer::is(ours)
}

/// The loaded object of NVML's SONAME, if it is ours.
fn handle_of_twin() -> Option<*mut c_void> {
    // SAFETY: RTLD_NOLOAD only asks; the name is a C string.
    let handle = unsafe { libc::dlopen(SONAME.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: opened just now.
    let ours = unsafe { scope::of(handle) }.carries_our_note();
    // SAFETY: gives back the reference taken above; the program holds its own.
    unsafe { libc::dlclose(handle) };
    ours.then_some(handle)
}

fn real_library() -> Option<*mut c_void> {
    let known = REAL.load(Relaxed);
    if !known.is_null() {
        return Some(known);
    }
    let opened = real::open("libnvidia-ml.so.1")?;
    REAL.store(opened, Relaxed);
    Some(opened)
}
