//! Variables of the program's images, named by their host shadows.

use super::code;
use super::context;
use super::copy;
use super::device::put;
use super::kernel::variable;
use driver::prelude::*;

pub unsafe fn address(to: *mut CUdeviceptr, symbol: *const c_void) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer.
    unsafe { put(to, variable(symbol)?.0) }
}

pub unsafe fn size(to: *mut usize, symbol: *const c_void) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer.
    unsafe { put(to, variable(symbol)?.1) }
}

/// Where `bytes` from `offset` on lie; `INVALID_VALUE` if they are not all in the variable.
fn part(symbol: *const c_void, offset: usize, bytes: usize) -> Result<CUdeviceptr, CudaError> {
    context::current()?;
    let (address, size) = variable(symbol)?;
    match offset.checked_add(bytes) {
        Some(end) if end <= size => Ok(address + offset as u64),
        _ => Err(CudaError::INVALID_VALUE),
    }
}

const HOST_TO_DEVICE: c_uint = 1;
const DEVICE_TO_HOST: c_uint = 2;
const DEVICE_TO_DEVICE: c_uint = 3;
const DEFAULT: c_uint = 4;

fn to_device(kind: c_uint) -> CuResult {
    match kind {
        HOST_TO_DEVICE | DEVICE_TO_DEVICE | DEFAULT => Ok(()),
        _ => Err(code::INVALID_MEMCPY_DIRECTION),
    }
}

fn from_device(kind: c_uint) -> CuResult {
    match kind {
        DEVICE_TO_HOST | DEVICE_TO_DEVICE | DEFAULT => Ok(()),
        _ => Err(code::INVALID_MEMCPY_DIRECTION),
    }
}

pub unsafe fn write(
    api: StreamApi,
    symbol: *const c_void,
    from: CUdeviceptr,
    bytes: usize,
    offset: usize,
    kind: c_uint,
) -> CuResult {
    to_device(kind)?;
    // SAFETY: handed on, within the variable.
    unsafe { copy::linear(api, part(symbol, offset, bytes)?, from, bytes, kind) }
}

#[allow(clippy::too_many_arguments)]
pub unsafe fn write_ordered(
    api: StreamApi,
    symbol: *const c_void,
    from: CUdeviceptr,
    bytes: usize,
    offset: usize,
    kind: c_uint,
    stream: CUstream,
) -> CuResult {
    to_device(kind)?;
    // SAFETY: handed on, within the variable.
    unsafe { copy::linear_ordered(api, part(symbol, offset, bytes)?, from, bytes, kind, stream) }
}

pub unsafe fn read(
    api: StreamApi,
    to: CUdeviceptr,
    symbol: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_uint,
) -> CuResult {
    from_device(kind)?;
    // SAFETY: handed on, within the variable.
    unsafe { copy::linear(api, to, part(symbol, offset, bytes)?, bytes, kind) }
}

#[allow(clippy::too_many_arguments)]
pub unsafe fn read_ordered(
    api: StreamApi,
    to: CUdeviceptr,
    symbol: *const c_void,
    bytes: usize,
    offset: usize,
    kind: c_uint,
    stream: CUstream,
) -> CuResult {
    from_device(kind)?;
    // SAFETY: handed on, within the variable.
    unsafe { copy::linear_ordered(api, to, part(symbol, offset, bytes)?, bytes, kind, stream) }
}
