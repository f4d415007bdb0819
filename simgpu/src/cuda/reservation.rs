//! Address ranges and what is mapped in them.
//!
//! Next file of the walk: `access.rs`.

use super::Sim;
use super::block::{self, Block, Kind};
use super::edge::{needed, put};
use super::node::node;
use super::space::{self, GRANULE};
use super::{access, physical};
use driver::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Reserved ranges: length by address.
static RESERVED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

fn reserved() -> MutexGuard<'static, BTreeMap<u64, u64>> {
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reservation that holds the address.
pub fn around(address: u64) -> Option<(u64, u64)> {
    let reserved = reserved();
    let (&start, &length) = reserved.range(..=address).next_back()?;
    (address < start + length).then_some((start, length))
}

impl Sim {
    pub(super) fn cuMemAddressReserve(
        _: StreamApi,
        ptr: *mut CUdeviceptr,
        size: usize,
        alignment: usize,
        addr: CUdeviceptr,
        flags: c_ulonglong,
    ) -> CuResult {
        node()?;
        needed(ptr)?;
        let (bytes, align) = (size as u64, (alignment as u64).max(GRANULE));
        let aligned = alignment == 0 || alignment.is_power_of_two();
        if bytes == 0 || !bytes.is_multiple_of(GRANULE) || !aligned || flags != 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        let address = space::reserve(bytes, align, addr).ok_or(CudaError::OUT_OF_MEMORY)?;
        reserved().insert(address, bytes);
        put(ptr, address)
    }

    pub(super) fn cuMemAddressFree(_: StreamApi, ptr: CUdeviceptr, size: usize) -> CuResult {
        node()?;
        let mut reserved = reserved();
        let bytes = size as u64;
        let whole = reserved.get(&ptr) == Some(&bytes);
        if !whole || block::overlaps(&block::read(), ptr, bytes) {
            return Err(CudaError::INVALID_VALUE);
        }
        reserved.remove(&ptr);
        space::unmap(ptr, bytes);
        Ok(())
    }

    pub(super) fn cuMemMap(
        _: StreamApi,
        ptr: CUdeviceptr,
        size: usize,
        offset: usize,
        handle: CUmemGenericAllocationHandle,
        flags: c_ulonglong,
    ) -> CuResult {
        node()?;
        let bytes = size as u64;
        let physical = physical::get(handle)?;
        let whole = bytes != 0 && bytes.is_multiple_of(GRANULE) && ptr.is_multiple_of(GRANULE);
        if !whole || offset != 0 || flags != 0 || bytes > physical.bytes {
            return Err(CudaError::INVALID_VALUE);
        }
        let (start, length) = around(ptr).ok_or(CudaError::INVALID_VALUE)?;
        let end = ptr.checked_add(bytes).filter(|&end| end <= start + length);
        end.ok_or(CudaError::INVALID_VALUE)?;
        let mut blocks = block::write();
        if block::overlaps(&blocks, ptr, bytes) {
            return Err(CudaError::INVALID_VALUE);
        }
        let (file, at) = physical.file()?;
        if !space::show(ptr, bytes, file, at, false) {
            return Err(CudaError::OUT_OF_MEMORY);
        }
        let device = physical.device();
        let kind = Kind::Mapping {
            physical,
            access: Mutex::new(Vec::new()),
        };
        blocks.insert(ptr, Arc::new(Block::new(ptr, bytes, None, device, kind)));
        Ok(())
    }

    pub(super) fn cuMemUnmap(_: StreamApi, ptr: CUdeviceptr, size: usize) -> CuResult {
        node()?;
        let end = ptr.checked_add(size as u64).ok_or(CudaError::INVALID_VALUE)?;
        let mut blocks = block::write();
        let inside: Vec<Arc<Block>> = blocks.range(ptr..end).map(|(_, block)| block.clone()).collect();
        // Whole mappings, from one end of the range to the other.
        let starts = inside.first().is_some_and(|block| block.base == ptr);
        let ends = inside.last().is_some_and(|block| block.end() == end);
        let mappings = inside
            .iter()
            .all(|block| matches!(block.kind, Kind::Mapping { .. }));
        if !starts || !ends || !mappings {
            return Err(CudaError::INVALID_VALUE);
        }
        for block in &inside {
            space::hide(block.base, block.size);
            blocks.remove(&block.base);
        }
        drop(blocks);
        // Memory without handles goes here, outside the lock.
        drop(inside);
        Ok(())
    }

    pub(super) fn cuMemSetAccess(
        _: StreamApi,
        ptr: CUdeviceptr,
        size: usize,
        desc: *const CUmemAccessDesc,
        count: usize,
    ) -> CuResult {
        node()?;
        access::set(ptr, size as u64, desc, count)
    }

    pub(super) fn cuMemGetAccess(
        _: StreamApi,
        flags: *mut c_ulonglong,
        location: *const CUmemLocation,
        ptr: CUdeviceptr,
    ) -> CuResult {
        node()?;
        needed(flags)?;
        put(flags, access::get(location, ptr)?)
    }
}
