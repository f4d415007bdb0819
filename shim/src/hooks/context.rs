//! Making and destroying contexts. Their cost is charged by what the node expects of the device; a destroyed context gives
//! back what it owned: linear, pitched, managed and page-locked memory, not physical memory and not pools.
//!
//! Next: `contexts.rs`, then `hooks/device.rs`.

use driver::abi::{
    CUcontext, CUctxCreateParams, CUdevResourceDesc, CUdevice, CUexecAffinityParam, CUgreenCtx, VdpDevice,
    VdpGetProcAddress, c_int, c_uint,
};
use ledger::slot::Class;

use crate::guard::{Call, Otherwise, Verdict};

pub unsafe fn create(call: &Call<'_>, context: *mut CUcontext, _flags: c_uint, device: CUdevice) -> Verdict {
    make(call, context, device)
}

pub unsafe fn create_v3(
    call: &Call<'_>,
    context: *mut CUcontext,
    _affinities: *mut CUexecAffinityParam,
    _count: c_int,
    _flags: c_uint,
    device: CUdevice,
) -> Verdict {
    make(call, context, device)
}

pub unsafe fn create_v4(
    call: &Call<'_>,
    context: *mut CUcontext,
    _parameters: *mut CUctxCreateParams,
    _flags: c_uint,
    device: CUdevice,
) -> Verdict {
    make(call, context, device)
}

pub unsafe fn create_vdpau(
    call: &Call<'_>,
    context: *mut CUcontext,
    _flags: c_uint,
    device: CUdevice,
    _vdpau: VdpDevice,
    _lookup: *mut VdpGetProcAddress,
) -> Verdict {
    make(call, context, device)
}

fn make(call: &Call<'_>, context: *mut CUcontext, device: CUdevice) -> Verdict {
    if context.is_null() {
        return Err(Otherwise::Forward);
    }
    let books = call.books()?;
    let account = books.of_device(call.driver, device)?;
    let cost = books.account(account).context_bytes();
    let reservation = books.reserve(call, account, cost, Class::Context)?;
    books.pass(call, account, cost)?;
    // SAFETY: the driver just wrote it.
    books.enter_context(unsafe { *context }, device, account, reservation);
    Ok(())
}

pub unsafe fn destroy(call: &Call<'_>, context: CUcontext) -> Verdict {
    let books = call.books_if_attached()?;
    let _still = books.recycler.stand_still();
    let known_until = books.contexts.lock().now();
    let live_until = books.live.lock().now();
    call.pass()?;
    books.leave_context(context, known_until, live_until);
    Ok(())
}

/// The oldest interface counts uses: of the current context, whose handle it returns.
pub unsafe fn attach(call: &Call<'_>, context: *mut CUcontext, _flags: c_uint) -> Verdict {
    if context.is_null() {
        return Err(Otherwise::Forward);
    }
    let books = call.books_if_attached()?;
    call.pass()?;
    // SAFETY: the driver just wrote it.
    books.contexts.lock().add_use(unsafe { *context });
    Ok(())
}

pub unsafe fn detach(call: &Call<'_>, context: CUcontext) -> Verdict {
    let books = call.books_if_attached()?;
    let _still = books.recycler.stand_still();
    let known_until = books.contexts.lock().now();
    let live_until = books.live.lock().now();
    call.pass()?;
    if books.contexts.lock().drop_use(context) {
        books.leave_context(context, known_until, live_until);
    }
    Ok(())
}

pub unsafe fn retain(call: &Call<'_>, context: *mut CUcontext, device: CUdevice) -> Verdict {
    if context.is_null() {
        return Err(Otherwise::Forward);
    }
    let books = call.books()?;
    let account = books.of_device(call.driver, device)?;
    books.join_primary(call, device, account)?;
    let result = books.pass(call, account, books.account(account).context_bytes());
    // SAFETY: read only if the driver wrote it.
    let handle = result.is_ok().then(|| unsafe { *context });
    books.joined_primary(device, account, handle, result.is_ok());
    Ok(result?)
}

pub unsafe fn release(call: &Call<'_>, device: CUdevice) -> Verdict {
    end(call, device, 1)
}

/// Ends the primary context whatever its count, which stays.
pub unsafe fn reset(call: &Call<'_>, device: CUdevice) -> Verdict {
    end(call, device, 0)
}

fn end(call: &Call<'_>, device: CUdevice, released: u32) -> Verdict {
    let books = call.books_if_attached()?;
    let _still = books.recycler.stand_still();
    let account = books.of_device(call.driver, device)?;
    let before = books.before_primary_ends(device);
    call.pass()?;
    books.primary_may_have_ended(call, device, account, before, released);
    Ok(())
}

/// A green context retains its device's primary context.
pub unsafe fn create_green(
    call: &Call<'_>,
    green: *mut CUgreenCtx,
    _resources: CUdevResourceDesc,
    device: CUdevice,
    _flags: c_uint,
) -> Verdict {
    if green.is_null() {
        return Err(Otherwise::Forward);
    }
    let books = call.books()?;
    let account = books.of_device(call.driver, device)?;
    books.join_primary(call, device, account)?;
    // Work of its streams no certificate sees once it is gone.
    books.recycler.forbid();
    let result = books.pass(call, account, books.account(account).context_bytes());
    if result.is_ok() {
        // SAFETY: the driver just wrote it.
        books
            .contexts
            .lock()
            .enter_green(unsafe { *green } as usize, device);
    }
    books.joined_primary(device, account, None, result.is_ok());
    Ok(result?)
}

pub unsafe fn destroy_green(call: &Call<'_>, green: CUgreenCtx) -> Verdict {
    let books = call.books_if_attached()?;
    let _still = books.recycler.stand_still();
    let device = books
        .contexts
        .lock()
        .device_of_green(green as usize)
        .ok_or(Otherwise::Forward)?;
    let account = books.of_device(call.driver, device)?;
    let before = books.before_primary_ends(device);
    call.pass()?;
    books.contexts.lock().forget_green(green as usize);
    books.primary_may_have_ended(call, device, account, before, 1);
    Ok(())
}

pub unsafe fn from_green(call: &Call<'_>, context: *mut CUcontext, green: CUgreenCtx) -> Verdict {
    if context.is_null() {
        return Err(Otherwise::Forward);
    }
    let books = call.books_if_attached()?;
    let device = books
        .contexts
        .lock()
        .device_of_green(green as usize)
        .ok_or(Otherwise::Forward)?;
    let account = books.of_device(call.driver, device)?;
    call.pass()?;
    // SAFETY: the driver just wrote it.
    books.enter_green_context(unsafe { *context }, device, account);
    Ok(())
}
