//! Streams and events where the runtime has shorter forms than the driver.

use super::context;
use super::lookup::DRIVER;
use super::release::Release;
use driver::prelude::*;

pub unsafe fn create(to: *mut CUstream) -> CuResult {
    // SAFETY: handed on.
    unsafe { create_flagged(to, 0) }
}

pub unsafe fn create_flagged(to: *mut CUstream, flags: c_uint) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer.
    unsafe { DRIVER.cuStreamCreate(StreamApi::Legacy, to, flags) }
}

pub unsafe fn event(to: *mut CUevent) -> CuResult {
    // SAFETY: handed on.
    unsafe { event_flagged(to, 0) }
}

pub unsafe fn event_flagged(to: *mut CUevent, flags: c_uint) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointer.
    unsafe { DRIVER.cuEventCreate(StreamApi::Legacy, to, flags) }
}

/// `cudaStreamGetCaptureInfo`: release 12 has the first three arguments, 13 all of them.
#[allow(clippy::too_many_arguments)]
pub unsafe fn capture_info(
    api: StreamApi,
    stream: CUstream,
    status: *mut c_uint,
    id: *mut cuuint64_t,
    graph: *mut CUgraph,
    dependencies: *mut *const CUgraphNode,
    edges: *mut *const CUgraphEdgeData,
    count: *mut usize,
) -> CuResult {
    context::current()?;
    // SAFETY: the caller's pointers, as many as its release passes.
    unsafe {
        match Release::own() {
            Release::Twelve => DRIVER.cuStreamGetCaptureInfo(api, stream, status, id),
            Release::Thirteen => {
                DRIVER.cuStreamGetCaptureInfo_v3(api, stream, status, id, graph, dependencies, edges, count)
            }
        }
    }
}
