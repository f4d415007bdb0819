//! Memory of a device: what all processes of the node hold together.

use super::device::Device;
use super::{Nvml, put};
use driver::nvml::*;

/// Checks the version word that a caller's struct begins with.
///
/// # Safety
/// `word` is null or valid for a read.
pub(super) unsafe fn expect_version<T>(word: *const c_uint, version: u32) -> NvmlResult {
    if word.is_null() {
        return Err(NvmlError::INVALID_ARGUMENT);
    }
    // SAFETY: not null, else as the caller says.
    if unsafe { word.read() } != struct_version::<T>(version) {
        return Err(NvmlError::ARGUMENT_VERSION_MISMATCH);
    }
    Ok(())
}

#[allow(non_snake_case)]
impl Nvml {
    /// The first version has no word for what the driver keeps back: it counts as used.
    pub unsafe fn nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, memory: *mut nvmlMemory_t) -> NvmlResult {
        let device = Device::of(device)?;
        let total = device.facts().framebuffer_bytes;
        let free = device
            .facts()
            .memory_bytes
            .saturating_sub(device.own_report()?.used_bytes);
        // SAFETY: the caller's pointer.
        unsafe {
            put(
                memory,
                nvmlMemory_t {
                    total,
                    free,
                    used: total.saturating_sub(free),
                },
            )
        }
    }

    pub unsafe fn nvmlDeviceGetMemoryInfo_v2(
        device: nvmlDevice_t,
        memory: *mut nvmlMemory_v2_t,
    ) -> NvmlResult {
        let device = Device::of(device)?;
        // SAFETY: the caller's struct begins with its version word.
        unsafe { expect_version::<nvmlMemory_v2_t>(memory.cast(), 2) }?;
        let (total, usable) = (device.facts().framebuffer_bytes, device.facts().memory_bytes);
        let used = device.own_report()?.used_bytes;
        let answer = nvmlMemory_v2_t {
            version: struct_version::<nvmlMemory_v2_t>(2),
            total,
            reserved: total.saturating_sub(usable),
            free: usable.saturating_sub(used),
            used,
        };
        // SAFETY: the caller's pointer.
        unsafe { put(memory, answer) }
    }

    /// The window covers the whole memory and nothing is mapped through it.
    pub unsafe fn nvmlDeviceGetBAR1MemoryInfo(
        device: nvmlDevice_t,
        bar1: *mut nvmlBAR1Memory_t,
    ) -> NvmlResult {
        let device = Device::of(device)?;
        let bar1Total = device.facts().framebuffer_bytes.next_power_of_two();
        // SAFETY: the caller's pointer.
        unsafe {
            put(
                bar1,
                nvmlBAR1Memory_t {
                    bar1Total,
                    bar1Free: bar1Total,
                    bar1Used: 0,
                },
            )
        }
    }

    pub unsafe fn nvmlDeviceGetMemoryBusWidth(device: nvmlDevice_t, width: *mut c_uint) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put(width, Device::of(device)?.facts().bus_width_bits) }
    }
}
