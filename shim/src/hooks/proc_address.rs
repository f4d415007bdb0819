//! `cuGetProcAddress`: the real driver answers first, so that unknown and newer names, statuses and errors are its own. Where
//! it answered with a function we hook, the answer becomes our export of that very function.
//!
//! Next: `names.rs`, which function that is.

use core::ffi::{CStr, c_char, c_int, c_void};

use driver::StreamApi;
use driver::abi::{CUdriverProcAddressQueryResult, cuuint64_t};

use crate::guard::{Call, Otherwise, Verdict};
use crate::{exports, names};

/// `CU_GET_PROC_ADDRESS_LEGACY_STREAM` and `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const LEGACY: cuuint64_t = 1;
const PER_THREAD: cuuint64_t = 2;

pub unsafe fn get(
    call: &Call<'_>,
    name: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: cuuint64_t,
    _status: *mut CUdriverProcAddressQueryResult,
) -> Verdict {
    // SAFETY: the program passed these arguments to the driver, which uses them in the same way.
    unsafe { get_v1(call, name, function, version, flags) }
}

pub unsafe fn get_v1(
    call: &Call<'_>,
    name: *const c_char,
    function: *mut *mut c_void,
    version: c_int,
    flags: cuuint64_t,
) -> Verdict {
    if name.is_null() || function.is_null() {
        return Err(Otherwise::Forward);
    }
    call.pass()?;
    // Without a flag it is the default stream of whoever asks: a program compiled for per-thread ones asks by another symbol.
    let per_thread =
        flags & PER_THREAD != 0 || (flags & LEGACY == 0 && call.stream_api == StreamApi::PerThread);
    let api = if per_thread {
        StreamApi::PerThread
    } else {
        StreamApi::Legacy
    };
    // SAFETY: the driver just read the name and wrote the address.
    let (name, found) = unsafe { (CStr::from_ptr(name), *function) };
    let symbol = name
        .to_str()
        .ok()
        .and_then(|name| names::answered(call.driver, name, version, api, found));
    if let Some(ours) = symbol.and_then(exports::hook) {
        // SAFETY: as above.
        unsafe { *function = ours };
    }
    Ok(())
}
