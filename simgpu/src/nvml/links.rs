//! How devices are connected: PCIe, NVLink through a switch, NUMA nodes.

use super::device::{Device, handles};
use super::{Nvml, put};
use driver::nvml::*;

/// Lanes of every product.
const LANES: c_uint = 16;
/// `NVML_TOPOLOGY_…`: the same device, one NUMA node, the whole machine.
mod level {
    pub const INTERNAL: u32 = 0;
    pub const NODE: u32 = 40;
    pub const SYSTEM: u32 = 50;
}
/// `NVML_P2P_CAPS_INDEX_…`.
mod capability {
    pub const NVLINK: u32 = 2;
    pub const ATOMICS: u32 = 3;
    pub const UNKNOWN: u32 = 5;
}
const P2P_OK: c_uint = 0;
const P2P_NOT_SUPPORTED: c_uint = 5;

impl Device {
    fn pcie_generation(&self) -> c_uint {
        match self.facts().compute_major {
            ..8 => 3,
            8 => 4,
            _ => 5,
        }
    }

    /// Links to the switch; `NOT_SUPPORTED` for none.
    fn links(&self) -> Result<c_uint, NvmlError> {
        match (self.facts().nvlink_bandwidth, self.facts().compute_major) {
            (0, _) => Err(NvmlError::NOT_SUPPORTED),
            (_, ..9) => Ok(12),
            (_, _) => Ok(18),
        }
    }

    /// `INVALID_ARGUMENT` for a link the device does not have.
    fn link(&self, link: c_uint) -> NvmlResult {
        if link < self.links()? {
            Ok(())
        } else {
            Err(NvmlError::INVALID_ARGUMENT)
        }
    }

    fn ancestor(&self, other: &Device) -> c_uint {
        if self.index == other.index {
            level::INTERNAL
        } else if self.facts().numa_node == other.facts().numa_node {
            level::NODE
        } else {
            level::SYSTEM
        }
    }
}

/// # Safety
/// `to` is null or valid for a write.
unsafe fn put_generation(device: nvmlDevice_t, to: *mut c_uint) -> NvmlResult {
    // SAFETY: as the caller says.
    unsafe { put(to, Device::of(device)?.pcie_generation()) }
}

/// # Safety
/// `to` is null or valid for a write.
unsafe fn put_constant(device: nvmlDevice_t, to: *mut c_uint, value: c_uint) -> NvmlResult {
    Device::of(device)?;
    // SAFETY: as the caller says.
    unsafe { put(to, value) }
}

#[allow(non_snake_case)]
impl Nvml {
    pub unsafe fn nvmlDeviceGetCurrPcieLinkGeneration(
        device: nvmlDevice_t,
        generation: *mut c_uint,
    ) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_generation(device, generation) }
    }

    pub unsafe fn nvmlDeviceGetMaxPcieLinkGeneration(
        device: nvmlDevice_t,
        generation: *mut c_uint,
    ) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_generation(device, generation) }
    }

    pub unsafe fn nvmlDeviceGetGpuMaxPcieLinkGeneration(
        device: nvmlDevice_t,
        generation: *mut c_uint,
    ) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_generation(device, generation) }
    }

    pub unsafe fn nvmlDeviceGetCurrPcieLinkWidth(device: nvmlDevice_t, lanes: *mut c_uint) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_constant(device, lanes, LANES) }
    }

    pub unsafe fn nvmlDeviceGetMaxPcieLinkWidth(device: nvmlDevice_t, lanes: *mut c_uint) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_constant(device, lanes, LANES) }
    }

    /// 0 KB/s: the model counts copies by their time, not by the bytes on the bus.
    pub unsafe fn nvmlDeviceGetPcieThroughput(
        device: nvmlDevice_t,
        counter: nvmlPcieUtilCounter_t,
        value: *mut c_uint,
    ) -> NvmlResult {
        if counter > 1 {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        // SAFETY: the caller's pointer.
        unsafe { put_constant(device, value, 0) }
    }

    pub unsafe fn nvmlDeviceGetPcieReplayCounter(device: nvmlDevice_t, value: *mut c_uint) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put_constant(device, value, 0) }
    }

    pub unsafe fn nvmlDeviceGetNvLinkState(
        device: nvmlDevice_t,
        link: c_uint,
        active: *mut nvmlEnableState_t,
    ) -> NvmlResult {
        Device::of(device)?.link(link)?;
        // SAFETY: the caller's pointer.
        unsafe { put(active, 1) }
    }

    pub unsafe fn nvmlDeviceGetNvLinkVersion(
        device: nvmlDevice_t,
        link: c_uint,
        version: *mut c_uint,
    ) -> NvmlResult {
        let device = Device::of(device)?;
        device.link(link)?;
        // SAFETY: the caller's pointer.
        unsafe { put(version, if device.facts().compute_major < 9 { 3 } else { 4 }) }
    }

    pub unsafe fn nvmlDeviceGetNvLinkCapability(
        device: nvmlDevice_t,
        link: c_uint,
        capability: nvmlNvLinkCapability_t,
        answer: *mut c_uint,
    ) -> NvmlResult {
        Device::of(device)?.link(link)?;
        // Peer access, system memory, atomics of both and a valid link; no SLI bridge.
        let has = match capability {
            0..4 | 5 => 1,
            4 => 0,
            _ => return Err(NvmlError::INVALID_ARGUMENT),
        };
        // SAFETY: the caller's pointer.
        unsafe { put(answer, has) }
    }

    pub unsafe fn nvmlDeviceGetP2PStatus(
        one: nvmlDevice_t,
        other: nvmlDevice_t,
        index: nvmlGpuP2PCapsIndex_t,
        status: *mut nvmlGpuP2PStatus_t,
    ) -> NvmlResult {
        let (one, other) = (Device::of(one)?, Device::of(other)?);
        let linked = one.links().is_ok() && other.links().is_ok();
        let answer = match index {
            capability::NVLINK | capability::ATOMICS if !linked => P2P_NOT_SUPPORTED,
            ..capability::UNKNOWN => P2P_OK,
            _ => return Err(NvmlError::INVALID_ARGUMENT),
        };
        // SAFETY: the caller's pointer.
        unsafe { put(status, answer) }
    }

    pub unsafe fn nvmlDeviceGetTopologyCommonAncestor(
        one: nvmlDevice_t,
        other: nvmlDevice_t,
        path: *mut nvmlGpuTopologyLevel_t,
    ) -> NvmlResult {
        let ancestor = Device::of(one)?.ancestor(&Device::of(other)?);
        // SAFETY: the caller's pointer.
        unsafe { put(path, ancestor) }
    }

    /// The devices that meet this one at `level`; `*count` says how many there is room for, none to ask.
    pub unsafe fn nvmlDeviceGetTopologyNearestGpus(
        device: nvmlDevice_t,
        level: nvmlGpuTopologyLevel_t,
        count: *mut c_uint,
        array: *mut nvmlDevice_t,
    ) -> NvmlResult {
        let device = Device::of(device)?;
        if count.is_null() {
            return Err(NvmlError::INVALID_ARGUMENT);
        }
        let meets = |handle: &nvmlDevice_t| {
            Device::of(*handle).is_ok_and(|o| o.index != device.index && device.ancestor(&o) == level)
        };
        let near: Vec<_> = handles().filter(meets).collect();
        // SAFETY: the caller's count, and its array of so many places.
        unsafe {
            let room = count.replace(near.len() as c_uint) as usize;
            if !array.is_null() {
                array.copy_from_nonoverlapping(near.as_ptr(), near.len().min(room));
            }
        }
        Ok(())
    }

    pub unsafe fn nvmlDeviceGetNumaNodeId(device: nvmlDevice_t, node: *mut c_uint) -> NvmlResult {
        let device = Device::of(device)?;
        let number = c_uint::try_from(device.facts().numa_node).map_err(|_| NvmlError::NOT_SUPPORTED)?;
        // SAFETY: the caller's pointer.
        unsafe { put(node, number) }
    }
}
