//! The array functions of the API.
//!
//! Next file of the walk: `array_copy.rs`.

use super::array::{self, Store};
use super::array_form::{ARRAY_UNIT, Form};
use super::copy::{Return, act};
use super::current::current;
use super::edge::{element, get as read, needed, put};
use super::node::node;
use super::physical;
use super::stream::entry;
use super::{Sim, capture};
use driver::prelude::*;
use std::sync::PoisonError;

const GENERIC_HANDLE: u32 = 0;

/// The two-dimensional form of a descriptor.
fn widened(descriptor: CUDA_ARRAY_DESCRIPTOR) -> CUDA_ARRAY3D_DESCRIPTOR {
    CUDA_ARRAY3D_DESCRIPTOR {
        Width: descriptor.Width,
        Height: descriptor.Height,
        Depth: 0,
        Format: descriptor.Format,
        NumChannels: descriptor.NumChannels,
        Flags: 0,
    }
}

/// What memory mapped later has to have: `INVALID_VALUE` for an array that has its own.
fn requirements(
    to: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS,
    descriptor: &CUDA_ARRAY3D_DESCRIPTOR,
    bytes: u64,
) -> CuResult {
    if !array::is_mapped_later(descriptor) {
        return Err(CudaError::INVALID_VALUE);
    }
    put(
        to,
        CUDA_ARRAY_MEMORY_REQUIREMENTS {
            size: bytes.next_multiple_of(ARRAY_UNIT) as usize,
            alignment: ARRAY_UNIT as usize,
            reserved: [0; 4],
        },
    )
}

fn sparse_properties(
    to: *mut CUDA_ARRAY_SPARSE_PROPERTIES,
    descriptor: &CUDA_ARRAY3D_DESCRIPTOR,
    form: Form,
    levels: u32,
) -> CuResult {
    let tile = form
        .sparse_tile()
        .filter(|_| descriptor.Flags & CUDA_ARRAY3D_SPARSE != 0);
    let tile = tile.ok_or(CudaError::INVALID_VALUE)?;
    // Levels smaller than a tile in any direction lie in the tail.
    let fits = |level: &u32| {
        let form = form.level(*level);
        let extent = [form.width, form.height, form.depth];
        extent
            .iter()
            .zip(tile)
            .all(|(extent, tile)| *extent >= u64::from(tile))
    };
    let first = (0..levels).find(|level| !fits(level)).unwrap_or(levels);
    let tail: u64 = (first..levels).map(|level| form.level(level).tiled_bytes()).sum();
    put(
        to,
        CUDA_ARRAY_SPARSE_PROPERTIES {
            tileExtent: tile,
            miptailFirstLevel: first,
            miptailSize: tail.next_multiple_of(ARRAY_UNIT),
            flags: 0,
            reserved: [0; 4],
        },
    )
}

/// One change of what a sparse array is mapped to, in stream order.
fn map(api: StreamApi, change: CUarrayMapInfo, hStream: CUstream) -> CuResult {
    let (node, stream) = entry(api, hStream)?;
    let tiles = match change.resourceType {
        CU_RESOURCE_TYPE_ARRAY => match &array::array(change.resource)?.store {
            Store::Mapped(tiles) => tiles.clone(),
            Store::Own { .. } => return Err(CudaError::INVALID_VALUE),
        },
        CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => array::mipmapped(change.resource)?
            .tiles
            .clone()
            .ok_or(CudaError::INVALID_VALUE)?,
        _ => return Err(CudaError::INVALID_VALUE),
    };
    if change.subresourceType > 1 || change.flags != 0 || change.memHandleType != GENERIC_HANDLE {
        return Err(CudaError::INVALID_VALUE);
    }
    let fresh = match change.memOperationType {
        CU_MEM_OPERATION_TYPE_MAP => Some(physical::get(change.memHandle)?),
        CU_MEM_OPERATION_TYPE_UNMAP => None,
        _ => return Err(CudaError::INVALID_VALUE),
    };
    let key = (change.subresourceType, change.subresource);
    act(node, stream, Return::AtOnce, move || {
        let mut tiles = tiles.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match fresh {
            Some(physical) => tiles.insert(key, physical),
            None => tiles.remove(&key),
        };
        drop(tiles);
        drop(before);
    })
}

impl Sim {
    pub(super) fn cuArray3DCreate_v2(
        _: StreamApi,
        pHandle: *mut CUarray,
        pAllocateArray: *const CUDA_ARRAY3D_DESCRIPTOR,
    ) -> CuResult {
        let (_, context) = current()?;
        needed(pHandle)?;
        capture::unsafe_call()?;
        put(pHandle, array::create(context, &read(pAllocateArray)?)?)
    }

    pub(super) fn cuArrayCreate_v2(
        _: StreamApi,
        pHandle: *mut CUarray,
        pAllocateArray: *const CUDA_ARRAY_DESCRIPTOR,
    ) -> CuResult {
        let (_, context) = current()?;
        needed(pHandle)?;
        capture::unsafe_call()?;
        put(pHandle, array::create(context, &widened(read(pAllocateArray)?))?)
    }

    pub(super) fn cuArray3DGetDescriptor_v2(
        _: StreamApi,
        pArrayDescriptor: *mut CUDA_ARRAY3D_DESCRIPTOR,
        hArray: CUarray,
    ) -> CuResult {
        current()?;
        put(pArrayDescriptor, array::array(hArray)?.descriptor)
    }

    pub(super) fn cuArrayGetDescriptor_v2(
        _: StreamApi,
        pArrayDescriptor: *mut CUDA_ARRAY_DESCRIPTOR,
        hArray: CUarray,
    ) -> CuResult {
        current()?;
        let d = array::array(hArray)?.descriptor;
        let flat = CUDA_ARRAY_DESCRIPTOR {
            Width: d.Width,
            Height: d.Height,
            Format: d.Format,
            NumChannels: d.NumChannels,
        };
        put(pArrayDescriptor, flat)
    }

    pub(super) fn cuArrayDestroy(_: StreamApi, hArray: CUarray) -> CuResult {
        current()?;
        capture::unsafe_call()?;
        array::destroy(hArray)
    }

    pub(super) fn cuArrayGetMemoryRequirements(
        _: StreamApi,
        memoryRequirements: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS,
        array: CUarray,
        device: CUdevice,
    ) -> CuResult {
        node()?.device(device)?;
        let array = array::array(array)?;
        requirements(memoryRequirements, &array.descriptor, array.form.tiled_bytes())
    }

    pub(super) fn cuArrayGetSparseProperties(
        _: StreamApi,
        sparseProperties: *mut CUDA_ARRAY_SPARSE_PROPERTIES,
        array: CUarray,
    ) -> CuResult {
        node()?;
        let array = array::array(array)?;
        sparse_properties(sparseProperties, &array.descriptor, array.form, 1)
    }

    pub(super) fn cuMipmappedArrayCreate(
        _: StreamApi,
        pHandle: *mut CUmipmappedArray,
        pMipmappedArrayDesc: *const CUDA_ARRAY3D_DESCRIPTOR,
        numMipmapLevels: c_uint,
    ) -> CuResult {
        let (_, context) = current()?;
        needed(pHandle)?;
        capture::unsafe_call()?;
        let descriptor = read(pMipmappedArrayDesc)?;
        put(
            pHandle,
            array::create_mipmapped(context, &descriptor, numMipmapLevels)?,
        )
    }

    pub(super) fn cuMipmappedArrayDestroy(_: StreamApi, hMipmappedArray: CUmipmappedArray) -> CuResult {
        current()?;
        capture::unsafe_call()?;
        array::destroy_mipmapped(hMipmappedArray)
    }

    pub(super) fn cuMipmappedArrayGetLevel(
        _: StreamApi,
        pLevelArray: *mut CUarray,
        hMipmappedArray: CUmipmappedArray,
        level: c_uint,
    ) -> CuResult {
        current()?;
        needed(pLevelArray)?;
        let mipmapped = array::mipmapped(hMipmappedArray)?;
        let handle = mipmapped
            .levels
            .get(level as usize)
            .ok_or(CudaError::INVALID_VALUE)?;
        put(pLevelArray, *handle as CUarray)
    }

    pub(super) fn cuMipmappedArrayGetMemoryRequirements(
        _: StreamApi,
        memoryRequirements: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS,
        mipmap: CUmipmappedArray,
        device: CUdevice,
    ) -> CuResult {
        node()?.device(device)?;
        let mipmapped = array::mipmapped(mipmap)?;
        let level = |level| mipmapped.form.level(level).tiled_bytes();
        let bytes = (0..mipmapped.levels.len() as u32).map(level).sum();
        requirements(memoryRequirements, &mipmapped.descriptor, bytes)
    }

    pub(super) fn cuMipmappedArrayGetSparseProperties(
        _: StreamApi,
        sparseProperties: *mut CUDA_ARRAY_SPARSE_PROPERTIES,
        mipmap: CUmipmappedArray,
    ) -> CuResult {
        node()?;
        let mipmapped = array::mipmapped(mipmap)?;
        let levels = mipmapped.levels.len() as u32;
        sparse_properties(sparseProperties, &mipmapped.descriptor, mipmapped.form, levels)
    }

    pub(super) fn cuMemMapArrayAsync(
        api: StreamApi,
        mapInfoList: *mut CUarrayMapInfo,
        count: c_uint,
        hStream: CUstream,
    ) -> CuResult {
        capture::refuse_all(entry(api, hStream)?.1)?;
        needed(mapInfoList)?;
        for index in 0..count as usize {
            map(api, element(mapInfoList, index)?, hStream)?;
        }
        Ok(())
    }
}
