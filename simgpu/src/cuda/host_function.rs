//! Functions of the program in stream order, on a thread of the client.

use super::Sim;
use super::edge::needed;
use super::node::Node;
use super::order::submit;
use super::stream::{Stream, entry};
use super::{capture, graph};
use driver::prelude::*;
use std::sync::atomic::Ordering;

type HostFunction = unsafe extern "C" fn(user: *mut c_void);
type StreamCallback = unsafe extern "C" fn(stream: CUstream, status: CuResult, user: *mut c_void);

/// What the program gave us to hand back to it.
struct Given {
    function: *mut c_void,
    user: *mut c_void,
    stream: CUstream,
}

// SAFETY: addresses that only the program's own function looks at, on the thread that CUDA promises it.
unsafe impl Send for Given {}

/// Submits `function` behind the work of the stream. While one is pending, copies move their bytes in
/// stream order too (`copy.rs`).
pub fn enqueue(
    node: &'static Node,
    stream: &'static Stream,
    function: impl FnOnce() + Send + 'static,
) -> CuResult {
    node.host_functions.fetch_add(1, Ordering::AcqRel);
    let counted = move || {
        function();
        node.host_functions.fetch_sub(1, Ordering::AcqRel);
    };
    let submitted = submit(node, stream, |on_node| {
        node.client.host_function(on_node, Box::new(counted))
    });
    if submitted.is_err() {
        node.host_functions.fetch_sub(1, Ordering::AcqRel);
    }
    submitted
}

/// Calls the program's function in the order of the stream.
pub fn perform(
    node: &'static Node,
    stream: &'static Stream,
    host: graph::work::Given<CUDA_HOST_NODE_PARAMS>,
) -> CuResult {
    enqueue(node, stream, move || {
        let host = host;
        if stream.context().intact().is_err() {
            // Not called after an error of the context.
            return;
        }
        // SAFETY: the program says this is a function of this type.
        let function = unsafe { std::mem::transmute::<*mut c_void, HostFunction>(host.0.function) };
        // SAFETY: called as often as the program asks, with what came with it.
        unsafe { function(host.0.userData) };
    })
}

impl Sim {
    pub(super) fn cuLaunchHostFunc(
        api: StreamApi,
        hStream: CUstream,
        function: CUhostFn,
        user: *mut c_void,
    ) -> CuResult {
        let (node, stream) = entry(api, hStream)?;
        needed(function)?;
        let host = graph::work::Given(CUDA_HOST_NODE_PARAMS {
            function,
            userData: user,
        });
        match capture::of(stream)? {
            Some(capturing) => capturing.add(graph::work::Work::Host(host)),
            None => perform(node, stream, host),
        }
    }

    pub(super) fn cuLaunchHostFunc_v2(
        api: StreamApi,
        hStream: CUstream,
        function: CUhostFn,
        user: *mut c_void,
        sync_mode: c_uint,
    ) -> CuResult {
        if sync_mode > 1 {
            return Err(CudaError::INVALID_VALUE);
        }
        Sim::cuLaunchHostFunc(api, hStream, function, user)
    }

    pub(super) fn cuStreamAddCallback(
        api: StreamApi,
        hStream: CUstream,
        callback: CUstreamCallback,
        user: *mut c_void,
        flags: c_uint,
    ) -> CuResult {
        let (node, stream) = entry(api, hStream)?;
        needed(callback)?;
        if flags != 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        capture::refuse_all(stream)?;
        let given = Given {
            function: callback,
            user,
            stream: hStream,
        };
        enqueue(node, stream, move || {
            let given = given;
            // SAFETY: the program says this is a function of this type.
            let callback = unsafe { std::mem::transmute::<*mut c_void, StreamCallback>(given.function) };
            // SAFETY: called once, with what came with it.
            unsafe { callback(given.stream, stream.context().intact(), given.user) };
        })
    }
}
