//! How busy a device is, and with whom, as a sampling driver shows it: the last whole sixth of a second of
//! device time, so a reading lags by a sixth to a third of a second.

use super::device::Device;
use super::memory::expect_version;
use super::processes::living;
use super::{Nvml, put, put_list};
use crate::report::ProcessReport;
use driver::nvml::*;
use std::time::{SystemTime, UNIX_EPOCH};

/// How long NVML says its samples are, in microseconds.
const PERIOD_US: c_uint = 166_667;
/// Far more than lies between two clock reads, far less than a period.
const SLACK_US: u64 = 20_000;

/// Tenths of a per cent as whole ones, rounded.
pub(super) fn percent(permille: u32) -> c_uint {
    (permille + 5) / 10
}

/// The processes that were busy in the last sample, and its time in microseconds since 1970; `NOT_FOUND`
/// without any, or if the sample is not after `last_seen`.
fn sampled(device: &Device, last_seen: c_ulonglong) -> Result<(Vec<ProcessReport>, u64), NvmlError> {
    let report = device.report()?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let age_us = report.sample_age_ns.saturating_mul(report.time_scale as u64) / 1000;
    let taken = (since.as_micros() as u64).saturating_sub(age_us);
    // Two readings of one sample differ by the time between two looks at two clocks.
    if taken <= last_seen.saturating_add(SLACK_US) {
        return Err(NvmlError::NOT_FOUND);
    }
    let busy = |p: &ProcessReport| p.sampled_permille > 0;
    let busy: Vec<_> = living(device)?.into_iter().filter(busy).collect();
    match busy.is_empty() {
        true => Err(NvmlError::NOT_FOUND),
        false => Ok((busy, taken)),
    }
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
        let gpu = percent(Device::of(device)?.own_report()?.sampled_permille);
        // SAFETY: the caller's pointer.
        unsafe { put(rates, nvmlUtilization_t { gpu, memory: 0 }) }
    }

    /// The last sample of each process that was busy in it; `NOT_FOUND` if that is not after `last_seen`.
    pub unsafe fn nvmlDeviceGetProcessUtilization(
        device: nvmlDevice_t,
        samples: *mut nvmlProcessUtilizationSample_t,
        count: *mut c_uint,
        last_seen: c_ulonglong,
    ) -> NvmlResult {
        let (busy, timeStamp) = sampled(&Device::of(device)?, last_seen)?;
        let list: Vec<_> = busy
            .iter()
            .map(|p| nvmlProcessUtilizationSample_t {
                pid: p.pid,
                timeStamp,
                smUtil: percent(p.sampled_permille),
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
        let (busy, timeStamp) = sampled(&device, last_seen)?;
        let list: Vec<_> = busy
            .iter()
            .map(|p| nvmlProcessUtilizationInfo_v1_t {
                timeStamp,
                pid: p.pid,
                smUtil: percent(p.sampled_permille),
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
