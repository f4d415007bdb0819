//! Memory: the tenant's cap and use, in the same numbers as `cuMemGetInfo` gives.

use driver::nvml::*;

use crate::attach::share_of;

pub unsafe fn total(
    real: unsafe extern "C" fn(nvmlDevice_t, *mut nvmlMemory_t) -> NvmlResult,
    device: nvmlDevice_t,
    memory: *mut nvmlMemory_t,
) -> NvmlResult {
    // SAFETY: the program's own call.
    unsafe { real(device, memory) }?;
    if let Some(share) = share_of(device) {
        // SAFETY: the library just wrote it.
        let own = unsafe { &mut *memory };
        (own.free, own.total, own.used) = share.view(own.free, own.total);
    }
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
    if let Some(share) = share_of(device) {
        // SAFETY: the library just wrote it, having checked its version.
        let own = unsafe { &mut *memory };
        (own.free, own.total, own.used) = share.view(own.free, own.total);
        own.reserved = 0;
    }
    Ok(())
}
