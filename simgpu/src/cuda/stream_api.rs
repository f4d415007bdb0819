//! The stream functions of the API.

use super::Sim;
use super::current::current;
use super::edge::{needed, put, put_optional};
use super::order::{before, submit};
use super::stream::{
    GREATEST_PRIORITY, LEAST_PRIORITY, LEGACY, NON_BLOCKING, PER_THREAD, create, end, entry, own,
};
use super::{event, free, node::node};
use crate::client::Cost;
use driver::prelude::*;
use std::cell::Cell;
use std::ptr::null_mut;

const NOT_CAPTURING: CUstreamCaptureStatus = 0;

thread_local! {
    /// `CUstreamCaptureMode` of the thread; global to begin with.
    static CAPTURE_MODE: Cell<CUstreamCaptureMode> = const { Cell::new(0) };
}

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
        if event.wait_for_others()? {
            return Ok(());
        }
        submit(node, stream, |on_node| {
            node.client.wait_event(on_node, event.on_node())
        })
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

    // ---- capture: the stand-in never captures, and says so -----------------------------------------

    pub(super) fn cuStreamIsCapturing(
        api: StreamApi,
        hStream: CUstream,
        status: *mut CUstreamCaptureStatus,
    ) -> CuResult {
        needed(status)?;
        entry(api, hStream)?;
        put(status, NOT_CAPTURING)
    }

    pub(super) fn cuStreamGetCaptureInfo(
        api: StreamApi,
        hStream: CUstream,
        status: *mut CUstreamCaptureStatus,
        _id: *mut cuuint64_t,
    ) -> CuResult {
        Sim::cuStreamIsCapturing(api, hStream, status)
    }

    pub(super) fn cuStreamGetCaptureInfo_v2(
        api: StreamApi,
        hStream: CUstream,
        status: *mut CUstreamCaptureStatus,
        _id: *mut cuuint64_t,
        _graph: *mut CUgraph,
        _dependencies: *mut *const CUgraphNode,
        _count: *mut usize,
    ) -> CuResult {
        Sim::cuStreamIsCapturing(api, hStream, status)
    }

    pub(super) fn cuStreamGetCaptureInfo_v3(
        api: StreamApi,
        hStream: CUstream,
        status: *mut CUstreamCaptureStatus,
        _id: *mut cuuint64_t,
        _graph: *mut CUgraph,
        _dependencies: *mut *const CUgraphNode,
        _edges: *mut *const CUgraphEdgeData,
        _count: *mut usize,
    ) -> CuResult {
        Sim::cuStreamIsCapturing(api, hStream, status)
    }

    pub(super) fn cuThreadExchangeStreamCaptureMode(
        _: StreamApi,
        mode: *mut CUstreamCaptureMode,
    ) -> CuResult {
        node()?;
        let new = super::edge::get(mode)?;
        if new > 2 {
            return Err(CudaError::INVALID_VALUE);
        }
        put(mode, CAPTURE_MODE.replace(new))
    }
}
