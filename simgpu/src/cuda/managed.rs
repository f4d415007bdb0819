//! Advice about managed memory, prefetching, and what was advised.
//!
//! All of a managed block is charged to its device from the beginning, so advice and prefetching move
//! nothing; a prefetch takes the time of its copy.

use super::Sim;
use super::block::{self, Block};
use super::copy;
use super::edge::{element, needed, put};
use super::node::node;
use super::stream::entry;
use crate::facts::CopyPath;
use driver::prelude::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const SET_READ_MOSTLY: u32 = 1;
const UNSET_READ_MOSTLY: u32 = 2;
const LAST_ADVICE: u32 = 6;

const READ_MOSTLY: u32 = 1;
const ACCESSED_BY: u32 = 3;
const LOCATION_TYPES: [u32; 2] = [5, 7];
const LAST_ATTRIBUTE: u32 = 8;
const INVALID_DEVICE: i32 = -2;

fn managed(address: u64, bytes: usize) -> Result<Arc<Block>, CudaError> {
    let block = block::find(address).filter(|block| block.is_managed() && bytes != 0);
    let inside = |block: &Arc<Block>| address.saturating_add(bytes as u64) <= block.end();
    block.filter(inside).ok_or(CudaError::INVALID_VALUE)
}

fn advise(address: u64, bytes: usize, advice: u32) -> CuResult {
    node()?;
    if advice == 0 || advice > LAST_ADVICE {
        return Err(CudaError::INVALID_VALUE);
    }
    let block = managed(address, bytes)?;
    match advice {
        SET_READ_MOSTLY => block.read_mostly.store(1, Ordering::Relaxed),
        UNSET_READ_MOSTLY => block.read_mostly.store(0, Ordering::Relaxed),
        _ => {}
    }
    Ok(())
}

fn prefetch(api: StreamApi, address: u64, bytes: usize, hStream: CUstream) -> CuResult {
    let (node, stream) = entry(api, hStream)?;
    super::capture::refuse_all(stream)?;
    managed(address, bytes)?;
    copy::take_time(node, stream, CopyPath::Host, 0, bytes as u64)
}

fn attribute(data: *mut c_void, size: usize, attribute: u32, block: &Block) -> CuResult {
    match attribute {
        READ_MOSTLY if size == 4 => put(data.cast::<u32>(), block.read_mostly.load(Ordering::Relaxed)),
        // A list of devices, of which there is none.
        ACCESSED_BY if size != 0 && size.is_multiple_of(4) => {
            (0..size / 4).try_for_each(|i| put(data.cast::<i32>().wrapping_add(i), INVALID_DEVICE))
        }
        _ if attribute == 0 || attribute > LAST_ATTRIBUTE || size != 4 => Err(CudaError::INVALID_VALUE),
        _ if LOCATION_TYPES.contains(&attribute) => put(data.cast::<u32>(), 0),
        _ => put(data.cast::<i32>(), INVALID_DEVICE),
    }
}

impl Sim {
    pub(super) fn cuMemAdvise(
        _: StreamApi,
        address: CUdeviceptr,
        count: usize,
        advice: CUmem_advise,
        _device: CUdevice,
    ) -> CuResult {
        advise(address, count, advice)
    }

    pub(super) fn cuMemAdvise_v2(
        _: StreamApi,
        address: CUdeviceptr,
        count: usize,
        advice: CUmem_advise,
        _location: CUmemLocation,
    ) -> CuResult {
        advise(address, count, advice)
    }

    pub(super) fn cuMemPrefetchAsync(
        api: StreamApi,
        address: CUdeviceptr,
        count: usize,
        _device: CUdevice,
        hStream: CUstream,
    ) -> CuResult {
        prefetch(api, address, count, hStream)
    }

    pub(super) fn cuMemPrefetchAsync_v2(
        api: StreamApi,
        address: CUdeviceptr,
        count: usize,
        _location: CUmemLocation,
        flags: c_uint,
        hStream: CUstream,
    ) -> CuResult {
        if flags != 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        prefetch(api, address, count, hStream)
    }

    pub(super) fn cuMemRangeGetAttribute(
        _: StreamApi,
        data: *mut c_void,
        size: usize,
        which: CUmem_range_attribute,
        address: CUdeviceptr,
        count: usize,
    ) -> CuResult {
        node()?;
        needed(data)?;
        attribute(data, size, which, &*managed(address, count)?)
    }

    pub(super) fn cuMemRangeGetAttributes(
        _: StreamApi,
        data: *mut *mut c_void,
        sizes: *mut usize,
        attributes: *mut CUmem_range_attribute,
        number: usize,
        address: CUdeviceptr,
        count: usize,
    ) -> CuResult {
        node()?;
        if number == 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        let block = managed(address, count)?;
        for i in 0..number {
            let to = element(data, i)?;
            needed(to)?;
            attribute(to, element(sizes, i)?, element(attributes, i)?, &block)?;
        }
        Ok(())
    }
}
