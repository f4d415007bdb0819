//! Page-locked host memory. It is no part of the device's cap; what a tenant holds of it is shown.
//!
//! Next: `hooks/pool.rs`.

use driver::abi::{c_uint, c_void};
use ledger::slot::Class;

use crate::guard::{Call, Otherwise, Verdict};

pub unsafe fn alloc(call: &Call<'_>, pointer: *mut *mut c_void, bytes: usize) -> Verdict {
    // SAFETY: read only after the driver wrote it.
    note(call, bytes as u64, pointer.is_null(), || unsafe { *pointer }
        as u64)
}

pub unsafe fn alloc_v1(call: &Call<'_>, pointer: *mut *mut c_void, bytes: c_uint) -> Verdict {
    // SAFETY: read only after the driver wrote it.
    note(call, u64::from(bytes), pointer.is_null(), || unsafe { *pointer }
        as u64)
}

pub unsafe fn alloc_with_flags(
    call: &Call<'_>,
    pointer: *mut *mut c_void,
    bytes: usize,
    _flags: c_uint,
) -> Verdict {
    // SAFETY: read only after the driver wrote it.
    note(call, bytes as u64, pointer.is_null(), || unsafe { *pointer }
        as u64)
}

pub unsafe fn register(call: &Call<'_>, pointer: *mut c_void, bytes: usize, _flags: c_uint) -> Verdict {
    note(call, bytes as u64, pointer.is_null(), || pointer as u64)
}

pub unsafe fn free(call: &Call<'_>, pointer: *mut c_void) -> Verdict {
    forget(call, pointer as u64)
}

pub unsafe fn unregister(call: &Call<'_>, pointer: *mut c_void) -> Verdict {
    forget(call, pointer as u64)
}

/// Nothing is refused here, so nothing is reserved: the figures follow the driver.
fn note(call: &Call<'_>, bytes: u64, is_null: bool, pointer: impl FnOnce() -> u64) -> Verdict {
    if is_null || bytes == 0 {
        return Err(Otherwise::Forward);
    }
    let books = call.books()?;
    let here = books.here(call)?;
    call.pass()?;
    books.enter_host(pointer(), here, bytes);
    Ok(())
}

fn forget(call: &Call<'_>, pointer: u64) -> Verdict {
    let books = call.books_if_attached()?;
    let taken = books.live.lock().take(pointer).ok_or(Otherwise::Forward)?;
    if taken.class != Class::Host {
        // A device pointer given to the wrong function: the driver says so.
        books.live.lock().put_back(pointer, taken);
        return Err(Otherwise::Forward);
    }
    if let Err(error) = call.pass() {
        books.live.lock().put_back(pointer, taken);
        return Err(error.into());
    }
    books.settle(pointer, taken);
    Ok(())
}
