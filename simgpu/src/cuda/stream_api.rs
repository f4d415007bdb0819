//! The stream functions of the API.

use super::Sim;
use super::current::current;
use super::edge::{needed, put, put_optional};
use super::order::before;
use super::stream::{
    GREATEST_PRIORITY, LEAST_PRIORITY, LEGACY, NON_BLOCKING, PER_THREAD, create, end, entry, own,
};
use super::{capture, event, free, node::node};
use crate::client::Cost;
use driver::prelude::*;
use std::ptr::null_mut;

impl Sim {
    pub(super) fn cuStreamCreate(api: StreamApi, phStream: *mut CUstream, flags: c_uint) -> CuResult {
        Sim::cuStreamCreateWithPriority(api, phStream, flags, 0)
    }

    pub(super) fn cuStreamCreateWithPriority(
        _: StreamApi,
        phStream: *mut CUstream,
        flags: c_uint,
        priority: c_int,
    ) -> CuResult {
        let context = current()?.1;
        needed(phStream)?;
        if flags & !NON_BLOCKING != 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        let priority = priority.clamp(GREATEST_PRIORITY, LEAST_PRIORITY);
        put(phStream, create(context, flags, priority)?.handle())
    }

    pub(super) fn cuStreamDestroy(api: StreamApi, hStream: CUstream) -> CuResult {
        Sim::cuStreamDestroy_v2(api, hStream)
    }

    pub(super) fn cuStreamDestroy_v2(_: StreamApi, hStream: CUstream) -> CuResult {
        node()?;
        end(own(hStream)?)
    }

    pub(super) fn cuStreamGetPriority(api: StreamApi, hStream: CUstream, priority: *mut c_int) -> CuResult {
        needed(priority)?;
        put(priority, entry(api, hStream)?.1.priority())
    }

    pub(super) fn cuStreamGetFlags(api: StreamApi, hStream: CUstream, flags: *mut c_uint) -> CuResult {
        needed(flags)?;
        put(flags, entry(api, hStream)?.1.flags() & !(LEGACY | PER_THREAD))
    }

    pub(super) fn cuStreamGetId(api: StreamApi, hStream: CUstream, id: *mut c_ulonglong) -> CuResult {
        needed(id)?;
        put(id, entry(api, hStream)?.1.id())
    }

    pub(super) fn cuStreamGetCtx(api: StreamApi, hStream: CUstream, pctx: *mut CUcontext) -> CuResult {
        needed(pctx)?;
        put(pctx, entry(api, hStream)?.1.context().handle())
    }

    pub(super) fn cuStreamGetCtx_v2(
        api: StreamApi,
        hStream: CUstream,
        pctx: *mut CUcontext,
        pgreen: *mut CUgreenCtx,
    ) -> CuResult {
        Sim::cuStreamGetCtx(api, hStream, pctx)?;
        put_optional(pgreen, null_mut());
        Ok(())
    }

    pub(super) fn cuStreamGetGreenCtx(
        api: StreamApi,
        hStream: CUstream,
        pgreen: *mut CUgreenCtx,
    ) -> CuResult {
        needed(pgreen)?;
        entry(api, hStream)?;
        put(pgreen, null_mut())
    }

    pub(super) fn cuStreamGetDevice(api: StreamApi, hStream: CUstream, device: *mut CUdevice) -> CuResult {
        needed(device)?;
        put(device, entry(api, hStream)?.1.context().device.ordinal)
    }

    pub(super) fn cuStreamQuery(api: StreamApi, hStream: CUstream) -> CuResult {
        let (node, stream) = entry(api, hStream)?;
        capture::stream_is_waited_for(stream)?;
        let _cost = node.client.spend(Cost::Query);
        before(stream)?;
        if node.client.query(stream.on_node())? {
            Ok(())
        } else {
            Err(CudaError::NOT_READY)
        }
    }

    pub(super) fn cuStreamSynchronize(api: StreamApi, hStream: CUstream) -> CuResult {
        let (node, stream) = entry(api, hStream)?;
        capture::stream_is_waited_for(stream)?;
        before(stream)?;
        let context = stream.context();
        node.client.synchronize(stream.on_node(), context.wait())?;
        free::observed(context);
        Ok(())
    }

    pub(super) fn cuStreamWaitEvent(
        api: StreamApi,
        hStream: CUstream,
        hEvent: CUevent,
        flags: c_uint,
    ) -> CuResult {
        let (node, stream) = entry(api, hStream)?;
        let event = event::get(hEvent)?;
        if flags > 1 {
            return Err(CudaError::INVALID_VALUE);
        }
        if capture::note_wait(stream, event, flags)? {
            return Ok(());
        }
        event::follow(node, stream, event)
    }

    pub(super) fn cuStreamAttachMemAsync(
        api: StreamApi,
        hStream: CUstream,
        dptr: CUdeviceptr,
        _length: usize,
        flags: c_uint,
    ) -> CuResult {
        entry(api, hStream)?;
        let managed = super::block::find(dptr).is_some_and(|block| block.is_managed());
        if !managed || !matches!(flags, 1 | 2 | 4) {
            return Err(CudaError::INVALID_VALUE);
        }
        Ok(())
    }

    pub(super) fn cuStreamCopyAttributes(api: StreamApi, dst: CUstream, src: CUstream) -> CuResult {
        entry(api, dst)?;
        entry(api, src).map(|_| ())
    }
}
