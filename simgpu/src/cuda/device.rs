//! What a program can ask about devices, except attributes (`attribute.rs`).

use super::Sim;
use super::attribute;
use super::edge::{needed, put, put_text, text};
use super::node::{Device, node};
use driver::prelude::*;

/// `0000:01:00.0`, as this API writes it.
fn bus_id(device: &Device) -> String {
    let facts = device.facts;
    format!(
        "{:04x}:{:02x}:{:02x}.0",
        facts.pci_domain, facts.pci_bus, facts.pci_device
    )
}

/// Domain, bus and device of `[domain]:[bus]:[device].[function]` or `[bus]:[device].[function]`.
fn parse_bus_id(text: &str) -> Option<(u32, u32, u32)> {
    let text = text.split_once('.').map_or(text, |(before, _)| before);
    let parts: Vec<u32> = text
        .split(':')
        .map(|part| u32::from_str_radix(part, 16))
        .collect::<Result<_, _>>()
        .ok()?;
    match parts[..] {
        [domain, bus, device] => Some((domain, bus, device)),
        [bus, device] => Some((0, bus, device)),
        _ => None,
    }
}

impl Sim {
    pub(super) fn cuDeviceGet(_: StreamApi, device: *mut CUdevice, ordinal: c_int) -> CuResult {
        let node = node()?;
        needed(device)?;
        let found = usize::try_from(ordinal).ok().and_then(|i| node.devices.get(i));
        put(device, found.ok_or(CudaError::INVALID_DEVICE)?.ordinal)
    }

    pub(super) fn cuDeviceGetCount(_: StreamApi, count: *mut c_int) -> CuResult {
        put(count, node()?.devices.len() as c_int)
    }

    pub(super) fn cuDeviceGetName(_: StreamApi, name: *mut c_char, len: c_int, dev: CUdevice) -> CuResult {
        let device = node()?.device(dev)?;
        put_text(
            name,
            usize::try_from(len).unwrap_or(0),
            device.facts.name.as_str(),
        )
    }

    pub(super) fn cuDeviceGetUuid(_: StreamApi, uuid: *mut CUuuid, dev: CUdevice) -> CuResult {
        let device = node()?.device(dev)?;
        put(
            uuid,
            CUuuid {
                bytes: device.facts.uuid,
            },
        )
    }

    pub(super) fn cuDeviceGetUuid_v2(api: StreamApi, uuid: *mut CUuuid, dev: CUdevice) -> CuResult {
        Sim::cuDeviceGetUuid(api, uuid, dev)
    }

    pub(super) fn cuDeviceTotalMem_v2(_: StreamApi, bytes: *mut usize, dev: CUdevice) -> CuResult {
        let device = node()?.device(dev)?;
        put(bytes, device.facts.memory_bytes as usize)
    }

    pub(super) fn cuDeviceGetAttribute(
        _: StreamApi,
        pi: *mut c_int,
        attrib: CUdevice_attribute,
        dev: CUdevice,
    ) -> CuResult {
        let device = node()?.device(dev)?;
        needed(pi)?;
        put(
            pi,
            attribute::value(device, attrib).ok_or(CudaError::INVALID_VALUE)?,
        )
    }

    pub(super) fn cuDeviceComputeCapability(
        _: StreamApi,
        major: *mut c_int,
        minor: *mut c_int,
        dev: CUdevice,
    ) -> CuResult {
        let device = node()?.device(dev)?;
        needed(major)?;
        needed(minor)?;
        put(major, device.facts.compute_major as c_int)?;
        put(minor, device.facts.compute_minor as c_int)
    }

    pub(super) fn cuDeviceGetProperties(_: StreamApi, prop: *mut CUdevprop, dev: CUdevice) -> CuResult {
        let device = node()?.device(dev)?;
        needed(prop)?;
        let of = |id| attribute::value(device, id).unwrap_or(0);
        put(
            prop,
            CUdevprop {
                maxThreadsPerBlock: of(1),
                maxThreadsDim: [of(2), of(3), of(4)],
                maxGridSize: [of(5), of(6), of(7)],
                sharedMemPerBlock: of(8),
                totalConstantMemory: of(9),
                SIMDWidth: of(10),
                memPitch: of(11),
                regsPerBlock: of(12),
                clockRate: of(13),
                textureAlign: of(14),
            },
        )
    }

    pub(super) fn cuDeviceGetPCIBusId(_: StreamApi, pci: *mut c_char, len: c_int, dev: CUdevice) -> CuResult {
        let device = node()?.device(dev)?;
        put_text(pci, usize::try_from(len).unwrap_or(0), &bus_id(device))
    }

    pub(super) fn cuDeviceGetByPCIBusId(_: StreamApi, dev: *mut CUdevice, pci: *const c_char) -> CuResult {
        let node = node()?;
        needed(dev)?;
        let wanted = parse_bus_id(text(pci)?).ok_or(CudaError::INVALID_VALUE)?;
        let at = |device: &&Device| {
            (
                device.facts.pci_domain,
                device.facts.pci_bus,
                device.facts.pci_device,
            ) == wanted
        };
        put(
            dev,
            node.devices
                .iter()
                .find(at)
                .ok_or(CudaError::INVALID_DEVICE)?
                .ordinal,
        )
    }

    pub(super) fn cuDeviceGetExecAffinitySupport(
        _: StreamApi,
        pi: *mut c_int,
        _kind: CUexecAffinityType,
        dev: CUdevice,
    ) -> CuResult {
        node()?.device(dev)?;
        // Only MPS clients can have a share of the SMs.
        put(pi, 0)
    }

    pub(super) fn cuDeviceGetTexture1DLinearMaxWidth(
        _: StreamApi,
        width: *mut usize,
        _format: CUarray_format,
        channels: c_uint,
        dev: CUdevice,
    ) -> CuResult {
        let device = node()?.device(dev)?;
        needed(width)?;
        if !matches!(channels, 1 | 2 | 4) {
            return Err(CudaError::INVALID_VALUE);
        }
        put(
            width,
            attribute::value(device, attribute::TEXTURE1D_LINEAR_WIDTH).unwrap_or(0) as usize,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bus_ids_in_every_form() {
        assert_eq!(parse_bus_id("0000:01:00.0"), Some((0, 1, 0)));
        assert_eq!(parse_bus_id("00000000:3B:00.0"), Some((0, 0x3b, 0)));
        assert_eq!(parse_bus_id("c1:00"), Some((0, 0xc1, 0)));
        assert_eq!(parse_bus_id("gpu0"), None);
    }
}
