//! Memory set to one byte value.

use super::context;
use super::lookup::DRIVER;
use super::structs::{Extent, PitchedPointer};
use driver::prelude::*;

/// A stream, or none: then the call waits.
type When = Option<CUstream>;

unsafe fn bytes(api: StreamApi, to: CUdeviceptr, value: c_int, count: usize, when: When) -> CuResult {
    context::current()?;
    if count == 0 {
        return Ok(());
    }
    // SAFETY: the driver checks the range and the stream.
    unsafe {
        match when {
            None => DRIVER.cuMemsetD8_v2(api, to, value as c_uchar, count),
            Some(stream) => DRIVER.cuMemsetD8Async(api, to, value as c_uchar, count, stream),
        }
    }
}

unsafe fn rows(
    api: StreamApi,
    (to, pitch): (CUdeviceptr, usize),
    value: c_int,
    (width, height): (usize, usize),
    when: When,
) -> CuResult {
    context::current()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    // SAFETY: the driver checks the range and the stream.
    unsafe {
        match when {
            None => DRIVER.cuMemsetD2D8_v2(api, to, pitch, value as c_uchar, width, height),
            Some(stream) => DRIVER.cuMemsetD2D8Async(api, to, pitch, value as c_uchar, width, height, stream),
        }
    }
}

/// One rectangle after the other.
unsafe fn slices(api: StreamApi, to: PitchedPointer, value: c_int, extent: Extent, when: When) -> CuResult {
    let slice = to.pitch.checked_mul(to.ysize).ok_or(CudaError::INVALID_VALUE)?;
    for z in 0..extent.depth {
        let start = (to.pointer as CUdeviceptr).wrapping_add((slice.wrapping_mul(z)) as u64);
        // SAFETY: handed on.
        unsafe { rows(api, (start, to.pitch), value, (extent.width, extent.height), when) }?;
    }
    Ok(())
}

pub unsafe fn linear(api: StreamApi, to: CUdeviceptr, value: c_int, count: usize) -> CuResult {
    // SAFETY: handed on.
    unsafe { bytes(api, to, value, count, None) }
}

pub unsafe fn linear_ordered(
    api: StreamApi,
    to: CUdeviceptr,
    value: c_int,
    count: usize,
    stream: CUstream,
) -> CuResult {
    // SAFETY: handed on.
    unsafe { bytes(api, to, value, count, Some(stream)) }
}

pub unsafe fn rectangle(
    api: StreamApi,
    to: CUdeviceptr,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
) -> CuResult {
    // SAFETY: handed on.
    unsafe { rows(api, (to, pitch), value, (width, height), None) }
}

#[allow(clippy::too_many_arguments)]
pub unsafe fn rectangle_ordered(
    api: StreamApi,
    to: CUdeviceptr,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
    stream: CUstream,
) -> CuResult {
    // SAFETY: handed on.
    unsafe { rows(api, (to, pitch), value, (width, height), Some(stream)) }
}

pub unsafe fn volume(api: StreamApi, to: PitchedPointer, value: c_int, extent: Extent) -> CuResult {
    // SAFETY: handed on.
    unsafe { slices(api, to, value, extent, None) }
}

pub unsafe fn volume_ordered(
    api: StreamApi,
    to: PitchedPointer,
    value: c_int,
    extent: Extent,
    stream: CUstream,
) -> CuResult {
    // SAFETY: handed on.
    unsafe { slices(api, to, value, extent, Some(stream)) }
}
