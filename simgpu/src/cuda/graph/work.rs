//! What a node of a graph does, and doing it: in stream order, by the functions that do the same for a plain call.
//!
//! Next file of the walk: `exec.rs`.

use super::memory::{self, Allocation};
use crate::cuda::context::Context;
use crate::cuda::node::Node;
use crate::cuda::stream::Stream;
use crate::cuda::{copy::Return, event, host_function, launch, set, shape};
use driver::prelude::*;
use std::sync::Arc;

/// Addresses that only the program's own functions and the driver's look at, on whatever thread.
#[derive(Clone, Copy)]
pub struct Given<T>(pub T);

// SAFETY: the pointers inside are never followed but as the C API allows, which knows no threads.
unsafe impl<T> Send for Given<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Given<T> {}

/// One node's work.
#[derive(Clone)]
pub enum Work {
    Kernel(launch::Kernel),
    Copy(Given<CUDA_MEMCPY3D>, &'static Context),
    Set(CUDA_MEMSET_NODE_PARAMS, &'static Context),
    Host(Given<CUDA_HOST_NODE_PARAMS>),
    /// A graph of its own.
    Graph(u64),
    Empty,
    Wait(Given<CUevent>),
    Record(Given<CUevent>),
    Alloc(Arc<Allocation>),
    Free(u64),
}

impl Work {
    pub fn kind(&self) -> CUgraphNodeType {
        match self {
            Work::Kernel(_) => CU_GRAPH_NODE_TYPE_KERNEL,
            Work::Copy(..) => CU_GRAPH_NODE_TYPE_MEMCPY,
            Work::Set(..) => CU_GRAPH_NODE_TYPE_MEMSET,
            Work::Host(_) => CU_GRAPH_NODE_TYPE_HOST,
            Work::Graph(_) => CU_GRAPH_NODE_TYPE_GRAPH,
            Work::Empty => CU_GRAPH_NODE_TYPE_EMPTY,
            Work::Wait(_) => CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Work::Record(_) => CU_GRAPH_NODE_TYPE_EVENT_RECORD,
            Work::Alloc(_) => CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            Work::Free(_) => CU_GRAPH_NODE_TYPE_MEM_FREE,
        }
    }

    /// The context it works in, whatever the stream's of the launch; `None`: any.
    pub fn context(&self) -> Option<&'static Context> {
        match self {
            Work::Kernel(kernel) => Some(kernel.context),
            Work::Copy(_, context) | Work::Set(_, context) => Some(context),
            Work::Record(event) => event::get(event.0).ok().map(event::Event::context),
            _ => None,
        }
    }

    /// With what the parameters of a node do not say, and so stays: whether a kernel is launched cooperatively.
    pub fn instead_of(mut self, old: &Work) -> Work {
        if let (Work::Kernel(new), Work::Kernel(old)) = (&mut self, old) {
            new.shape.cooperative = old.shape.cooperative;
        }
        self
    }

    /// Does it in the order of the stream.
    pub fn perform(&self, node: &'static Node, stream: &'static Stream) -> CuResult {
        match self {
            Work::Kernel(kernel) => launch::perform(node, stream, kernel),
            Work::Copy(copy, _) => shape::perform(node, stream, &copy.0, Return::AtOnce),
            Work::Set(set, _) => set::perform(node, stream, set),
            Work::Host(host) => host_function::perform(node, stream, *host),
            Work::Graph(_) | Work::Empty => Ok(()),
            Work::Wait(event) => event::follow(node, stream, event::get(event.0)?),
            Work::Record(event) => event::record(event::get(event.0)?, stream),
            Work::Alloc(allocation) => {
                allocation.begin();
                Ok(())
            }
            Work::Free(pointer) => memory::free(*pointer, true),
        }
    }
}
