//! Pinned and registered host memory.

use super::allocate::host_block;
use super::block::{self, Block, Kind, overlaps};
use super::current::current;
use super::edge::{needed, put};
use super::{Sim, capture};
use driver::prelude::*;
use std::sync::Arc;

const ALLOC_FLAGS: u32 = 7;
const REGISTER_FLAGS: u32 = 15;

fn release(pointer: *mut c_void, missing: CudaError, fits: fn(&Kind) -> bool) -> CuResult {
    let (node, _) = current()?;
    needed(pointer)?;
    capture::unsafe_call()?;
    let block = block::remove(pointer as u64, |block| fits(&block.kind)).map_err(|_| missing)?;
    if let Some(context) = block.context.filter(|context| context.is_alive()) {
        node.client
            .synchronize_context(context.device.index, context.number(), context.wait())?;
    }
    block::release(&block);
    Ok(())
}

/// The pinned or registered block that holds the address.
fn pinned(pointer: *mut c_void) -> Result<(Arc<Block>, u32), CudaError> {
    let block = block::find(pointer as u64).ok_or(CudaError::INVALID_VALUE)?;
    match block.kind {
        Kind::Host(flags) | Kind::Registered(flags) => Ok((block, flags)),
        _ => Err(CudaError::INVALID_VALUE),
    }
}

impl Sim {
    pub(super) fn cuMemAllocHost(api: StreamApi, pp: *mut *mut c_void, bytesize: c_uint) -> CuResult {
        Sim::cuMemHostAlloc(api, pp, bytesize as usize, 0)
    }

    pub(super) fn cuMemAllocHost_v2(api: StreamApi, pp: *mut *mut c_void, bytesize: usize) -> CuResult {
        Sim::cuMemHostAlloc(api, pp, bytesize, 0)
    }

    pub(super) fn cuMemHostAlloc(
        _: StreamApi,
        pp: *mut *mut c_void,
        bytesize: usize,
        flags: c_uint,
    ) -> CuResult {
        let context = current()?.1;
        needed(pp)?;
        if flags & !ALLOC_FLAGS != 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        capture::unsafe_call()?;
        put(
            pp,
            host_block(Some(context), bytesize as u64, flags)?.base as *mut c_void,
        )
    }

    pub(super) fn cuMemFreeHost(_: StreamApi, p: *mut c_void) -> CuResult {
        release(p, CudaError::INVALID_VALUE, |kind| matches!(kind, Kind::Host(_)))
    }

    pub(super) fn cuMemHostRegister(
        api: StreamApi,
        p: *mut c_void,
        bytesize: usize,
        flags: c_uint,
    ) -> CuResult {
        Sim::cuMemHostRegister_v2(api, p, bytesize, flags)
    }

    pub(super) fn cuMemHostRegister_v2(
        _: StreamApi,
        p: *mut c_void,
        bytesize: usize,
        flags: c_uint,
    ) -> CuResult {
        let context = current()?.1;
        needed(p)?;
        if bytesize == 0 || flags & !REGISTER_FLAGS != 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        capture::unsafe_call()?;
        let (base, size) = (p as u64, bytesize as u64);
        let mut blocks = block::write();
        if overlaps(&blocks, base, size) {
            return Err(CudaError::HOST_MEMORY_ALREADY_REGISTERED);
        }
        let device = Some(context.device);
        let block = Block::new(base, size, Some(context), device, Kind::Registered(flags));
        blocks.insert(base, Arc::new(block));
        Ok(())
    }

    pub(super) fn cuMemHostUnregister(_: StreamApi, p: *mut c_void) -> CuResult {
        let missing = CudaError::HOST_MEMORY_NOT_REGISTERED;
        release(p, missing, |kind| matches!(kind, Kind::Registered(_)))
    }

    pub(super) fn cuMemHostGetDevicePointer_v2(
        _: StreamApi,
        pdptr: *mut CUdeviceptr,
        p: *mut c_void,
        flags: c_uint,
    ) -> CuResult {
        current()?;
        needed(pdptr)?;
        if flags != 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        pinned(p)?;
        put(pdptr, p as u64)
    }

    pub(super) fn cuMemHostGetFlags(_: StreamApi, pflags: *mut c_uint, p: *mut c_void) -> CuResult {
        current()?;
        needed(pflags)?;
        let (block, flags) = pinned(p)?;
        match block.kind {
            // The driver maps it everywhere, whatever was asked for.
            Kind::Host(_) => put(pflags, flags | 2),
            _ => Err(CudaError::INVALID_VALUE),
        }
    }
}
