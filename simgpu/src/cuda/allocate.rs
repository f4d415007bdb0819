//! `cuMemAlloc` and its like: charge, then address space, then the entry in the list.
//!
//! Next file of the walk: `block.rs`.

use super::block::{self, Block, Kind};
use super::context::Context;
use super::current::current;
use super::edge::{needed, put, put_optional};
use super::heap::{SMALL, shown};
use super::{Sim, capture, space};
use crate::client::{Client, Cost};
use driver::prelude::*;
use std::sync::{Arc, PoisonError};

/// Rows of pitched memory begin at multiples of this.
const PITCH: usize = 512;

/// Device memory that lives as long as the context, at most.
pub fn device_block(context: &'static Context, bytes: u64) -> Result<Arc<Block>, CudaError> {
    if bytes == 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    let device = context.device;
    let (base, kind) = if bytes < SMALL {
        let mut heap = context.heap.lock().unwrap_or_else(PoisonError::into_inner);
        let (base, slab, extent) = heap.take(&device.vram, bytes)?;
        (
            base,
            Kind::Device {
                extent,
                offset: base - slab,
                small: true,
            },
        )
    } else {
        let extent = device.vram.take(bytes)?;
        let Some(base) = shown(&device.vram, extent) else {
            device.vram.give(extent);
            return Err(CudaError::OUT_OF_MEMORY);
        };
        (
            base,
            Kind::Device {
                extent,
                offset: 0,
                small: false,
            },
        )
    };
    Ok(block::insert(Block::new(
        base,
        bytes,
        Some(context),
        Some(device),
        kind,
    )))
}

/// Managed memory: an own range of the device, all of it from the beginning.
fn managed_block(context: &'static Context, bytes: u64) -> Result<Arc<Block>, CudaError> {
    let device = context.device;
    let extent = device.vram.take(bytes)?;
    let Some(base) = shown(&device.vram, extent) else {
        device.vram.give(extent);
        return Err(CudaError::OUT_OF_MEMORY);
    };
    let kind = Kind::Managed { extent };
    Ok(block::insert(Block::new(
        base,
        bytes,
        Some(context),
        Some(device),
        kind,
    )))
}

/// An allocation takes its time if there is one; a refusal is quick.
pub fn spending<T>(
    client: &Client,
    bytes: u64,
    allocate: impl FnOnce() -> Result<T, CudaError>,
) -> Result<T, CudaError> {
    let cost = client.spend(Cost::Alloc(bytes));
    let made = allocate();
    if made.is_err() {
        std::mem::forget(cost);
    }
    made
}

impl Sim {
    pub(super) fn cuMemAlloc_v2(_: StreamApi, dptr: *mut CUdeviceptr, bytesize: usize) -> CuResult {
        let (node, context) = current()?;
        needed(dptr)?;
        capture::unsafe_call()?;
        let bytes = bytesize as u64;
        put(
            dptr,
            spending(node.client, bytes, || device_block(context, bytes))?.base,
        )
    }

    pub(super) fn cuMemAllocPitch_v2(
        _: StreamApi,
        dptr: *mut CUdeviceptr,
        pPitch: *mut usize,
        width: usize,
        height: usize,
        element: c_uint,
    ) -> CuResult {
        let (node, context) = current()?;
        needed(dptr)?;
        capture::unsafe_call()?;
        needed(pPitch)?;
        if width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
            return Err(CudaError::INVALID_VALUE);
        }
        let pitch = width
            .checked_next_multiple_of(PITCH)
            .ok_or(CudaError::INVALID_VALUE)?;
        let bytes = pitch.checked_mul(height).ok_or(CudaError::OUT_OF_MEMORY)? as u64;
        put(
            dptr,
            spending(node.client, bytes, || device_block(context, bytes))?.base,
        )?;
        put(pPitch, pitch)
    }

    pub(super) fn cuMemAllocManaged(
        _: StreamApi,
        dptr: *mut CUdeviceptr,
        bytesize: usize,
        flags: c_uint,
    ) -> CuResult {
        let (node, context) = current()?;
        needed(dptr)?;
        capture::unsafe_call()?;
        let bytes = bytesize as u64;
        if bytes == 0 || !matches!(flags, 1 | 2) {
            return Err(CudaError::INVALID_VALUE);
        }
        put(
            dptr,
            spending(node.client, bytes, || managed_block(context, bytes))?.base,
        )
    }

    pub(super) fn cuMemGetInfo_v2(_: StreamApi, free: *mut usize, total: *mut usize) -> CuResult {
        let (node, context) = current()?;
        if free.is_null() && total.is_null() {
            return Err(CudaError::INVALID_VALUE);
        }
        let memory = node.client.memory(context.device.index);
        put_optional(free, memory.capacity.saturating_sub(memory.used) as usize);
        put_optional(total, memory.capacity as usize);
        Ok(())
    }

    pub(super) fn cuMemGetAddressRange_v2(
        _: StreamApi,
        pbase: *mut CUdeviceptr,
        psize: *mut usize,
        dptr: CUdeviceptr,
    ) -> CuResult {
        current()?;
        let block = block::find(dptr).ok_or(CudaError::NOT_FOUND)?;
        put_optional(pbase, block.base);
        put_optional(psize, block.size as usize);
        Ok(())
    }
}

/// Pinned host memory: real memory of the process, which no device is charged for.
pub fn host_block(
    context: Option<&'static Context>,
    bytes: u64,
    flags: u32,
) -> Result<Arc<Block>, CudaError> {
    let whole = bytes.checked_next_multiple_of(4096).filter(|&whole| whole != 0);
    let whole = whole.ok_or(CudaError::INVALID_VALUE)?;
    let base = space::zeroed(whole).ok_or(CudaError::OUT_OF_MEMORY)?;
    let device = context.map(|context| context.device);
    Ok(block::insert(Block::new(
        base,
        bytes,
        context,
        device,
        Kind::Host(flags),
    )))
}
