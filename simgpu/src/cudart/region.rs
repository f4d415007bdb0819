//! Copies of rectangles and boxes.

use super::context;
use super::copy::Kind;
use super::lookup::DRIVER;
use super::structs::{Copy3D, PitchedPointer};
use driver::prelude::*;
use std::ptr::null_mut;

/// `CUmemorytype` of source and target.
fn memory_types(kind: Kind) -> (c_uint, c_uint) {
    match kind {
        Kind::HostToHost => (CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST),
        Kind::HostToDevice => (CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE),
        Kind::DeviceToHost => (CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST),
        Kind::DeviceToDevice => (CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE),
        Kind::Default => (CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED),
    }
}

/// The driver's form of a copy of `height` rows of `width` bytes.
fn rectangle(
    (to, to_pitch): (CUdeviceptr, usize),
    (from, from_pitch): (CUdeviceptr, usize),
    (width, height): (usize, usize),
    kind: Kind,
) -> CUDA_MEMCPY2D {
    let (source, target) = memory_types(kind);
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: source,
        srcHost: from as *const c_void,
        srcDevice: from,
        srcArray: null_mut(),
        srcPitch: from_pitch,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: target,
        dstHost: to as *mut c_void,
        dstDevice: to,
        dstArray: null_mut(),
        dstPitch: to_pitch,
        WidthInBytes: width,
        Height: height,
    }
}

#[allow(clippy::too_many_arguments)]
pub unsafe fn rows(
    api: StreamApi,
    to: CUdeviceptr,
    to_pitch: usize,
    from: CUdeviceptr,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_uint,
) -> CuResult {
    let kind = Kind::of(kind)?;
    context::current()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    let copy = rectangle((to, to_pitch), (from, from_pitch), (width, height), kind);
    // SAFETY: the caller vouches for host ranges, the driver checks the device's. The unaligned form takes
    // any pitch, as the runtime does.
    unsafe { DRIVER.cuMemcpy2DUnaligned_v2(api, &copy) }
}

#[allow(clippy::too_many_arguments)]
pub unsafe fn rows_ordered(
    api: StreamApi,
    to: CUdeviceptr,
    to_pitch: usize,
    from: CUdeviceptr,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_uint,
    stream: CUstream,
) -> CuResult {
    let kind = Kind::of(kind)?;
    context::current()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    let copy = rectangle((to, to_pitch), (from, from_pitch), (width, height), kind);
    // SAFETY: as in `rows`.
    unsafe { DRIVER.cuMemcpy2DAsync_v2(api, &copy, stream) }
}

/// One end of a box copy: memory type, first byte's column, host address, device address, array.
fn end(
    array: CUarray,
    x: usize,
    memory: &PitchedPointer,
    kind: c_uint,
) -> (c_uint, *mut c_void, CUdeviceptr, usize) {
    let address = memory.pointer as CUdeviceptr;
    match array.is_null() {
        true => (kind, memory.pointer, address, x),
        false => (CU_MEMORYTYPE_ARRAY, null_mut(), 0, x),
    }
}

/// The driver's form; positions and widths are in bytes by now.
fn volume(copy: &Copy3D) -> Result<CUDA_MEMCPY3D, CudaError> {
    let (source, target) = memory_types(Kind::of(copy.kind)?);
    let (from, to) = (copy.source_position, copy.target_position);
    let (source, source_host, source_device, source_x) = end(copy.source_array, from.x, &copy.source, source);
    let (target, target_host, target_device, target_x) = end(copy.target_array, to.x, &copy.target, target);
    Ok(CUDA_MEMCPY3D {
        srcXInBytes: source_x,
        srcY: from.y,
        srcZ: from.z,
        srcLOD: 0,
        srcMemoryType: source,
        srcHost: source_host,
        srcDevice: source_device,
        srcArray: copy.source_array,
        reserved0: null_mut(),
        srcPitch: copy.source.pitch,
        srcHeight: copy.source.ysize,
        dstXInBytes: target_x,
        dstY: to.y,
        dstZ: to.z,
        dstLOD: 0,
        dstMemoryType: target,
        dstHost: target_host,
        dstDevice: target_device,
        dstArray: copy.target_array,
        reserved1: null_mut(),
        dstPitch: copy.target.pitch,
        dstHeight: copy.target.ysize,
        WidthInBytes: copy.extent.width,
        Height: copy.extent.height,
        Depth: copy.extent.depth,
    })
}

/// Bytes of one element of an array.
fn element_bytes(array: CUarray) -> Result<usize, CudaError> {
    let mut descriptor = CUDA_ARRAY3D_DESCRIPTOR {
        Width: 0,
        Height: 0,
        Depth: 0,
        Format: 0,
        NumChannels: 0,
        Flags: 0,
    };
    // SAFETY: the driver checks the handle; a local to write to.
    unsafe { DRIVER.cuArray3DGetDescriptor_v2(StreamApi::Legacy, &mut descriptor, array) }?;
    let channel = match descriptor.Format {
        0x01 | 0x08 => 1,
        0x02 | 0x09 | 0x10 => 2,
        0x03 | 0x0a | 0x20 => 4,
        _ => return Err(CudaError::NOT_SUPPORTED),
    };
    Ok(channel * descriptor.NumChannels as usize)
}

/// The caller's struct in the driver's form, with widths in bytes.
///
/// # Safety
/// `copy` is null or valid for a read.
unsafe fn prepared(copy: *const Copy3D) -> Result<CUDA_MEMCPY3D, CudaError> {
    if copy.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: not null, else as the caller says.
    let mut copy = unsafe { copy.read() };
    // Where an array takes part, the extent counts its elements, and a position within it too.
    if !copy.source_array.is_null() || !copy.target_array.is_null() {
        let array = if copy.source_array.is_null() {
            copy.target_array
        } else {
            copy.source_array
        };
        copy.extent.width *= element_bytes(array)?;
        for (array, x) in [
            (copy.source_array, &mut copy.source_position.x),
            (copy.target_array, &mut copy.target_position.x),
        ] {
            if !array.is_null() {
                *x *= element_bytes(array)?;
            }
        }
    }
    volume(&copy)
}

pub unsafe fn boxes(api: StreamApi, copy: *const Copy3D) -> CuResult {
    context::current()?;
    // SAFETY: the caller's struct; it vouches for host ranges, the driver checks the device's.
    unsafe { DRIVER.cuMemcpy3D_v2(api, &prepared(copy)?) }
}

pub unsafe fn boxes_ordered(api: StreamApi, copy: *const Copy3D, stream: CUstream) -> CuResult {
    context::current()?;
    // SAFETY: as in `boxes`.
    unsafe { DRIVER.cuMemcpy3DAsync_v2(api, &prepared(copy)?, stream) }
}
