//! Modes of a device. None can be changed on the stand-in: the setters answer `NOT_SUPPORTED`.

use super::device::Device;
use super::{Nvml, put};
use driver::nvml::*;

/// Most instances of a device that has MIG.
const MOST_INSTANCES: c_uint = 7;
/// Processes that the driver's accounting would remember.
const ACCOUNTED: c_uint = 4000;

macro_rules! constants {
    ($($name:ident = $value:literal;)*) => {
        #[allow(non_snake_case)]
        impl Nvml {
            $(pub unsafe fn $name(device: nvmlDevice_t, mode: *mut c_uint) -> NvmlResult {
                Device::of(device)?;
                // SAFETY: the caller's pointer.
                unsafe { put(mode, $value) }
            })*
        }
    };
}

constants! {
    nvmlDeviceGetPersistenceMode = 1;
    nvmlDeviceGetComputeMode = 0;
    nvmlDeviceGetDisplayMode = 0;
    nvmlDeviceGetDisplayActive = 0;
    nvmlDeviceGetVirtualizationMode = 0;
    nvmlDeviceGetAccountingMode = 0;
    nvmlDeviceIsMigDeviceHandle = 0;
}

#[allow(non_snake_case)]
impl Nvml {
    pub unsafe fn nvmlDeviceGetAccountingBufferSize(device: nvmlDevice_t, size: *mut c_uint) -> NvmlResult {
        Device::of(device)?;
        // SAFETY: the caller's pointer.
        unsafe { put(size, ACCOUNTED) }
    }

    /// Off, and `NOT_SUPPORTED` where the product has no MIG.
    pub unsafe fn nvmlDeviceGetMigMode(
        device: nvmlDevice_t,
        current: *mut c_uint,
        pending: *mut c_uint,
    ) -> NvmlResult {
        if !Device::of(device)?.has_mig() {
            return Err(NvmlError::NOT_SUPPORTED);
        }
        // SAFETY: the caller's pointers.
        unsafe {
            put(current, 0)?;
            put(pending, 0)
        }
    }

    pub unsafe fn nvmlDeviceGetMaxMigDeviceCount(device: nvmlDevice_t, count: *mut c_uint) -> NvmlResult {
        let most = if Device::of(device)?.has_mig() {
            MOST_INSTANCES
        } else {
            0
        };
        // SAFETY: the caller's pointer.
        unsafe { put(count, most) }
    }

    pub unsafe fn nvmlDeviceGetMigDeviceHandleByIndex(
        device: nvmlDevice_t,
        index: c_uint,
        _instance: *mut nvmlDevice_t,
    ) -> NvmlResult {
        match Device::of(device)?.has_mig() {
            true if index < MOST_INSTANCES => Err(NvmlError::NOT_FOUND),
            true => Err(NvmlError::INVALID_ARGUMENT),
            false => Err(NvmlError::NOT_SUPPORTED),
        }
    }

    pub unsafe fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(
        instance: nvmlDevice_t,
        _device: *mut nvmlDevice_t,
    ) -> NvmlResult {
        Device::of(instance)?;
        // A device, but no instance of one.
        Err(NvmlError::INVALID_ARGUMENT)
    }

    /// Every field is answered for itself, and none is known.
    pub unsafe fn nvmlDeviceGetFieldValues(
        device: nvmlDevice_t,
        count: c_int,
        values: *mut nvmlFieldValue_t,
    ) -> NvmlResult {
        Device::of(device)?;
        if values.is_null() || count < 1 {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        for i in 0..count as usize {
            // SAFETY: the caller's array of `count` items.
            unsafe { (&raw mut (*values.add(i)).nvmlReturn).write(NvmlError::NOT_SUPPORTED.code()) };
        }
        Ok(())
    }
}
