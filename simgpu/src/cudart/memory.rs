//! Allocation. Every kind ends in the driver's function of the same kind, so that a cap on that is a cap here.

use super::context;
use super::lookup::DRIVER;
use super::structs::{ChannelFormat, Extent, PitchedPointer};
use driver::prelude::*;
use std::ptr::null_mut;

/// Rows of a pitched allocation are aligned for elements of this size.
const PITCH_ELEMENT: c_uint = 4;

/// Nothing was asked for: null, and success.
///
/// # Safety
/// `to` is null or valid for a write.
unsafe fn nothing(to: *mut *mut c_void) -> CuResult {
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: not null, else as the caller says.
    unsafe { to.write(null_mut()) };
    Ok(())
}

pub unsafe fn allocate(to: *mut *mut c_void, bytes: usize) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer.
    unsafe {
        match bytes {
            0 => nothing(to),
            _ => DRIVER.cuMemAlloc_v2(StreamApi::Legacy, to.cast(), bytes),
        }
    }
}

pub unsafe fn allocate_managed(to: *mut *mut c_void, bytes: usize, flags: c_uint) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer.
    unsafe { DRIVER.cuMemAllocManaged(StreamApi::Legacy, to.cast(), bytes, flags) }
}

pub unsafe fn allocate_pitched(
    to: *mut *mut c_void,
    pitch: *mut usize,
    width: usize,
    height: usize,
) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointers.
    unsafe {
        if width == 0 || height == 0 {
            return nothing(to);
        }
        DRIVER.cuMemAllocPitch_v2(StreamApi::Legacy, to.cast(), pitch, width, height, PITCH_ELEMENT)
    }
}

pub unsafe fn allocate_volume(to: *mut PitchedPointer, extent: Extent) -> CuResult {
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    let rows = extent
        .height
        .checked_mul(extent.depth)
        .ok_or(CudaError::OUT_OF_MEMORY)?;
    let (mut pointer, mut pitch) = (null_mut(), 0);
    // SAFETY: locals, then the caller's struct, which is not null.
    unsafe {
        allocate_pitched(&mut pointer, &mut pitch, extent.width, rows)?;
        to.write(PitchedPointer {
            pointer,
            pitch,
            xsize: extent.width,
            ysize: extent.height,
        });
    }
    Ok(())
}

pub unsafe fn allocate_ordered(
    api: StreamApi,
    to: *mut *mut c_void,
    bytes: usize,
    stream: CUstream,
) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer and stream.
    unsafe {
        match bytes {
            0 => nothing(to),
            _ => DRIVER.cuMemAllocAsync(api, to.cast(), bytes, stream),
        }
    }
}

pub unsafe fn allocate_from_pool(
    api: StreamApi,
    to: *mut *mut c_void,
    bytes: usize,
    pool: CUmemoryPool,
    stream: CUstream,
) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer, pool and stream.
    unsafe {
        match bytes {
            0 => nothing(to),
            _ => DRIVER.cuMemAllocFromPoolAsync(api, to.cast(), bytes, pool, stream),
        }
    }
}

/// The flags of `cudaMallocHost` are none.
pub unsafe fn allocate_pinned(to: *mut *mut c_void, bytes: usize) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer.
    unsafe { DRIVER.cuMemHostAlloc(StreamApi::Legacy, to, bytes, 0) }
}

pub unsafe fn free(pointer: CUdeviceptr) -> CuResult {
    context::current()?;
    // SAFETY: the driver checks the address; 0 is allowed.
    unsafe { DRIVER.cuMemFree_v2(StreamApi::Legacy, pointer) }
}

pub unsafe fn free_ordered(api: StreamApi, pointer: CUdeviceptr, stream: CUstream) -> CuResult {
    context::current()?;
    if pointer == 0 {
        return Ok(());
    }
    // SAFETY: the driver checks the address.
    unsafe { DRIVER.cuMemFreeAsync(api, pointer, stream) }
}

pub unsafe fn free_host(pointer: *mut c_void) -> CuResult {
    context::current()?;
    if pointer.is_null() {
        return Ok(());
    }
    // SAFETY: the driver checks the address.
    unsafe { DRIVER.cuMemFreeHost(StreamApi::Legacy, pointer) }
}

/// `CUarray_format` of channels that are all `bits` wide.
fn array_format(bits: c_int, kind: c_uint) -> Option<c_uint> {
    Some(match (kind, bits) {
        (1, 8) => 0x01,
        (1, 16) => 0x02,
        (1, 32) => 0x03,
        (0, 8) => 0x08,
        (0, 16) => 0x09,
        (0, 32) => 0x0a,
        (2, 16) => 0x10,
        (2, 32) => 0x20,
        _ => return None,
    })
}

/// Format and number of channels; the used ones come first and are equally wide.
pub(super) fn array_channels(format: &ChannelFormat) -> Result<(c_uint, c_uint), CudaError> {
    let bits = [format.x, format.y, format.z, format.w];
    let count = bits.iter().take_while(|&&b| b != 0).count();
    let equal = bits[..count].iter().all(|&b| b == format.x) && bits[count..].iter().all(|&b| b == 0);
    match array_format(format.x, format.kind) {
        Some(code) if equal && matches!(count, 1 | 2 | 4) => Ok((code, count as c_uint)),
        _ => Err(CudaError::INVALID_VALUE),
    }
}

pub unsafe fn allocate_array(
    to: *mut CUarray,
    format: *const ChannelFormat,
    width: usize,
    height: usize,
    flags: c_uint,
) -> CuResult {
    // SAFETY: handed on.
    unsafe {
        allocate_array_volume(
            to,
            format,
            Extent {
                width,
                height,
                depth: 0,
            },
            flags,
        )
    }
}

pub unsafe fn allocate_array_volume(
    to: *mut CUarray,
    format: *const ChannelFormat,
    extent: Extent,
    flags: c_uint,
) -> CuResult {
    context::current()?;
    // SAFETY: null or the caller's struct.
    let format = unsafe { format.as_ref() }.ok_or(CudaError::INVALID_VALUE)?;
    let (code, channels) = array_channels(format)?;
    let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
        Width: extent.width,
        Height: extent.height,
        Depth: extent.depth,
        Format: code,
        NumChannels: channels,
        Flags: flags,
    };
    // SAFETY: the caller's pointer and a local.
    unsafe { DRIVER.cuArray3DCreate_v2(StreamApi::Legacy, to, &descriptor) }
}

pub unsafe fn free_array(array: CUarray) -> CuResult {
    context::current()?;
    if array.is_null() {
        return Ok(());
    }
    // SAFETY: the driver checks the handle.
    unsafe { DRIVER.cuArrayDestroy(StreamApi::Legacy, array) }
}

/// The runtime's flags are 32 bits wide, the driver's 64.
pub unsafe fn export_pool(to: *mut c_void, pool: CUmemoryPool, kind: c_uint, flags: c_uint) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer; the driver checks the rest.
    unsafe { DRIVER.cuMemPoolExportToShareableHandle(StreamApi::Legacy, to, pool, kind, flags.into()) }
}

pub unsafe fn import_pool(to: *mut CUmemoryPool, from: *mut c_void, kind: c_uint, flags: c_uint) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer; the driver checks the rest.
    unsafe { DRIVER.cuMemPoolImportFromShareableHandle(StreamApi::Legacy, to, from, kind, flags.into()) }
}
