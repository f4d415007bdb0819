//! What a program may ask and say of a device's memory for graphs.

use super::memory;
use crate::cuda::Sim;
use crate::cuda::edge::{get as read, needed, put};
use crate::cuda::node::node;
use driver::prelude::*;
use std::sync::PoisonError;

const USED: u32 = CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT;
const USED_HIGH: u32 = USED + 1;
const RESERVED: u32 = CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT;
const RESERVED_HIGH: u32 = RESERVED + 1;

impl Sim {
    pub(in crate::cuda) fn cuDeviceGraphMemTrim(_: StreamApi, dev: CUdevice) -> CuResult {
        memory::trim(node()?.device(dev)?);
        Ok(())
    }

    pub(in crate::cuda) fn cuDeviceGetGraphMemAttribute(
        _: StreamApi,
        dev: CUdevice,
        attribute: CUgraphMem_attribute,
        value: *mut c_void,
    ) -> CuResult {
        let device = node()?.device(dev)?;
        needed(value)?;
        let memory = device.graph_memory.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = match attribute {
            USED => memory.used,
            USED_HIGH => memory.used_high,
            RESERVED => memory.reserved,
            RESERVED_HIGH => memory.reserved_high,
            _ => return Err(CudaError::INVALID_VALUE),
        };
        put(value.cast::<u64>(), answer)
    }

    /// High marks can be set to zero, which means to what is now, and to nothing else.
    pub(in crate::cuda) fn cuDeviceSetGraphMemAttribute(
        _: StreamApi,
        dev: CUdevice,
        attribute: CUgraphMem_attribute,
        value: *mut c_void,
    ) -> CuResult {
        let device = node()?.device(dev)?;
        let value = read(value.cast::<u64>())?;
        let mut memory = device.graph_memory.lock().unwrap_or_else(PoisonError::into_inner);
        match attribute {
            USED_HIGH if value == 0 => memory.used_high = memory.used,
            RESERVED_HIGH if value == 0 => memory.reserved_high = memory.reserved,
            _ => return Err(CudaError::INVALID_VALUE),
        }
        Ok(())
    }
}
