//! Graphs of the driver in `world`: what they allocate, where it lies, and the mode of captures. Graphs launched on one stream
//! share memory or do not, as a test likes; a graph launched on another stream than before no longer shares with the first.

use core::ffi::c_void;
use std::collections::{BTreeMap, BTreeSet};

use driver::abi::*;
use driver::{CuResult, CudaError, Driver};

use super::State;
use super::functions::{act, id, put};
use crate::live::PAGE;

#[derive(Default)]
pub struct Graphs {
    /// What the nodes of each allocate.
    made: BTreeMap<u64, Vec<u64>>,
    /// Executable ones: bytes, and the stream they were launched on.
    execs: BTreeMap<u64, (u64, Option<usize>)>,
    pub reserved: u64,
    pub shares: bool,
    /// Streams on which graphs run: what those have is not trimmed, and outlives the graph.
    pub running: BTreeSet<usize>,
    /// Every stream is capturing.
    pub captures: bool,
    /// The capture mode of the one thread there is.
    mode: CUstreamCaptureMode,
    /// Calls that take effect at once and were made in another mode than the relaxed one.
    pub unsafe_calls: Vec<&'static str>,
}

impl Graphs {
    fn wanted(&self) -> u64 {
        let placed = self
            .execs
            .values()
            .filter_map(|(bytes, stream)| Some((stream.as_ref()?, *bytes)));
        let mut sums: BTreeMap<usize, u64> = BTreeMap::new();
        for (stream, bytes) in placed {
            let sum = sums.entry(*stream).or_default();
            *sum = if self.shares {
                bytes.max(*sum)
            } else {
                *sum + bytes
            };
        }
        sums.values().sum()
    }

    /// What graphs had goes back, but for those that run.
    pub fn trim(&mut self) {
        for exec in self.execs.values_mut() {
            exec.1 = exec.1.filter(|stream| self.running.contains(stream));
        }
        self.reserved = self.reserved.min(self.wanted());
    }

    /// Their device's primary context ends.
    pub fn end_all(&mut self) {
        self.execs.clear();
        self.running.clear();
        self.reserved = 0;
    }

    /// Notes a call that a capture may forbid.
    pub fn note_unsafe(&mut self, name: &'static str) {
        if self.mode != CU_STREAM_CAPTURE_MODE_RELAXED {
            self.unsafe_calls.push(name);
        }
    }
}

impl State {
    /// A graph with allocation nodes of these sizes, in bytes.
    pub fn graph(&mut self, sizes: &[u64]) -> CUgraph {
        let handle = self.fresh(0);
        self.graphs.made.insert(handle, sizes.to_vec());
        handle as CUgraph
    }

    fn place(&mut self, exec: CUgraphExec, stream: CUstream) -> CuResult {
        let growth = self.growth;
        let graphs = &mut self.graphs;
        let entry = graphs
            .execs
            .get_mut(&(exec as u64))
            .ok_or(CudaError::INVALID_VALUE)?;
        entry.1 = Some(stream as usize);
        let missing = graphs.wanted().saturating_sub(graphs.reserved);
        graphs.reserved += missing.next_multiple_of(growth);
        Ok(())
    }
}

/// Graph and place of a node.
fn parts(node: CUgraphNode) -> (u64, usize) {
    let node = node as u64;
    (node / PAGE * PAGE, (node % PAGE) as usize - 1)
}

macro_rules! functions {
    ($(fn $name:ident($state:ident, $($argument:ident: $kind:ty),*) $body:block)*) => {
        $(
            #[allow(non_snake_case, unused_unsafe, reason = "some bodies touch no pointer")]
            unsafe extern "C" fn $name($($argument: $kind),*) -> CuResult {
                // SAFETY: the tests pass pointers to their own variables.
                unsafe { act(stringify!($name), |$state| $body) }
            }
        )*
        /// Adds these functions to a driver.
        pub fn add_to(driver: &Driver) {
            // SAFETY: each function has the prototype of its name.
            unsafe { $(driver.set_address(id(stringify!($name)), $name as *mut c_void);)* }
        }
    };
}

functions! {
    fn cuThreadExchangeStreamCaptureMode(state, mode: *mut CUstreamCaptureMode) {
        core::ptr::swap(&raw mut state.graphs.mode, mode);
        Ok(())
    }
    fn cuGraphGetNodes(state, graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        let sizes = state.graphs.made.get(&(graph as u64)).ok_or(CudaError::INVALID_VALUE)?;
        for at in 0..sizes.len() {
            if !nodes.is_null() { put(nodes.add(at), (graph as usize + 1 + at) as CUgraphNode)? }
        }
        put(count, sizes.len())
    }
    fn cuGraphNodeGetType(_state, _node: CUgraphNode, kind: *mut CUgraphNodeType) { put(kind, CU_GRAPH_NODE_TYPE_MEM_ALLOC) }
    fn cuGraphMemAllocNodeGetParams(state, node: CUgraphNode, params: *mut CUDA_MEM_ALLOC_NODE_PARAMS) {
        let (graph, at) = parts(node);
        (*params).poolProps.location.kind = CU_MEM_LOCATION_TYPE_DEVICE;
        (*params).bytesize = state.graphs.made[&graph][at] as usize;
        Ok(())
    }
    fn cuGraphInstantiateWithFlags(state, exec: *mut CUgraphExec, graph: CUgraph, _flags: c_ulonglong) {
        let sizes = state.graphs.made.get(&(graph as u64)).ok_or(CudaError::INVALID_VALUE)?;
        let bytes = sizes.iter().map(|bytes| bytes.next_multiple_of(PAGE)).sum();
        let handle = state.fresh(0);
        state.graphs.execs.insert(handle, (bytes, None));
        put(exec, handle as CUgraphExec)
    }
    fn cuGraphInstantiateWithParams(state, exec: *mut CUgraphExec, graph: CUgraph, params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS) {
        let sizes = state.graphs.made.get(&(graph as u64)).ok_or(CudaError::INVALID_VALUE)?;
        let bytes = sizes.iter().map(|bytes| bytes.next_multiple_of(PAGE)).sum();
        let handle = state.fresh(0);
        state.graphs.execs.insert(handle, (bytes, None));
        put(exec, handle as CUgraphExec)?;
        if (*params).flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD == 0 { return Ok(()) }
        state.place(handle as CUgraphExec, (*params).hUploadStream)
    }
    fn cuStreamIsCapturing(state, _stream: CUstream, status: *mut CUstreamCaptureStatus) {
        put(status, c_uint::from(state.graphs.captures))
    }
    fn cuGraphUpload(state, exec: CUgraphExec, stream: CUstream) { state.place(exec, stream) }
    fn cuGraphLaunch(state, exec: CUgraphExec, stream: CUstream) {
        if state.graphs.captures { Err(CudaError::INVALID_VALUE) } else { state.place(exec, stream) }
    }
    fn cuGraphExecDestroy(state, exec: CUgraphExec) {
        let gone = state.graphs.execs.remove(&(exec as u64)).ok_or(CudaError::INVALID_VALUE)?;
        if gone.1.is_some_and(|stream| state.graphs.running.contains(&stream)) {
            let handle = state.fresh(0);
            state.graphs.execs.insert(handle, gone);
        }
        Ok(())
    }
    fn cuDeviceGraphMemTrim(state, _device: CUdevice) {
        state.graphs.note_unsafe("cuDeviceGraphMemTrim");
        state.graphs.trim();
        Ok(())
    }
    fn cuDeviceGetGraphMemAttribute(state, _device: CUdevice, attribute: CUgraphMem_attribute, value: *mut c_void) {
        match attribute {
            CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT => put(value.cast(), state.graphs.wanted()),
            CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT => put(value.cast(), state.graphs.reserved),
            _ => Err(CudaError::INVALID_VALUE),
        }
    }
}
