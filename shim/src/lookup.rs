//! What a program gets that looks up a CUDA or NVML name: NULL where the real library has no such name (with the error
//! libc made of it), our function where we have one to offer, else the real one.
//!
//! Handing out a name the driver lacks misleads clients that probe for it; a name newer than our table is the driver's own.
//!
//! Next: `real.rs`, the driver behind us.

use core::ffi::{CStr, c_char, c_void};
use core::ptr::null_mut;

use driver::table::{self, SymbolId};

use crate::dl::Answer;
use crate::{exports, real, scope, twin};

/// Looks a name up in a handle the way the caller asked: `dlsym`, or `dlvsym` with the caller's version.
pub type Find<'a> = &'a dyn Fn(*mut c_void, &CStr) -> *mut c_void;

/// Decides about one lookup.
///
/// # Safety
/// `name` is null or a C string; `handle` is what a caller may pass to `dlsym`.
pub unsafe fn answer(handle: *mut c_void, name: *const c_char, find: Find<'_>) -> Answer {
    if name.is_null() || handle == libc::RTLD_NEXT || handle == libc::RTLD_DEFAULT {
        return Answer::PASS;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    match name.to_bytes() {
        [b'c', b'u', third, ..] if third.is_ascii_uppercase() => Answer::is(cuda(handle, name, find)),
        [b'n', b'v', b'm', b'l', ..] => twin::answer(handle, name, find),
        _ => Answer::PASS,
    }
}

fn cuda(handle: *mut c_void, name: &CStr, find: Find<'_>) -> *mut c_void {
    // Before the lookup proper: whatever the loading of the driver leaves behind, libc's last word is about `name`.
    let driver = real::driver();
    let ours = scope::own().is_some_and(|own| core::ptr::eq(own, handle.cast()));
    let theirs = match (ours, driver) {
        (false, _) => find(handle, name),
        (true, Some(_)) => find(real::handle(), name),
        (true, None) => find(real::libc_handle(), name),
    };
    if theirs.is_null() {
        return null_mut();
    }
    let symbol = name.to_str().ok().and_then(table::by_name);
    symbol
        .and_then(|symbol| exports::hook(symbol).filter(|_| is_drivers(theirs, symbol)))
        .unwrap_or(theirs)
}

/// Whether `address` is a function of a CUDA driver, by whatever path that was opened: of the one behind us or, to close the
/// way around us, of another file of that name. A library of somebody else's that defines the name keeps it.
fn is_drivers(address: *mut c_void, symbol: SymbolId) -> bool {
    if real::driver().is_some_and(|driver| driver.address(symbol) == address) {
        return true;
    }
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr fills the struct when it returns nonzero; its name is then a C string that lives as long as the object.
    unsafe {
        if libc::dladdr(address, info.as_mut_ptr()) == 0 {
            return false;
        }
        let file = info.assume_init().dli_fname;
        if file.is_null() {
            return false;
        }
        let path = CStr::from_ptr(file).to_bytes();
        let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        file.starts_with(b"libcuda.so")
    }
}
