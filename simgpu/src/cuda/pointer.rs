//! What the driver knows about an address.

use super::Sim;
use super::block::{self, Block, Kind};
use super::edge::{element, get as read, needed, put};
use super::node::node;
use driver::prelude::*;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const CONTEXT: u32 = 1;
const MEMORY_TYPE: u32 = 2;
const DEVICE_POINTER: u32 = 3;
const HOST_POINTER: u32 = 4;
const P2P_TOKENS: u32 = 5;
const SYNC_MEMOPS: u32 = 6;
const BUFFER_ID: u32 = 7;
const IS_MANAGED: u32 = 8;
const DEVICE_ORDINAL: u32 = 9;
const IS_IPC_CAPABLE: u32 = 10;
const RANGE_START: u32 = 11;
const RANGE_SIZE: u32 = 12;
const MAPPED: u32 = 13;
const HANDLE_TYPES: u32 = 14;
const IS_RDMA_CAPABLE: u32 = 15;
const ACCESS_FLAGS: u32 = 16;
const POOL: u32 = 17;
const MAPPING_SIZE: u32 = 18;
const MAPPING_BASE: u32 = 19;
const BLOCK_ID: u32 = 20;
const IS_DECOMPRESS_CAPABLE: u32 = 21;

const INVALID_DEVICE: i32 = -2;

/// One value as the attribute's documentation types it.
enum Value {
    Word(u32),
    Int(i32),
    Long(u64),
    Bool(bool),
    Pointer(*mut c_void),
}

impl Value {
    fn write(self, to: *mut c_void) -> CuResult {
        match self {
            Value::Word(value) => put(to.cast(), value),
            Value::Int(value) => put(to.cast(), value),
            Value::Long(value) => put(to.cast(), value),
            Value::Bool(value) => put(to.cast(), value),
            Value::Pointer(value) => put(to.cast(), value),
        }
    }
}

/// The reservation of a mapping, the block itself otherwise.
fn range(block: &Block) -> (u64, u64) {
    match block.kind {
        Kind::Mapping { .. } => super::reservation::around(block.base).unwrap_or((block.base, block.size)),
        _ => (block.base, block.size),
    }
}

fn known(attribute: u32, block: &Arc<Block>, address: u64) -> Result<Value, CudaError> {
    let mapping = matches!(block.kind, Kind::Mapping { .. });
    let device = matches!(block.kind, Kind::Device { .. });
    Ok(match attribute {
        CONTEXT => match block
            .context
            .filter(|_| !mapping && !matches!(block.kind, Kind::Async(_)))
        {
            Some(context) => Value::Pointer(context.handle()),
            // What belongs to no context.
            None => Value::Pointer(null_mut()),
        },
        MEMORY_TYPE if block.is_host() => Value::Word(CU_MEMORYTYPE_HOST),
        MEMORY_TYPE => Value::Word(CU_MEMORYTYPE_DEVICE),
        DEVICE_POINTER => Value::Long(address),
        HOST_POINTER if block.is_host() || block.is_managed() => Value::Pointer(address as *mut c_void),
        HOST_POINTER => return Err(CudaError::INVALID_VALUE),
        P2P_TOKENS => return Err(CudaError::NOT_SUPPORTED),
        SYNC_MEMOPS => Value::Word(block.sync_memops.load(Ordering::Relaxed) as u32),
        BUFFER_ID | BLOCK_ID => Value::Long(block.id),
        IS_MANAGED => Value::Word(block.is_managed() as u32),
        DEVICE_ORDINAL => Value::Int(block.device.map_or(INVALID_DEVICE, |device| device.ordinal)),
        IS_IPC_CAPABLE => Value::Bool(device),
        RANGE_START => Value::Long(range(block).0),
        RANGE_SIZE => Value::Long(range(block).1),
        MAPPED => Value::Bool(true),
        HANDLE_TYPES => match &block.kind {
            Kind::Mapping { physical, .. } => Value::Long(physical.handle_types as u64),
            _ => Value::Long(0),
        },
        IS_RDMA_CAPABLE => match &block.kind {
            Kind::Mapping { physical, .. } => Value::Bool(physical.rdma != 0),
            _ => Value::Bool(device),
        },
        ACCESS_FLAGS => match &block.kind {
            Kind::Mapping { access, .. } => {
                let access = access.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                Value::Word(access.iter().map(|(_, flags)| *flags).max().unwrap_or(0))
            }
            _ => Value::Word(3),
        },
        POOL => match &block.kind {
            Kind::Async(pool) => Value::Pointer(pool.handle()),
            _ => Value::Pointer(null_mut()),
        },
        MAPPING_SIZE => Value::Long(block.size),
        MAPPING_BASE => Value::Long(block.base),
        IS_DECOMPRESS_CAPABLE => Value::Bool(false),
        _ => return Err(CudaError::INVALID_VALUE),
    })
}

/// What the plural form says of an address nobody knows.
fn unknown(attribute: u32, address: u64) -> Result<Value, CudaError> {
    Ok(match attribute {
        CONTEXT | POOL => Value::Pointer(null_mut()),
        MEMORY_TYPE | SYNC_MEMOPS | IS_MANAGED | ACCESS_FLAGS => Value::Word(0),
        DEVICE_ORDINAL => Value::Int(INVALID_DEVICE),
        DEVICE_POINTER | BUFFER_ID | RANGE_START | RANGE_SIZE | HANDLE_TYPES => Value::Long(0),
        MAPPING_SIZE | MAPPING_BASE | BLOCK_ID => Value::Long(0),
        HOST_POINTER => Value::Pointer(address as *mut c_void),
        IS_IPC_CAPABLE | MAPPED | IS_RDMA_CAPABLE | IS_DECOMPRESS_CAPABLE => Value::Bool(false),
        _ => return Err(CudaError::INVALID_VALUE),
    })
}

impl Sim {
    pub(super) fn cuPointerGetAttribute(
        _: StreamApi,
        data: *mut c_void,
        attribute: CUpointer_attribute,
        ptr: CUdeviceptr,
    ) -> CuResult {
        node()?;
        needed(data)?;
        let block = block::find(ptr);
        if block.is_none() && attribute == MAPPED {
            return put(data.cast::<bool>(), false);
        }
        let block = match block {
            Some(block) => block,
            None => return reserved_only(data, attribute, ptr),
        };
        known(attribute, &block, ptr)?.write(data)
    }

    pub(super) fn cuPointerGetAttributes(
        _: StreamApi,
        count: c_uint,
        attributes: *mut CUpointer_attribute,
        data: *mut *mut c_void,
        ptr: CUdeviceptr,
    ) -> CuResult {
        node()?;
        if count == 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        let block = block::find(ptr);
        for i in 0..count as usize {
            let (attribute, to) = (element(attributes, i)?, element(data, i)?);
            needed(to)?;
            let value = match &block {
                // An attribute that does not apply is answered like an unknown address's.
                Some(block) => known(attribute, block, ptr).or_else(|_| absent(attribute)),
                None => unknown(attribute, ptr),
            };
            value?.write(to)?;
        }
        Ok(())
    }

    pub(super) fn cuPointerSetAttribute(
        _: StreamApi,
        value: *const c_void,
        attribute: CUpointer_attribute,
        ptr: CUdeviceptr,
    ) -> CuResult {
        node()?;
        let value = read(value.cast::<u32>())?;
        let block = block::find(ptr).ok_or(CudaError::INVALID_VALUE)?;
        if attribute != SYNC_MEMOPS {
            return Err(CudaError::INVALID_VALUE);
        }
        block.sync_memops.store(value != 0, Ordering::Relaxed);
        Ok(())
    }
}

/// An attribute a known block does not have.
fn absent(attribute: u32) -> Result<Value, CudaError> {
    if attribute == HOST_POINTER {
        Ok(Value::Pointer(null_mut()))
    } else {
        unknown(attribute, 0)
    }
}

/// An address in a reservation where nothing is mapped has a range and nothing else.
fn reserved_only(data: *mut c_void, attribute: u32, ptr: u64) -> CuResult {
    let (start, length) = super::reservation::around(ptr).ok_or(CudaError::INVALID_VALUE)?;
    match attribute {
        RANGE_START => put(data.cast(), start),
        RANGE_SIZE => put(data.cast(), length),
        _ => Err(CudaError::INVALID_VALUE),
    }
}
