//! Executable graphs: the nodes of a graph and its children in one list, each after those it depends on.
//!
//! Next file of the walk: `launch.rs`.

use super::memory::Allocation;
use super::work::Work;
use super::{Graphs, INVALID, fresh_handle, user_object};
use crate::client::{Client, EventId, Wait};
use crate::cuda::Sim;
use crate::cuda::current::current;
use crate::cuda::edge::{get as read, needed, put, put_optional};
use crate::cuda::node::node;
use driver::prelude::*;
use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const ERROR: u32 = 1;
const INVALID_STRUCTURE: u32 = 2;
const KNOWN_FLAGS: u64 = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
    | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD
    | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH
    | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

/// One node, ready.
#[derive(Clone)]
pub struct Op {
    /// The handle of the node it was made of.
    pub node: u64,
    pub work: Work,
    /// The ops it comes after, by their places, which are before its own.
    pub after: Vec<usize>,
    pub enabled: bool,
    /// For a child graph: how many ops before it are the child's.
    pub span: usize,
}

/// Launches of one executable graph: they come one after the other.
pub struct Run {
    client: &'static Client,
    pub event: EventId,
    /// Launches that have begun and are not on the timeline yet.
    beginning: AtomicU32,
}

/// A launch that is not on the timeline yet.
pub struct Beginning<'a>(&'a Run);

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        self.0.beginning.fetch_sub(1, Ordering::Release);
    }
}

impl Run {
    fn new(client: &'static Client) -> Result<Arc<Run>, CudaError> {
        let event = client.event()?;
        Ok(Arc::new(Run {
            client,
            event,
            beginning: AtomicU32::new(0),
        }))
    }

    /// A launch begins: until it is on the timeline, nothing that it needs is idle.
    pub fn begin(&self) -> Beginning<'_> {
        self.beginning.fetch_add(1, Ordering::Acquire);
        Beginning(self)
    }

    /// Whether the latest launch is complete.
    pub fn is_done(&self) -> bool {
        self.beginning.load(Ordering::Acquire) == 0 && self.client.event_query(self.event) != Ok(false)
    }

    /// Waits until it is.
    pub fn wait(&self) {
        while !self.is_done() {
            if self.client.event_synchronize(self.event, Wait::Block).is_err() {
                return;
            }
            // One that is only beginning is soon on the timeline.
            std::thread::yield_now();
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.client.drop_event(self.event);
    }
}

pub struct Exec {
    /// Its number in the process.
    pub number: u32,
    pub ops: Arc<Vec<Op>>,
    /// The graph it was made of.
    pub source: u64,
    pub flags: u64,
    pub run: Arc<Run>,
    pub memory: Vec<Arc<Allocation>>,
    /// References to objects of the program.
    pub objects: Vec<(u64, u32)>,
}

impl Graphs {
    /// The ops of a graph and its children.
    ///
    /// # Errors
    /// A node that is part of a cycle.
    pub fn flatten(&self, graph: u64) -> Result<Vec<Op>, u64> {
        let mut ops = Vec::new();
        self.flatten_into(graph, &[], &mut ops)?;
        Ok(ops)
    }

    fn flatten_into(&self, graph: u64, before: &[usize], ops: &mut Vec<Op>) -> Result<Vec<usize>, u64> {
        let Ok(graph) = self.get(graph) else {
            return Ok(before.to_vec());
        };
        let mut places: HashMap<u64, usize> = HashMap::new();
        let mut leaves = Vec::new();
        for at in self.order(graph)? {
            let node = &graph.nodes[at];
            let mut after: Vec<usize> = node.edges.iter().map(|edge| places[&edge.from]).collect();
            if after.is_empty() {
                after = before.to_vec();
            }
            let start = ops.len();
            if let Work::Graph(child) = &node.work {
                after = self.flatten_into(*child, &after, ops)?;
            }
            let place = ops.len();
            ops.push(Op {
                node: node.handle,
                work: node.work.clone(),
                after,
                enabled: true,
                span: place - start,
            });
            places.insert(node.handle, place);
            leaves.retain(|leaf| !node.edges.iter().any(|edge| places[&edge.from] == *leaf));
            leaves.push(place);
        }
        if leaves.is_empty() {
            leaves = before.to_vec();
        }
        Ok(leaves)
    }

    /// What a graph and its children hold.
    pub fn objects_of(&self, graph: u64) -> Vec<(u64, u32)> {
        let Ok(graph) = self.get(graph) else {
            return Vec::new();
        };
        let mut objects = graph.objects.clone();
        for node in &graph.nodes {
            if let Work::Graph(child) = node.work {
                objects.extend(self.objects_of(child));
            }
        }
        objects
    }

    pub fn exec(&self, handle: u64) -> Result<&Exec, CudaError> {
        self.execs.get(&handle).ok_or(INVALID)
    }

    pub fn exec_mut(&mut self, handle: u64) -> Result<&mut Exec, CudaError> {
        self.execs.get_mut(&handle).ok_or(INVALID)
    }

    /// # Errors
    /// With the node at fault, where there is one.
    fn instantiate(&mut self, source: u64, flags: u64) -> Result<u64, (CudaError, u64)> {
        let client = node().map_err(|error| (error, 0))?.client;
        let graph = self.get(source).map_err(|error| (error, 0))?;
        if matches!(graph.home, super::Home::Capture(_)) {
            return Err((INVALID, 0));
        }
        let device_launch = flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH != 0;
        if flags & !KNOWN_FLAGS != 0
            || device_launch && flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH != 0
        {
            return Err((INVALID, 0));
        }
        if device_launch {
            return Err((CudaError::NOT_SUPPORTED, 0));
        }
        if self.has_memory(source) && graph.instances != 0 {
            return Err((INVALID, 0));
        }
        let ops = self.flatten(source).map_err(|node| (INVALID, node))?;
        let objects = self.objects_of(source);
        let run = Run::new(client).map_err(|error| (error, 0))?;
        let memory: Vec<Arc<Allocation>> = ops
            .iter()
            .filter_map(|op| match &op.work {
                Work::Alloc(allocation) => Some(allocation.clone()),
                _ => None,
            })
            .collect();
        memory.iter().for_each(|allocation| allocation.hold());
        user_object::retain_all(&objects);
        self.numbers += 1;
        let number = self.numbers;
        if let Ok(graph) = self.get_mut(source) {
            graph.instances += 1;
        }
        let handle = fresh_handle();
        let exec = Exec {
            number,
            ops: Arc::new(ops),
            source,
            flags,
            run,
            memory,
            objects,
        };
        self.execs.insert(handle, exec);
        Ok(handle)
    }

    fn end_exec(&mut self, handle: u64) -> CuResult {
        let exec = self.execs.remove(&handle).ok_or(INVALID)?;
        if let Ok(graph) = self.get_mut(exec.source) {
            graph.instances = graph.instances.saturating_sub(1);
        }
        exec.memory.iter().for_each(|allocation| allocation.let_go());
        user_object::release_after(exec.run, exec.objects);
        Ok(())
    }
}

fn instantiate(to: *mut CUgraphExec, graph: CUgraph, flags: u64) -> Result<u64, (CudaError, u64)> {
    current().map_err(|error| (error, 0))?;
    needed(to).map_err(|error| (error, 0))?;
    let made = super::graphs().instantiate(graph as u64, flags)?;
    put(to, made as CUgraphExec).map_err(|error| (error, 0))?;
    Ok(made)
}

impl Sim {
    pub(in crate::cuda) fn cuGraphInstantiate(
        api: StreamApi,
        phGraphExec: *mut CUgraphExec,
        hGraph: CUgraph,
        phErrorNode: *mut CUgraphNode,
        logBuffer: *mut c_char,
        bufferSize: usize,
    ) -> CuResult {
        Sim::cuGraphInstantiate_v2(api, phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize)
    }

    pub(in crate::cuda) fn cuGraphInstantiate_v2(
        _: StreamApi,
        phGraphExec: *mut CUgraphExec,
        hGraph: CUgraph,
        phErrorNode: *mut CUgraphNode,
        logBuffer: *mut c_char,
        bufferSize: usize,
    ) -> CuResult {
        if !logBuffer.is_null() && bufferSize != 0 {
            put(logBuffer, 0)?;
        }
        put_optional(phErrorNode, null_mut());
        match instantiate(phGraphExec, hGraph, 0) {
            Ok(_) => Ok(()),
            Err((error, node)) => {
                put_optional(phErrorNode, node as CUgraphNode);
                Err(error)
            }
        }
    }

    pub(in crate::cuda) fn cuGraphInstantiateWithFlags(
        _: StreamApi,
        phGraphExec: *mut CUgraphExec,
        hGraph: CUgraph,
        flags: c_ulonglong,
    ) -> CuResult {
        if flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD != 0 {
            return Err(INVALID);
        }
        instantiate(phGraphExec, hGraph, flags)
            .map(|_| ())
            .map_err(|(error, _)| error)
    }

    pub(in crate::cuda) fn cuGraphInstantiateWithParams(
        api: StreamApi,
        phGraphExec: *mut CUgraphExec,
        hGraph: CUgraph,
        instantiateParams: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
    ) -> CuResult {
        let mut answer = read(instantiateParams)?;
        let made = instantiate(phGraphExec, hGraph, answer.flags);
        let uploads = answer.flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD != 0;
        let uploaded = match made {
            Ok(exec) if uploads => {
                let uploaded = Sim::cuGraphUpload(api, exec as CUgraphExec, answer.hUploadStream);
                uploaded.map_err(|error| {
                    // Nobody has the handle yet.
                    let _ = super::graphs().end_exec(exec);
                    put_optional(phGraphExec, null_mut());
                    (error, 0)
                })
            }
            other => other.map(|_| ()),
        };
        let (result, node) = match uploaded {
            Ok(()) => (0, 0),
            Err((_, 0)) => (ERROR, 0),
            Err((_, node)) => (INVALID_STRUCTURE, node),
        };
        (answer.result_out, answer.hErrNode_out) = (result, node as CUgraphNode);
        put(instantiateParams, answer)?;
        uploaded.map_err(|(error, _)| error)
    }

    pub(in crate::cuda) fn cuGraphExecDestroy(_: StreamApi, hGraphExec: CUgraphExec) -> CuResult {
        node()?;
        super::graphs().end_exec(hGraphExec as u64)
    }

    pub(in crate::cuda) fn cuGraphExecGetFlags(
        _: StreamApi,
        hGraphExec: CUgraphExec,
        flags: *mut cuuint64_t,
    ) -> CuResult {
        node()?;
        put(flags, super::graphs().exec(hGraphExec as u64)?.flags)
    }

    pub(in crate::cuda) fn cuGraphExecGetId(
        _: StreamApi,
        hGraphExec: CUgraphExec,
        graphId: *mut c_uint,
    ) -> CuResult {
        node()?;
        put(graphId, super::graphs().exec(hGraphExec as u64)?.number)
    }
}
