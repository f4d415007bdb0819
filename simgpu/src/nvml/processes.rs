//! Who uses a device. A process appears once it has a context there, with its host pid.

use super::device::Device;
use super::memory::expect_version;
use super::{Nvml, put_list};
use crate::report::ProcessReport;
use driver::nvml::*;

/// No MIG instance.
const NO_INSTANCE: c_uint = c_uint::MAX;

/// `NVML_PROCESS_MODE_…`.
mod mode {
    pub const COMPUTE: u32 = 0;
    pub const GRAPHICS: u32 = 1;
    pub const MPS: u32 = 2;
    pub const ALL: u32 = 3;
}

/// The living that hold memory of the device, context included.
pub(super) fn living(device: &Device) -> Result<Vec<ProcessReport>, NvmlError> {
    let index = device.index as u32;
    let here = |p: &ProcessReport| p.device == index && !p.exited && p.used_bytes > 0;
    Ok(device.report()?.processes.into_iter().filter(here).collect())
}

/// # Safety
/// `count` is null or valid; `infos` is null or valid for `*count` items.
unsafe fn compute_v1(
    device: nvmlDevice_t,
    count: *mut c_uint,
    infos: *mut nvmlProcessInfo_v1_t,
) -> NvmlResult {
    let info = |p: &ProcessReport| nvmlProcessInfo_v1_t {
        pid: p.pid,
        usedGpuMemory: p.used_bytes,
    };
    let list: Vec<_> = living(&Device::of(device)?)?.iter().map(info).collect();
    // SAFETY: as the caller says.
    unsafe { put_list(count, infos, &list) }
}

/// # Safety
/// As [`compute_v1`].
unsafe fn compute(device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_t) -> NvmlResult {
    let info = |p: &ProcessReport| nvmlProcessInfo_t {
        pid: p.pid,
        usedGpuMemory: p.used_bytes,
        gpuInstanceId: NO_INSTANCE,
        computeInstanceId: NO_INSTANCE,
    };
    let list: Vec<_> = living(&Device::of(device)?)?.iter().map(info).collect();
    // SAFETY: as the caller says.
    unsafe { put_list(count, infos, &list) }
}

/// Kinds of process that the stand-in has none of.
///
/// # Safety
/// As [`compute_v1`].
unsafe fn nobody<T: Copy>(device: nvmlDevice_t, count: *mut c_uint, infos: *mut T) -> NvmlResult {
    Device::of(device)?;
    // SAFETY: as the caller says.
    unsafe { put_list(count, infos, &[]) }
}

macro_rules! lists {
    ($($name:ident($info:ty) => $list:ident;)*) => {
        #[allow(non_snake_case)]
        impl Nvml {
            $(pub unsafe fn $name(device: nvmlDevice_t, count: *mut c_uint, infos: *mut $info) -> NvmlResult {
                // SAFETY: the caller's pointers.
                unsafe { $list(device, count, infos) }
            })*
        }
    };
}

lists! {
    nvmlDeviceGetComputeRunningProcesses(nvmlProcessInfo_v1_t) => compute_v1;
    nvmlDeviceGetComputeRunningProcesses_v2(nvmlProcessInfo_t) => compute;
    nvmlDeviceGetComputeRunningProcesses_v3(nvmlProcessInfo_t) => compute;
    nvmlDeviceGetGraphicsRunningProcesses(nvmlProcessInfo_v1_t) => nobody;
    nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlProcessInfo_t) => nobody;
    nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlProcessInfo_t) => nobody;
    nvmlDeviceGetMPSComputeRunningProcesses(nvmlProcessInfo_v1_t) => nobody;
    nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlProcessInfo_t) => nobody;
    nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlProcessInfo_t) => nobody;
}

#[allow(non_snake_case)]
impl Nvml {
    pub unsafe fn nvmlDeviceGetRunningProcessDetailList(
        device: nvmlDevice_t,
        list: *mut nvmlProcessDetailList_t,
    ) -> NvmlResult {
        let device = Device::of(device)?;
        // SAFETY: the caller's struct begins with its version word, and is whole when that is right.
        let (mode, array) = unsafe {
            expect_version::<nvmlProcessDetailList_t>(list.cast(), 1)?;
            ((*list).mode, (*list).procArray)
        };
        let living = match mode {
            mode::COMPUTE | mode::ALL => living(&device)?,
            mode::GRAPHICS | mode::MPS => Vec::new(),
            _ => return Err(NvmlError::INVALID_ARGUMENT),
        };
        let detail = |p: &ProcessReport| nvmlProcessDetail_v1_t {
            pid: p.pid,
            usedGpuMemory: p.used_bytes,
            gpuInstanceId: NO_INSTANCE,
            computeInstanceId: NO_INSTANCE,
            usedGpuCcProtectedMemory: 0,
        };
        let details: Vec<_> = living.iter().map(detail).collect();
        // SAFETY: the count lies in the caller's struct, the array has as many places as it says.
        unsafe { put_list(&raw mut (*list).numProcArrayEntries, array, &details) }
    }
}
