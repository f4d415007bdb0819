//! The one place that reads environment variables on behalf of a shim: never under `AT_SECURE`, never
//! through std's lock, which a C `setenv` does not take.

use std::ffi::{CStr, OsString, c_char};
use std::os::unix::ffi::OsStringExt;

unsafe extern "C" {
    /// glibc ≥ 2.17: getenv that answers null in a set-user-id program.
    fn secure_getenv(name: *const c_char) -> *const c_char;
}

/// The variable's value; `None` if it is unset or the program runs with raised privileges.
pub fn variable(name: &CStr) -> Option<OsString> {
    // SAFETY: `name` is a C string; the value is copied before anything else runs on this thread.
    unsafe {
        let value = secure_getenv(name.as_ptr());
        if value.is_null() {
            return None;
        }
        Some(OsString::from_vec(CStr::from_ptr(value).to_bytes().to_vec()))
    }
}
