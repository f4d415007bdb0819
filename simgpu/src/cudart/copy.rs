//! Copies of one range.

use super::code;
use super::context;
use super::lookup::DRIVER;
use driver::prelude::*;

/// `cudaMemcpyKind`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    HostToHost,
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    /// By what the addresses are.
    Default,
}

impl Kind {
    pub fn of(code: c_uint) -> Result<Kind, CudaError> {
        Ok(match code {
            0 => Kind::HostToHost,
            1 => Kind::HostToDevice,
            2 => Kind::DeviceToHost,
            3 => Kind::DeviceToDevice,
            4 => Kind::Default,
            _ => return Err(code::INVALID_MEMCPY_DIRECTION),
        })
    }
}

pub unsafe fn linear(
    api: StreamApi,
    to: CUdeviceptr,
    from: CUdeviceptr,
    bytes: usize,
    kind: c_uint,
) -> CuResult {
    let kind = Kind::of(kind)?;
    context::current()?;
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller vouches for host ranges, the driver checks the device's.
    unsafe {
        match kind {
            Kind::HostToDevice => DRIVER.cuMemcpyHtoD_v2(api, to, from as *const c_void, bytes),
            Kind::DeviceToHost => DRIVER.cuMemcpyDtoH_v2(api, to as *mut c_void, from, bytes),
            Kind::DeviceToDevice => DRIVER.cuMemcpyDtoD_v2(api, to, from, bytes),
            Kind::HostToHost | Kind::Default => DRIVER.cuMemcpy(api, to, from, bytes),
        }
    }
}

pub unsafe fn linear_ordered(
    api: StreamApi,
    to: CUdeviceptr,
    from: CUdeviceptr,
    bytes: usize,
    kind: c_uint,
    stream: CUstream,
) -> CuResult {
    let kind = Kind::of(kind)?;
    context::current()?;
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller vouches for host ranges, the driver checks the device's and the stream.
    unsafe {
        match kind {
            Kind::HostToDevice => DRIVER.cuMemcpyHtoDAsync_v2(api, to, from as *const c_void, bytes, stream),
            Kind::DeviceToHost => DRIVER.cuMemcpyDtoHAsync_v2(api, to as *mut c_void, from, bytes, stream),
            Kind::DeviceToDevice => DRIVER.cuMemcpyDtoDAsync_v2(api, to, from, bytes, stream),
            Kind::HostToHost | Kind::Default => DRIVER.cuMemcpyAsync(api, to, from, bytes, stream),
        }
    }
}

pub unsafe fn between_devices(
    to: CUdeviceptr,
    to_device: c_int,
    from: CUdeviceptr,
    from_device: c_int,
    bytes: usize,
) -> CuResult {
    context::current()?;
    let (target, source) = (context::primary(to_device)?, context::primary(from_device)?);
    // SAFETY: contexts of the driver's; it checks the ranges.
    unsafe { DRIVER.cuMemcpyPeer(StreamApi::Legacy, to, target, from, source, bytes) }
}

pub unsafe fn between_devices_ordered(
    to: CUdeviceptr,
    to_device: c_int,
    from: CUdeviceptr,
    from_device: c_int,
    bytes: usize,
    stream: CUstream,
) -> CuResult {
    context::current()?;
    let (target, source) = (context::primary(to_device)?, context::primary(from_device)?);
    // SAFETY: contexts of the driver's; it checks the ranges and the stream.
    unsafe { DRIVER.cuMemcpyPeerAsync(StreamApi::Legacy, to, target, from, source, bytes, stream) }
}
