//! The pool and stream-ordered allocation functions of the API.

use super::Sim;
use super::capture;
use super::edge::{element, get as read, needed, put};
use super::node::{Device, node};
use super::physical::POSIX_FD;
use super::pool::{self, Origin, Pool};
use super::stream::entry;
use driver::prelude::*;
use std::sync::{Arc, PoisonError};

const PINNED: u32 = 1;
const READ_WRITE: u32 = 3;

const REUSE: std::ops::RangeInclusive<u32> = 1..=3;
const THRESHOLD: u32 = 4;
const RESERVED: u32 = 5;
const RESERVED_HIGH: u32 = 6;
const USED: u32 = 7;
const USED_HIGH: u32 = 8;
const KIND: u32 = 9;
const EXPORTABLE: u32 = 10;
const LOCATION_ID: u32 = 11;
const LOCATION_KIND: u32 = 12;
const MAX_SIZE: u32 = 13;
const DECOMPRESS: u32 = 14;
const LOCALITY: u32 = 15;

fn take(
    api: StreamApi,
    dptr: *mut CUdeviceptr,
    bytes: usize,
    from: Option<CUmemoryPool>,
    hStream: CUstream,
) -> CuResult {
    let (_, stream) = entry(api, hStream)?;
    needed(dptr)?;
    let context = stream.context();
    let pool = match from {
        Some(handle) => pool::get(handle)?,
        None => pool::current_of(context.device),
    };
    if let Some(capturing) = capture::of(stream)? {
        return put(dptr, capturing.add_allocation(&as_node(&pool, bytes)?)?);
    }
    put(dptr, pool.take(context, stream, bytes as u64)?.base)
}

/// The same allocation as a node of a graph, which takes nothing from the pool.
fn as_node(pool: &Pool, bytes: usize) -> Result<CUDA_MEM_ALLOC_NODE_PARAMS, CudaError> {
    let device = pool.device.ok_or(CudaError::NOT_SUPPORTED)?;
    Ok(CUDA_MEM_ALLOC_NODE_PARAMS {
        poolProps: CUmemPoolProps {
            allocType: PINNED,
            handleTypes: 0,
            location: CUmemLocation {
                kind: CU_MEM_LOCATION_TYPE_DEVICE,
                id: device.ordinal,
            },
            win32SecurityAttributes: std::ptr::null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        },
        accessDescs: std::ptr::null(),
        accessDescCount: 0,
        bytesize: bytes,
        dptr: 0,
    })
}

/// The handle types that the pool can be exported as.
fn exportable(pool: &Pool) -> i32 {
    if pool.origin == Origin::Exportable {
        POSIX_FD as i32
    } else {
        0
    }
}

/// The device of a location of pinned memory; `None` for the host.
fn place(location: CUmemLocation) -> Result<Option<&'static Device>, CudaError> {
    match location.kind {
        CU_MEM_LOCATION_TYPE_DEVICE => Ok(Some(node()?.device(location.id)?)),
        CU_MEM_LOCATION_TYPE_HOST
        | CU_MEM_LOCATION_TYPE_HOST_NUMA
        | CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT => Ok(None),
        _ => Err(CudaError::INVALID_VALUE),
    }
}

/// The device whose default or current pool is asked for.
fn device_at(location: *mut CUmemLocation, kind: u32) -> Result<&'static Device, CudaError> {
    node()?;
    let location = read(location)?;
    if kind != PINNED {
        return Err(CudaError::NOT_SUPPORTED);
    }
    place(location)?.ok_or(CudaError::NOT_SUPPORTED)
}

fn set_current(device: &'static Device, pool: CUmemoryPool) -> CuResult {
    let pool = pool::get(pool)?;
    let imported = matches!(pool.origin, Origin::Imported { .. });
    if imported || pool.device.is_none_or(|of| of.index != device.index) {
        return Err(CudaError::INVALID_VALUE);
    }
    *device.current_pool.lock().unwrap_or_else(PoisonError::into_inner) = Some(pool);
    Ok(())
}

/// The flags a place has for the pool's memory.
fn access(pool: &Arc<Pool>, location: CUmemLocation) -> Result<u32, CudaError> {
    let device = place(location)?;
    match (device, pool.device) {
        (Some(asked), Some(own)) if asked.index == own.index => Ok(READ_WRITE),
        (None, None) => Ok(READ_WRITE),
        (None, Some(_)) => Ok(0),
        (Some(asked), _) => {
            let access = pool.access.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(access
                .iter()
                .find(|(ordinal, _)| *ordinal == asked.ordinal)
                .map_or(0, |(_, flags)| *flags))
        }
    }
}

impl Sim {
    pub(super) fn cuMemAllocAsync(
        api: StreamApi,
        dptr: *mut CUdeviceptr,
        bytesize: usize,
        hStream: CUstream,
    ) -> CuResult {
        take(api, dptr, bytesize, None, hStream)
    }

    pub(super) fn cuMemAllocFromPoolAsync(
        api: StreamApi,
        dptr: *mut CUdeviceptr,
        bytesize: usize,
        pool: CUmemoryPool,
        hStream: CUstream,
    ) -> CuResult {
        take(api, dptr, bytesize, Some(pool), hStream)
    }

    pub(super) fn cuMemPoolCreate(
        _: StreamApi,
        pool: *mut CUmemoryPool,
        props: *const CUmemPoolProps,
    ) -> CuResult {
        node()?;
        needed(pool)?;
        let props = read(props)?;
        if props.allocType != PINNED {
            let error = if props.allocType == 2 {
                CudaError::NOT_SUPPORTED
            } else {
                CudaError::INVALID_VALUE
            };
            return Err(error);
        }
        let device = place(props.location)?;
        let origin = match props.handleTypes {
            0 => Origin::Made,
            POSIX_FD if device.is_some() => Origin::Exportable,
            _ => return Err(CudaError::NOT_SUPPORTED),
        };
        let host_node = if props.location.kind == CU_MEM_LOCATION_TYPE_HOST_NUMA {
            props.location.id
        } else {
            -1
        };
        put(
            pool,
            Pool::create(device, host_node, props.maxSize as u64, origin).handle(),
        )
    }

    pub(super) fn cuMemPoolDestroy(_: StreamApi, pool: CUmemoryPool) -> CuResult {
        node()?;
        let pool = pool::get(pool)?;
        if pool.origin == Origin::Default {
            return Err(CudaError::INVALID_VALUE);
        }
        pool.destroy();
        Ok(())
    }

    pub(super) fn cuMemPoolTrimTo(_: StreamApi, pool: CUmemoryPool, keep: usize) -> CuResult {
        node()?;
        pool::get(pool)?.trim(keep as u64);
        Ok(())
    }

    pub(super) fn cuMemPoolGetAttribute(
        _: StreamApi,
        pool: CUmemoryPool,
        attribute: CUmemPool_attribute,
        value: *mut c_void,
    ) -> CuResult {
        node()?;
        needed(value)?;
        let pool = pool::get(pool)?;
        let state = pool.state();
        let long = |number: u64| put(value.cast::<u64>(), number);
        let word = |number: i32| put(value.cast::<i32>(), number);
        match attribute {
            _ if REUSE.contains(&attribute) => word(state.reuse[attribute as usize - 1]),
            THRESHOLD => long(state.threshold),
            RESERVED => long(state.reserved),
            RESERVED_HIGH => long(state.reserved_high),
            USED => long(state.used),
            USED_HIGH => long(state.used_high),
            KIND => word(PINNED as i32),
            EXPORTABLE => word(exportable(&pool)),
            LOCATION_ID => word(pool.device.map_or(pool.host_node.max(0), |device| device.ordinal)),
            LOCATION_KIND => word(match pool.device {
                Some(_) => CU_MEM_LOCATION_TYPE_DEVICE,
                None if pool.host_node >= 0 => CU_MEM_LOCATION_TYPE_HOST_NUMA,
                None => CU_MEM_LOCATION_TYPE_HOST,
            } as i32),
            MAX_SIZE => long(pool.max),
            DECOMPRESS => word(0),
            LOCALITY => word(-1),
            _ => Err(CudaError::INVALID_VALUE),
        }
    }

    pub(super) fn cuMemPoolSetAttribute(
        _: StreamApi,
        pool: CUmemoryPool,
        attribute: CUmemPool_attribute,
        value: *mut c_void,
    ) -> CuResult {
        node()?;
        needed(value)?;
        let pool = pool::get(pool)?;
        let mut state = pool.state();
        match attribute {
            _ if REUSE.contains(&attribute) => {
                state.reuse[attribute as usize - 1] = (read(value.cast::<i32>())? != 0) as i32;
            }
            THRESHOLD => state.threshold = read(value.cast::<u64>())?,
            // High marks can be reset to zero, which means to what is now, and to nothing else.
            RESERVED_HIGH | USED_HIGH if read(value.cast::<u64>())? != 0 => {
                return Err(CudaError::INVALID_VALUE);
            }
            RESERVED_HIGH => state.reserved_high = state.reserved,
            USED_HIGH => state.used_high = state.used,
            _ => return Err(CudaError::INVALID_VALUE),
        }
        Ok(())
    }

    pub(super) fn cuMemPoolSetAccess(
        _: StreamApi,
        pool: CUmemoryPool,
        map: *const CUmemAccessDesc,
        count: usize,
    ) -> CuResult {
        node()?;
        let pool = pool::get(pool)?;
        for i in 0..count {
            let wish = element(map, i)?;
            if !matches!(wish.flags, 0 | 1 | READ_WRITE) {
                return Err(CudaError::INVALID_VALUE);
            }
            let Some(device) = place(wish.location)? else {
                return Err(CudaError::INVALID_VALUE);
            };
            if pool.device.is_some_and(|own| own.index == device.index) {
                if wish.flags != READ_WRITE {
                    return Err(CudaError::INVALID_DEVICE);
                }
                continue;
            }
            let mut access = pool.access.lock().unwrap_or_else(PoisonError::into_inner);
            access.retain(|(ordinal, _)| *ordinal != device.ordinal);
            access.push((device.ordinal, wish.flags));
        }
        Ok(())
    }

    pub(super) fn cuMemPoolGetAccess(
        _: StreamApi,
        flags: *mut CUmemAccess_flags,
        pool: CUmemoryPool,
        location: *mut CUmemLocation,
    ) -> CuResult {
        node()?;
        needed(flags)?;
        put(flags, access(&pool::get(pool)?, read(location)?)?)
    }

    pub(super) fn cuDeviceGetDefaultMemPool(
        _: StreamApi,
        pool: *mut CUmemoryPool,
        dev: CUdevice,
    ) -> CuResult {
        let device = node()?.device(dev)?;
        put(pool, pool::default_of(device).handle())
    }

    pub(super) fn cuDeviceGetMemPool(_: StreamApi, pool: *mut CUmemoryPool, dev: CUdevice) -> CuResult {
        let device = node()?.device(dev)?;
        put(pool, pool::current_of(device).handle())
    }

    pub(super) fn cuDeviceSetMemPool(_: StreamApi, dev: CUdevice, pool: CUmemoryPool) -> CuResult {
        set_current(node()?.device(dev)?, pool)
    }

    pub(super) fn cuMemGetDefaultMemPool(
        _: StreamApi,
        pool: *mut CUmemoryPool,
        location: *mut CUmemLocation,
        kind: CUmemAllocationType,
    ) -> CuResult {
        needed(pool)?;
        put(pool, pool::default_of(device_at(location, kind)?).handle())
    }

    pub(super) fn cuMemGetMemPool(
        _: StreamApi,
        pool: *mut CUmemoryPool,
        location: *mut CUmemLocation,
        kind: CUmemAllocationType,
    ) -> CuResult {
        needed(pool)?;
        put(pool, pool::current_of(device_at(location, kind)?).handle())
    }

    pub(super) fn cuMemSetMemPool(
        _: StreamApi,
        location: *mut CUmemLocation,
        kind: CUmemAllocationType,
        pool: CUmemoryPool,
    ) -> CuResult {
        set_current(device_at(location, kind)?, pool)
    }
}
