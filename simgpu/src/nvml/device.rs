//! Handles: what the caller holds for a device, and the ways to get one.

use super::{Nvml, put, session};
use crate::client::Observer;
use crate::facts::{DeviceFacts, MAX_DEVICES};
use crate::report::{DeviceReport, Report};
use driver::nvml::*;
use std::ffi::CStr;
use std::sync::Arc;

/// A handle is the address of the device's place in here.
static HANDLES: [u64; MAX_DEVICES] = [0; MAX_DEVICES];

/// One device of the node, looked at through a connection.
pub(super) struct Device {
    pub observer: Arc<Observer>,
    pub index: usize,
}

impl Device {
    /// The device of a handle: `INVALID_ARGUMENT` for none of ours, `GPU_IS_LOST` when it is.
    pub fn of(handle: nvmlDevice_t) -> Result<Device, NvmlError> {
        let observer = session::current()?;
        let first = HANDLES.as_ptr() as usize;
        let distance = (handle as usize).wrapping_sub(first);
        let index = distance / size_of::<u64>();
        if !distance.is_multiple_of(size_of::<u64>()) || index >= observer.devices().len() {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        if observer.device_lost(index) {
            return Err(NvmlError::GPU_IS_LOST);
        }
        Ok(Device { observer, index })
    }

    pub fn facts(&self) -> &DeviceFacts {
        &self.observer.devices()[self.index]
    }

    /// The node's truth now.
    pub fn report(&self) -> Result<Report, NvmlError> {
        self.observer.report().map_err(|_| NvmlError::UNKNOWN)
    }

    /// This device's part of it.
    pub fn own_report(&self) -> Result<DeviceReport, NvmlError> {
        self.report()?
            .devices
            .get(self.index)
            .copied()
            .ok_or(NvmlError::UNKNOWN)
    }

    /// Whether the product has MIG.
    pub fn has_mig(&self) -> bool {
        matches!(
            (self.facts().compute_major, self.facts().compute_minor),
            (8 | 9, 0) | (10, _)
        )
    }

    /// Serial number of the board: thirteen digits that follow from its UUID.
    pub fn serial(&self) -> String {
        let (_, low) = self.facts().uuid.split_at(8);
        let number = low.iter().fold(0u64, |sum, byte| sum << 8 | *byte as u64);
        format!("{:013}", number % 10_000_000_000_000)
    }
}

fn handle(index: usize) -> nvmlDevice_t {
    (&raw const HANDLES[index]).cast_mut().cast()
}

pub(super) fn handles() -> impl Iterator<Item = nvmlDevice_t> {
    (0..MAX_DEVICES).map(handle)
}

/// Stores the handle of the first device that `is` accepts; `NOT_FOUND` if there is none.
///
/// # Safety
/// `to` is null or valid for a write.
unsafe fn find(to: *mut nvmlDevice_t, is: impl Fn(&Device) -> bool) -> NvmlResult {
    let observer = session::current()?;
    for index in 0..observer.devices().len() {
        let device = Device {
            observer: observer.clone(),
            index,
        };
        if is(&device) {
            if observer.device_lost(index) {
                return Err(NvmlError::GPU_IS_LOST);
            }
            // SAFETY: as the caller says.
            return unsafe { put(to, handle(index)) };
        }
    }
    Err(NvmlError::NOT_FOUND)
}

/// A caller's text; `INVALID_ARGUMENT` for null.
///
/// # Safety
/// `text` is null or a C string that outlives the result.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, NvmlError> {
    if text.is_null() {
        return Err(NvmlError::INVALID_ARGUMENT);
    }
    // SAFETY: not null, else as the caller says.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .map_err(|_| NvmlError::NOT_FOUND)
}

/// `[domain:]bus:device[.function]` in hexadecimal.
fn pci_address(text: &str) -> Option<(u32, u32, u32)> {
    let text = text.split_once('.').map_or(text, |(address, _)| address);
    let parts: Vec<u32> = text
        .split(':')
        .map(|part| u32::from_str_radix(part, 16))
        .collect::<Result<_, _>>()
        .ok()?;
    match parts[..] {
        [bus, device] => Some((0, bus, device)),
        [domain, bus, device] => Some((domain, bus, device)),
        _ => None,
    }
}

#[allow(non_snake_case)]
impl Nvml {
    pub unsafe fn nvmlDeviceGetCount(count: *mut c_uint) -> NvmlResult {
        let devices = session::current()?.devices().len();
        // SAFETY: the caller's pointer.
        unsafe { put(count, devices as c_uint) }
    }

    pub unsafe fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> NvmlResult {
        // SAFETY: handed on.
        unsafe { Nvml::nvmlDeviceGetCount(count) }
    }

    pub unsafe fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut nvmlDevice_t) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { find(device, |d| d.index == index as usize) }.map_err(|error| match error {
            // An index is out of range rather than absent.
            NvmlError::NOT_FOUND => NvmlError::INVALID_ARGUMENT,
            other => other,
        })
    }

    pub unsafe fn nvmlDeviceGetHandleByIndex(index: c_uint, device: *mut nvmlDevice_t) -> NvmlResult {
        // SAFETY: handed on.
        unsafe { Nvml::nvmlDeviceGetHandleByIndex_v2(index, device) }
    }

    pub unsafe fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: *mut nvmlDevice_t) -> NvmlResult {
        // SAFETY: the caller's C string and pointer.
        unsafe {
            let uuid = text(uuid)?;
            find(device, |d| d.facts().uuid_text().eq_ignore_ascii_case(uuid))
        }
    }

    pub unsafe fn nvmlDeviceGetHandleBySerial(
        serial: *const c_char,
        device: *mut nvmlDevice_t,
    ) -> NvmlResult {
        // SAFETY: the caller's C string and pointer.
        unsafe {
            let serial = text(serial)?;
            find(device, |d| d.serial() == serial)
        }
    }

    pub unsafe fn nvmlDeviceGetHandleByPciBusId_v2(
        id: *const c_char,
        device: *mut nvmlDevice_t,
    ) -> NvmlResult {
        // SAFETY: the caller's C string.
        let address = pci_address(unsafe { text(id) }?).ok_or(NvmlError::INVALID_ARGUMENT)?;
        let is = |d: &Device| (d.facts().pci_domain, d.facts().pci_bus, d.facts().pci_device) == address;
        // SAFETY: the caller's pointer.
        unsafe { find(device, is) }
    }

    pub unsafe fn nvmlDeviceGetHandleByPciBusId(id: *const c_char, device: *mut nvmlDevice_t) -> NvmlResult {
        // SAFETY: handed on.
        unsafe { Nvml::nvmlDeviceGetHandleByPciBusId_v2(id, device) }
    }
}

#[cfg(test)]
mod tests {
    use super::pci_address;

    #[test]
    fn pci_addresses_come_in_three_lengths() {
        assert_eq!(pci_address("00000000:0F:00.0"), Some((0, 15, 0)));
        assert_eq!(pci_address("0000:0f:00.0"), Some((0, 15, 0)));
        assert_eq!(pci_address("0f:00"), Some((0, 15, 0)));
        assert_eq!(pci_address("0f"), None);
        assert_eq!(pci_address("GPU-0"), None);
    }
}
