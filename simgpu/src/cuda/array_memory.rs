//! What arrays cost: those of a megabyte and more whole granules each, smaller ones share granules within their
//! context. They have no addresses a program could see, so shared granules hold no gaps.
//!
//! Next file of the walk: `array.rs`.

use super::array_form::ARRAY_UNIT;
use super::context::Context;
use super::heap::SMALL;
use super::space::{self, GRANULE, granules};
use driver::CudaError;
use std::sync::{Mutex, PoisonError};

/// Bytes of the small arrays of a context.
#[derive(Default)]
pub struct SmallArrays(Mutex<u64>);

/// Memory of one array, and where its elements are in this process, row by row without padding.
pub struct ArrayMemory {
    context: &'static Context,
    /// What it costs the device.
    cost: u64,
    pub base: u64,
    mapped: u64,
}

impl ArrayMemory {
    /// `cost` bytes of the context's device, with room for `linear` bytes of elements.
    pub fn take(context: &'static Context, cost: u64, linear: u64) -> Result<ArrayMemory, CudaError> {
        let cost = cost.next_multiple_of(ARRAY_UNIT);
        charge(context, cost)?;
        let mapped = linear.next_multiple_of(4096);
        let Some(base) = space::zeroed(mapped) else {
            discharge(context, cost);
            return Err(CudaError::OUT_OF_MEMORY);
        };
        Ok(ArrayMemory {
            context,
            cost,
            base,
            mapped,
        })
    }
}

impl Drop for ArrayMemory {
    fn drop(&mut self) {
        space::unmap(self.base, self.mapped);
        discharge(self.context, self.cost);
    }
}

fn charge(context: &'static Context, cost: u64) -> Result<(), CudaError> {
    let vram = &context.device.vram;
    if cost >= SMALL {
        return vram.charge(granules(cost).ok_or(CudaError::OUT_OF_MEMORY)?);
    }
    let mut sum = context
        .small_arrays
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let more = (*sum + cost).div_ceil(GRANULE) - sum.div_ceil(GRANULE);
    if more > 0 {
        vram.charge(more * GRANULE)?;
    }
    *sum += cost;
    Ok(())
}

fn discharge(context: &'static Context, cost: u64) {
    let vram = &context.device.vram;
    if cost >= SMALL {
        return vram.discharge(cost.next_multiple_of(GRANULE));
    }
    let mut sum = context
        .small_arrays
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let less = sum.div_ceil(GRANULE) - (*sum - cost).div_ceil(GRANULE);
    *sum -= cost;
    if less > 0 {
        vram.discharge(less * GRANULE);
    }
}
