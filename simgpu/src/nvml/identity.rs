//! What a device is.

use super::device::Device;
use super::{Nvml, field, put, put_text};
use driver::nvml::*;

const BRAND_NVIDIA: c_uint = 14;
const BUS_TYPE_PCIE: c_uint = 2;
/// Base class and subclass of a 3D controller.
const DISPLAY: c_uint = 3;
const CONTROLLER_3D: c_uint = 2;

/// `NVML_DEVICE_ARCH_…` of a compute capability.
fn architecture(major: u32, minor: u32) -> c_uint {
    match (major, minor) {
        (3, _) => 2,
        (5, _) => 3,
        (6, _) => 4,
        (7, 0..5) => 5,
        (7, _) => 6,
        (8, 9) => 8,
        (8, _) => 7,
        (9, _) => 9,
        (10.., _) => 10,
        _ => c_uint::MAX,
    }
}

/// # Safety
/// `pci` is null or valid for a write.
unsafe fn put_pci(device: nvmlDevice_t, pci: *mut nvmlPciInfo_t) -> NvmlResult {
    let device = Device::of(device)?;
    let facts = device.facts();
    let id = facts.pci_bus_id();
    let info = nvmlPciInfo_t {
        // The old form has a domain of four digits.
        busIdLegacy: field(&id[4..]),
        domain: facts.pci_domain,
        bus: facts.pci_bus,
        device: facts.pci_device,
        pciDeviceId: facts.pci_device_id,
        pciSubSystemId: facts.pci_subsystem_id,
        busId: field(&id),
    };
    // SAFETY: as the caller says.
    unsafe { put(pci, info) }
}

#[allow(non_snake_case)]
impl Nvml {
    pub unsafe fn nvmlDeviceGetIndex(device: nvmlDevice_t, index: *mut c_uint) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put(index, Device::of(device)?.index as c_uint) }
    }

    pub unsafe fn nvmlDeviceGetMinorNumber(device: nvmlDevice_t, minor: *mut c_uint) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put(minor, Device::of(device)?.index as c_uint) }
    }

    pub unsafe fn nvmlDeviceGetModuleId(device: nvmlDevice_t, module: *mut c_uint) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put(module, Device::of(device)?.index as c_uint + 1) }
    }

    pub unsafe fn nvmlDeviceGetName(device: nvmlDevice_t, name: *mut c_char, length: c_uint) -> NvmlResult {
        // SAFETY: the caller's buffer.
        unsafe { put_text(name, length, Device::of(device)?.facts().name.as_str()) }
    }

    pub unsafe fn nvmlDeviceGetUUID(device: nvmlDevice_t, uuid: *mut c_char, length: c_uint) -> NvmlResult {
        // SAFETY: the caller's buffer.
        unsafe { put_text(uuid, length, &Device::of(device)?.facts().uuid_text()) }
    }

    pub unsafe fn nvmlDeviceGetSerial(
        device: nvmlDevice_t,
        serial: *mut c_char,
        length: c_uint,
    ) -> NvmlResult {
        // SAFETY: the caller's buffer.
        unsafe { put_text(serial, length, &Device::of(device)?.serial()) }
    }

    pub unsafe fn nvmlDeviceGetVbiosVersion(
        device: nvmlDevice_t,
        version: *mut c_char,
        length: c_uint,
    ) -> NvmlResult {
        let device = Device::of(device)?;
        let arch = architecture(device.facts().compute_major, device.facts().compute_minor);
        // SAFETY: the caller's buffer.
        unsafe { put_text(version, length, &format!("{:02X}.00.00.00.01", arch)) }
    }

    pub unsafe fn nvmlDeviceGetBoardId(device: nvmlDevice_t, board: *mut c_uint) -> NvmlResult {
        let device = Device::of(device)?;
        // SAFETY: the caller's pointer.
        unsafe {
            put(
                board,
                device.facts().pci_domain << 16 | device.facts().pci_bus << 8,
            )
        }
    }

    pub unsafe fn nvmlDeviceGetMultiGpuBoard(device: nvmlDevice_t, multi: *mut c_uint) -> NvmlResult {
        Device::of(device)?;
        // SAFETY: the caller's pointer.
        unsafe { put(multi, 0) }
    }

    pub unsafe fn nvmlDeviceOnSameBoard(
        one: nvmlDevice_t,
        other: nvmlDevice_t,
        same: *mut c_int,
    ) -> NvmlResult {
        let same_board = Device::of(one)?.index == Device::of(other)?.index;
        // SAFETY: the caller's pointer.
        unsafe { put(same, same_board as c_int) }
    }

    pub unsafe fn nvmlDeviceGetBrand(device: nvmlDevice_t, brand: *mut nvmlBrandType_t) -> NvmlResult {
        Device::of(device)?;
        // SAFETY: the caller's pointer.
        unsafe { put(brand, BRAND_NVIDIA) }
    }

    pub unsafe fn nvmlDeviceGetBusType(device: nvmlDevice_t, kind: *mut nvmlBusType_t) -> NvmlResult {
        Device::of(device)?;
        // SAFETY: the caller's pointer.
        unsafe { put(kind, BUS_TYPE_PCIE) }
    }

    pub unsafe fn nvmlDeviceGetArchitecture(
        device: nvmlDevice_t,
        arch: *mut nvmlDeviceArchitecture_t,
    ) -> NvmlResult {
        let device = Device::of(device)?;
        // SAFETY: the caller's pointer.
        unsafe {
            put(
                arch,
                architecture(device.facts().compute_major, device.facts().compute_minor),
            )
        }
    }

    pub unsafe fn nvmlDeviceGetCudaComputeCapability(
        device: nvmlDevice_t,
        major: *mut c_int,
        minor: *mut c_int,
    ) -> NvmlResult {
        let device = Device::of(device)?;
        // SAFETY: the caller's pointers.
        unsafe {
            put(major, device.facts().compute_major as c_int)?;
            put(minor, device.facts().compute_minor as c_int)
        }
    }

    pub unsafe fn nvmlDeviceGetPciInfo_v3(device: nvmlDevice_t, pci: *mut nvmlPciInfo_t) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_pci(device, pci) }
    }

    pub unsafe fn nvmlDeviceGetPciInfo_v2(device: nvmlDevice_t, pci: *mut nvmlPciInfo_t) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_pci(device, pci) }
    }

    pub unsafe fn nvmlDeviceGetPciInfo(device: nvmlDevice_t, pci: *mut nvmlPciInfo_t) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_pci(device, pci) }
    }

    pub unsafe fn nvmlDeviceGetPciInfoExt(device: nvmlDevice_t, pci: *mut nvmlPciInfoExt_t) -> NvmlResult {
        let device = Device::of(device)?;
        let facts = device.facts();
        // SAFETY: the caller's pointer; it holds at least the version word.
        unsafe {
            super::memory::expect_version::<nvmlPciInfoExt_t>(pci.cast(), 1)?;
            put(
                pci,
                nvmlPciInfoExt_t {
                    version: (*pci).version,
                    domain: facts.pci_domain,
                    bus: facts.pci_bus,
                    device: facts.pci_device,
                    pciDeviceId: facts.pci_device_id,
                    pciSubSystemId: facts.pci_subsystem_id,
                    baseClass: DISPLAY,
                    subClass: CONTROLLER_3D,
                    busId: field(&facts.pci_bus_id()),
                },
            )
        }
    }
}
