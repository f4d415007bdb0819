//! Devices: how many, which one, peers, flags.

use super::code;
use super::context;
use super::lookup::{DRIVER, load, ready};
use super::release::Release;
use driver::prelude::*;

/// `cudaDeviceMapHost`: always on, and always shown.
const MAP_HOST: c_uint = 8;
/// The flags that are the driver's too: scheduling, and keeping local memory.
const CONTEXT_FLAGS: c_uint = 0x7 | 0x10 | 0x80;

/// # Safety
/// `to` is null or valid for a write.
pub(super) unsafe fn put<T>(to: *mut T, value: T) -> CuResult {
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: not null, else as the caller says.
    unsafe { to.write(value) };
    Ok(())
}

pub unsafe fn runtime_version(version: *mut c_int) -> CuResult {
    // SAFETY: the caller's pointer.
    unsafe { put(version, Release::own().version()) }
}

/// 0 where there is no driver.
pub unsafe fn driver_version(version: *mut c_int) -> CuResult {
    // SAFETY: the caller's pointer.
    unsafe {
        put(version, 0)?;
        match load() {
            Err(error) if error == code::INSUFFICIENT_DRIVER => {
                let _ = DRIVER.cuDriverGetVersion(StreamApi::Legacy, version);
                Ok(())
            }
            Err(error) => Err(error),
            Ok(()) => DRIVER.cuDriverGetVersion(StreamApi::Legacy, version),
        }
    }
}

/// An error leaves 0.
pub unsafe fn count(count: *mut c_int) -> CuResult {
    // SAFETY: the caller's pointer.
    unsafe {
        put(count, 0)?;
        ready()?;
        DRIVER.cuDeviceGetCount(StreamApi::Legacy, count)?;
        match count.read() {
            0 => Err(CudaError::NO_DEVICE),
            _ => Ok(()),
        }
    }
}

pub unsafe fn chosen(device: *mut c_int) -> CuResult {
    // SAFETY: the caller's pointer.
    unsafe { put(device, context::device()?) }
}

pub unsafe fn choose(device: c_int) -> CuResult {
    context::set_device(device)
}

/// `cudaInitDevice`: the primary context is made, not made current. `flags` say whether `device_flags` count.
pub unsafe fn initialise(device: c_int, device_flags: c_uint, flags: c_uint) -> CuResult {
    if flags & 1 != 0 {
        ready()?;
        // SAFETY: the driver checks both.
        unsafe {
            DRIVER.cuDevicePrimaryCtxSetFlags_v2(StreamApi::Legacy, device, device_flags & CONTEXT_FLAGS)
        }?;
    }
    context::primary(device).map(drop)
}

pub unsafe fn reset() -> CuResult {
    context::reset()
}

pub unsafe fn set_flags(flags: c_uint) -> CuResult {
    let device = context::device()?;
    // SAFETY: the driver checks both.
    unsafe { DRIVER.cuDevicePrimaryCtxSetFlags_v2(StreamApi::Legacy, device, flags & CONTEXT_FLAGS) }
}

pub unsafe fn flags(flags: *mut c_uint) -> CuResult {
    let device = context::device()?;
    let (mut own, mut active) = (0, 0);
    // SAFETY: locals, then the caller's pointer.
    unsafe {
        DRIVER.cuDevicePrimaryCtxGetState(StreamApi::Legacy, device, &mut own, &mut active)?;
        put(flags, own | MAP_HOST)
    }
}

pub unsafe fn enable_peer(peer: c_int, flags: c_uint) -> CuResult {
    context::current()?;
    let other = context::primary(peer)?;
    // SAFETY: a context of the driver's.
    unsafe { DRIVER.cuCtxEnablePeerAccess(StreamApi::Legacy, other, flags) }
}

pub unsafe fn disable_peer(peer: c_int) -> CuResult {
    context::current()?;
    let other = context::primary(peer)?;
    // SAFETY: a context of the driver's.
    unsafe { DRIVER.cuCtxDisablePeerAccess(StreamApi::Legacy, other) }
}

/// No profiler is attached.
pub unsafe fn profile() -> CuResult {
    context::current()
}
