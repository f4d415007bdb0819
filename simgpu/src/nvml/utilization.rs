//! How busy a device is, and with whom, over the last second of device time.

use super::device::Device;
use super::memory::expect_version;
use super::processes::living;
use super::{Nvml, put, put_list};
use driver::nvml::*;
use std::time::{SystemTime, UNIX_EPOCH};

/// How long NVML says its samples are, in microseconds.
const PERIOD_US: c_uint = 1_000_000;

/// Tenths of a per cent as whole ones, rounded.
pub(super) fn percent(permille: u32) -> c_uint {
    (permille + 5) / 10
}

fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as u64
}

/// The engines that the stand-in lacks are idle.
///
/// # Safety
/// The pointers are null or valid for a write.
unsafe fn idle(device: nvmlDevice_t, utilization: *mut c_uint, period: *mut c_uint) -> NvmlResult {
    Device::of(device)?;
    // SAFETY: as the caller says.
    unsafe {
        put(utilization, 0)?;
        put(period, PERIOD_US)
    }
}

macro_rules! idle_engines {
    ($($name:ident)*) => {
        #[allow(non_snake_case)]
        impl Nvml {
            $(pub unsafe fn $name(device: nvmlDevice_t, utilization: *mut c_uint, period: *mut c_uint) -> NvmlResult {
                // SAFETY: the caller's pointers.
                unsafe { idle(device, utilization, period) }
            })*
        }
    };
}

idle_engines! {
    nvmlDeviceGetEncoderUtilization
    nvmlDeviceGetDecoderUtilization
    nvmlDeviceGetJpgUtilization
    nvmlDeviceGetOfaUtilization
}

#[allow(non_snake_case)]
impl Nvml {
    /// `memory` is 0: the model has no measure of how busy the memory is.
    pub unsafe fn nvmlDeviceGetUtilizationRates(
        device: nvmlDevice_t,
        rates: *mut nvmlUtilization_t,
    ) -> NvmlResult {
        let gpu = percent(Device::of(device)?.own_report()?.busy_permille);
        // SAFETY: the caller's pointer.
        unsafe { put(rates, nvmlUtilization_t { gpu, memory: 0 }) }
    }

    /// One sample for each process, taken now; `NOT_FOUND` if that is not after `last_seen`.
    pub unsafe fn nvmlDeviceGetProcessUtilization(
        device: nvmlDevice_t,
        samples: *mut nvmlProcessUtilizationSample_t,
        count: *mut c_uint,
        last_seen: c_ulonglong,
    ) -> NvmlResult {
        let (living, timeStamp) = (living(&Device::of(device)?)?, now_us());
        if living.is_empty() || timeStamp <= last_seen {
            return Err(NvmlError::NOT_FOUND);
        }
        let list: Vec<_> = living
            .iter()
            .map(|p| nvmlProcessUtilizationSample_t {
                pid: p.pid,
                timeStamp,
                smUtil: percent(p.busy_permille),
                memUtil: 0,
                encUtil: 0,
                decUtil: 0,
            })
            .collect();
        // SAFETY: the caller's pointers.
        unsafe { put_list(count, samples, &list) }
    }

    pub unsafe fn nvmlDeviceGetProcessesUtilizationInfo(
        device: nvmlDevice_t,
        info: *mut nvmlProcessesUtilizationInfo_t,
    ) -> NvmlResult {
        let device = Device::of(device)?;
        // SAFETY: the caller's struct begins with its version word, and is whole when that is right.
        let (last_seen, array) = unsafe {
            expect_version::<nvmlProcessesUtilizationInfo_t>(info.cast(), 1)?;
            ((*info).lastSeenTimeStamp, (*info).procUtilArray)
        };
        let (living, timeStamp) = (living(&device)?, now_us());
        if living.is_empty() || timeStamp <= last_seen {
            return Err(NvmlError::NOT_FOUND);
        }
        let list: Vec<_> = living
            .iter()
            .map(|p| nvmlProcessUtilizationInfo_v1_t {
                timeStamp,
                pid: p.pid,
                smUtil: percent(p.busy_permille),
                memUtil: 0,
                encUtil: 0,
                decUtil: 0,
                jpgUtil: 0,
                ofaUtil: 0,
            })
            .collect();
        // SAFETY: the count lies in the caller's struct, the array has as many places as it says.
        unsafe { put_list(&raw mut (*info).processSamplesCount, array, &list) }
    }
}
