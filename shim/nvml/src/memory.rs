//! Memory: the tenant's cap and use, in the same numbers as `cuMemGetInfo` gives.

use core::mem::take;

use driver::nvml::*;

use crate::attach::share_of;

pub unsafe fn total(
    real: unsafe extern "C" fn(nvmlDevice_t, *mut nvmlMemory_t) -> NvmlResult,
    device: nvmlDevice_t,
    memory: *mut nvmlMemory_t,
) -> NvmlResult {
    // SAFETY: the program's own call.
    unsafe { real(device, memory) }?;
    // SAFETY: the library just wrote it.
    let own = unsafe { &mut *memory };
    // Whoever is to see nothing is left nothing.
    let (free, total, used) = (take(&mut own.free), take(&mut own.total), take(&mut own.used));
    (own.free, own.total, own.used) = match share_of(device)? {
        Some(share) => share.view(free, total),
        None => (free, total, used),
    };
    Ok(())
}

/// What the driver keeps back is none of the tenant's: `reserved` is 0.
pub unsafe fn total_v2(
    real: unsafe extern "C" fn(nvmlDevice_t, *mut nvmlMemory_v2_t) -> NvmlResult,
    device: nvmlDevice_t,
    memory: *mut nvmlMemory_v2_t,
) -> NvmlResult {
    // SAFETY: the program's own call.
    unsafe { real(device, memory) }?;
    // SAFETY: the library just wrote it, having checked its version.
    let own = unsafe { &mut *memory };
    let (free, total, used) = (take(&mut own.free), take(&mut own.total), take(&mut own.used));
    let reserved = take(&mut own.reserved);
    (own.free, own.total, own.used, own.reserved) = match share_of(device)? {
        Some(share) => {
            let (free, total, used) = share.view(free, total);
            (free, total, used, 0)
        }
        None => (free, total, used, reserved),
    };
    Ok(())
}
