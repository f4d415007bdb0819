//! Temperature, power and clocks: simple functions of how busy the device is. No fan: the products are
//! cooled by their servers, and `NOT_SUPPORTED` is what such a device answers.

use super::device::Device;
use super::memory::expect_version;
use super::{Nvml, put};
use driver::nvml::*;

const IDLE_CELSIUS: u32 = 33;
/// Added when busy all the time.
const BUSY_CELSIUS: u32 = 32;
const SENSOR_GPU: c_uint = 0;
/// Shutdown, slowdown, memory's and GPU's highest, in the order of `NVML_TEMPERATURE_THRESHOLD_…`.
const THRESHOLDS: [c_uint; 4] = [92, 89, 95, 87];
const IDLE_MHZ: u32 = 345;
/// `NVML_CLOCK_…`.
mod clock {
    pub const GRAPHICS: u32 = 0;
    pub const SM: u32 = 1;
    pub const MEMORY: u32 = 2;
    pub const VIDEO: u32 = 3;
}
/// `nvmlClocksEventReasonGpuIdle`, and all reasons that exist.
const REASON_IDLE: c_ulonglong = 1;
const REASONS: c_ulonglong = 0x1ff;

impl Device {
    fn celsius(&self) -> Result<u32, NvmlError> {
        Ok(IDLE_CELSIUS + BUSY_CELSIUS * self.own_report()?.busy_permille / 1000)
    }

    /// An idle device takes a tenth of its limit, a busy one nine tenths.
    fn milliwatts(&self, busy_permille: u64) -> u64 {
        let limit = self.facts().power_limit_mw as u64;
        limit / 10 + limit * 8 / 10 * busy_permille / 1000
    }

    fn highest_mhz(&self, kind: nvmlClockType_t) -> Result<u32, NvmlError> {
        match kind {
            clock::GRAPHICS | clock::SM => Ok(self.facts().clock_khz / 1000),
            clock::MEMORY => Ok(self.facts().memory_clock_khz / 1000),
            clock::VIDEO => Ok(self.facts().clock_khz / 1000 * 4 / 5),
            _ => Err(NvmlError::INVALID_ARGUMENT),
        }
    }
}

/// # Safety
/// `to` is null or valid for a write.
unsafe fn put_limit(device: nvmlDevice_t, to: *mut c_uint) -> NvmlResult {
    // SAFETY: as the caller says.
    unsafe { put(to, Device::of(device)?.facts().power_limit_mw) }
}

/// # Safety
/// `to` is null or valid for a write.
unsafe fn put_reasons(device: nvmlDevice_t, to: *mut c_ulonglong) -> NvmlResult {
    let idle = Device::of(device)?.own_report()?.busy_permille == 0;
    // SAFETY: as the caller says.
    unsafe { put(to, if idle { REASON_IDLE } else { 0 }) }
}

/// # Safety
/// `to` is null or valid for a write.
unsafe fn put_known_reasons(device: nvmlDevice_t, to: *mut c_ulonglong) -> NvmlResult {
    Device::of(device)?;
    // SAFETY: as the caller says.
    unsafe { put(to, REASONS) }
}

#[allow(non_snake_case)]
impl Nvml {
    pub unsafe fn nvmlDeviceGetTemperature(
        device: nvmlDevice_t,
        sensor: nvmlTemperatureSensors_t,
        celsius: *mut c_uint,
    ) -> NvmlResult {
        let device = Device::of(device)?;
        if sensor != SENSOR_GPU {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        // SAFETY: the caller's pointer.
        unsafe { put(celsius, device.celsius()?) }
    }

    pub unsafe fn nvmlDeviceGetTemperatureV(
        device: nvmlDevice_t,
        answer: *mut nvmlTemperature_t,
    ) -> NvmlResult {
        let device = Device::of(device)?;
        // SAFETY: the caller's struct begins with its version word, and is whole when that is right.
        unsafe {
            expect_version::<nvmlTemperature_t>(answer.cast(), 1)?;
            if (*answer).sensorType != SENSOR_GPU {
                return Err(NvmlError::INVALID_ARGUMENT);
            }
            put(&raw mut (*answer).temperature, device.celsius()? as c_int)
        }
    }

    pub unsafe fn nvmlDeviceGetTemperatureThreshold(
        device: nvmlDevice_t,
        threshold: nvmlTemperatureThresholds_t,
        celsius: *mut c_uint,
    ) -> NvmlResult {
        Device::of(device)?;
        let known = THRESHOLDS
            .get(threshold as usize)
            .ok_or(NvmlError::NOT_SUPPORTED)?;
        // SAFETY: the caller's pointer.
        unsafe { put(celsius, *known) }
    }

    pub unsafe fn nvmlDeviceGetPowerUsage(device: nvmlDevice_t, power: *mut c_uint) -> NvmlResult {
        let device = Device::of(device)?;
        let busy = device.own_report()?.busy_permille as u64;
        // SAFETY: the caller's pointer.
        unsafe { put(power, device.milliwatts(busy) as c_uint) }
    }

    /// In millijoules since the node started: the power above, integrated over device time.
    pub unsafe fn nvmlDeviceGetTotalEnergyConsumption(
        device: nvmlDevice_t,
        energy: *mut c_ulonglong,
    ) -> NvmlResult {
        let device = Device::of(device)?;
        let report = device.report()?;
        let own = report.devices.get(device.index).ok_or(NvmlError::UNKNOWN)?;
        let (idle, busy) = (device.milliwatts(0), device.milliwatts(1000));
        let sum = idle as u128 * report.elapsed_ns as u128 + (busy - idle) as u128 * own.busy_ns as u128;
        // SAFETY: the caller's pointer.
        unsafe { put(energy, (sum / 1_000_000_000) as c_ulonglong) }
    }

    pub unsafe fn nvmlDeviceGetPowerManagementMode(
        device: nvmlDevice_t,
        mode: *mut nvmlEnableState_t,
    ) -> NvmlResult {
        Device::of(device)?;
        // SAFETY: the caller's pointer.
        unsafe { put(mode, 1) }
    }

    pub unsafe fn nvmlDeviceGetPowerManagementLimit(device: nvmlDevice_t, limit: *mut c_uint) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_limit(device, limit) }
    }

    pub unsafe fn nvmlDeviceGetPowerManagementDefaultLimit(
        device: nvmlDevice_t,
        limit: *mut c_uint,
    ) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_limit(device, limit) }
    }

    pub unsafe fn nvmlDeviceGetEnforcedPowerLimit(device: nvmlDevice_t, limit: *mut c_uint) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_limit(device, limit) }
    }

    pub unsafe fn nvmlDeviceGetPowerManagementLimitConstraints(
        device: nvmlDevice_t,
        least: *mut c_uint,
        most: *mut c_uint,
    ) -> NvmlResult {
        let limit = Device::of(device)?.facts().power_limit_mw;
        // SAFETY: the caller's pointers.
        unsafe {
            put(least, limit * 2 / 7)?;
            put(most, limit)
        }
    }

    pub unsafe fn nvmlDeviceGetPerformanceState(
        device: nvmlDevice_t,
        state: *mut nvmlPstates_t,
    ) -> NvmlResult {
        Device::of(device)?;
        // SAFETY: the caller's pointer.
        unsafe { put(state, 0) }
    }

    pub unsafe fn nvmlDeviceGetPowerState(device: nvmlDevice_t, state: *mut nvmlPstates_t) -> NvmlResult {
        // SAFETY: handed on.
        unsafe { Nvml::nvmlDeviceGetPerformanceState(device, state) }
    }

    /// The SM clock falls when the device is idle, the memory's does not.
    pub unsafe fn nvmlDeviceGetClockInfo(
        device: nvmlDevice_t,
        kind: nvmlClockType_t,
        mhz: *mut c_uint,
    ) -> NvmlResult {
        let device = Device::of(device)?;
        let highest = device.highest_mhz(kind)?;
        let idle = kind != clock::MEMORY && device.own_report()?.busy_permille == 0;
        // SAFETY: the caller's pointer.
        unsafe { put(mhz, if idle { IDLE_MHZ } else { highest }) }
    }

    pub unsafe fn nvmlDeviceGetMaxClockInfo(
        device: nvmlDevice_t,
        kind: nvmlClockType_t,
        mhz: *mut c_uint,
    ) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put(mhz, Device::of(device)?.highest_mhz(kind)?) }
    }

    /// `clock_id` 0 is the clock now, the others are targets.
    pub unsafe fn nvmlDeviceGetClock(
        device: nvmlDevice_t,
        kind: nvmlClockType_t,
        clock_id: nvmlClockId_t,
        mhz: *mut c_uint,
    ) -> NvmlResult {
        // SAFETY: handed on.
        unsafe {
            match clock_id {
                0 => Nvml::nvmlDeviceGetClockInfo(device, kind, mhz),
                1..4 => Nvml::nvmlDeviceGetMaxClockInfo(device, kind, mhz),
                _ => Err(NvmlError::INVALID_ARGUMENT),
            }
        }
    }

    pub unsafe fn nvmlDeviceGetApplicationsClock(
        device: nvmlDevice_t,
        kind: nvmlClockType_t,
        mhz: *mut c_uint,
    ) -> NvmlResult {
        // SAFETY: handed on.
        unsafe { Nvml::nvmlDeviceGetMaxClockInfo(device, kind, mhz) }
    }

    pub unsafe fn nvmlDeviceGetDefaultApplicationsClock(
        device: nvmlDevice_t,
        kind: nvmlClockType_t,
        mhz: *mut c_uint,
    ) -> NvmlResult {
        // SAFETY: handed on.
        unsafe { Nvml::nvmlDeviceGetMaxClockInfo(device, kind, mhz) }
    }

    pub unsafe fn nvmlDeviceGetCurrentClocksThrottleReasons(
        d: nvmlDevice_t,
        reasons: *mut c_ulonglong,
    ) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_reasons(d, reasons) }
    }

    pub unsafe fn nvmlDeviceGetCurrentClocksEventReasons(
        d: nvmlDevice_t,
        reasons: *mut c_ulonglong,
    ) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_reasons(d, reasons) }
    }

    pub unsafe fn nvmlDeviceGetSupportedClocksThrottleReasons(
        d: nvmlDevice_t,
        known: *mut c_ulonglong,
    ) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_known_reasons(d, known) }
    }

    pub unsafe fn nvmlDeviceGetSupportedClocksEventReasons(
        d: nvmlDevice_t,
        known: *mut c_ulonglong,
    ) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_known_reasons(d, known) }
    }
}
