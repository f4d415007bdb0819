//! Adding nodes, and changing what they do.

use super::memory::{self, Allocation};
use super::params::{self, of_union};
use super::work::Work;
use super::{Edge, Graphs, INVALID, graphs};
use crate::cuda::Sim;
use crate::cuda::current::current;
use crate::cuda::edge::{element, get as read, needed, put};
use crate::cuda::node::node;
use driver::prelude::*;

const PINNED: u32 = 1;
const OWNED_BY_PARENT: u32 = 1;

/// What a program wants a node to do.
pub enum Wanted {
    Work(Work),
    /// A child graph, perhaps moved into the node.
    Child {
        graph: u64,
        moved: bool,
    },
    Alloc(CUDA_MEM_ALLOC_NODE_PARAMS),
    Free(u64),
}

impl Wanted {
    /// # Errors
    /// `NOT_SUPPORTED` for types the stand-in does not have: conditional nodes, semaphores, batches.
    pub fn of(params: &CUgraphNodeParams) -> Result<Wanted, CudaError> {
        Ok(Wanted::Work(match params.kind {
            CU_GRAPH_NODE_TYPE_KERNEL => params::kernel(&of_union(params))?,
            CU_GRAPH_NODE_TYPE_MEMCPY => {
                let copy: CUDA_MEMCPY_NODE_PARAMS = of_union(params);
                if copy.flags != 0 || copy.reserved != 0 {
                    return Err(INVALID);
                }
                params::copy(copy.copyParams, copy.copyCtx)?
            }
            CU_GRAPH_NODE_TYPE_MEMSET => {
                let (set, ctx): (CUDA_MEMSET_NODE_PARAMS, usize) =
                    (of_union(params), params.union[5] as usize);
                params::set(set, ctx as CUcontext)?
            }
            CU_GRAPH_NODE_TYPE_HOST => params::host(of_union(params))?,
            CU_GRAPH_NODE_TYPE_GRAPH => {
                let ownership = params.union[1] as u32;
                if ownership > OWNED_BY_PARENT {
                    return Err(INVALID);
                }
                let moved = ownership == OWNED_BY_PARENT;
                return Ok(Wanted::Child {
                    graph: params.union[0],
                    moved,
                });
            }
            CU_GRAPH_NODE_TYPE_EMPTY => Work::Empty,
            CU_GRAPH_NODE_TYPE_WAIT_EVENT => params::wait(of_union(params))?,
            CU_GRAPH_NODE_TYPE_EVENT_RECORD => params::record(of_union(params))?,
            CU_GRAPH_NODE_TYPE_MEM_ALLOC => return Ok(Wanted::Alloc(of_union(params))),
            CU_GRAPH_NODE_TYPE_MEM_FREE => return Ok(Wanted::Free(params.union[0])),
            8 | 9 | 12..=18 => return Err(CudaError::NOT_SUPPORTED),
            _ => return Err(INVALID),
        }))
    }
}

/// The dependencies of a call.
pub fn edges(
    nodes: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
) -> Result<Vec<Edge>, CudaError> {
    (0..count)
        .map(|at| {
            let from = element(nodes, at)? as u64;
            let data = if data.is_null() {
                CUgraphEdgeData::default()
            } else {
                element(data, at)?
            };
            Ok(Edge { from, data })
        })
        .collect()
}

impl Graphs {
    /// An allocation node; what it takes is counted when it is launched.
    pub fn add_allocation(
        &mut self,
        graph: u64,
        edges: Vec<Edge>,
        params: &CUDA_MEM_ALLOC_NODE_PARAMS,
    ) -> Result<(u64, u64), CudaError> {
        self.check_edges(graph, &edges)?;
        let properties = &params.poolProps;
        if properties.allocType != PINNED || properties.handleTypes != 0 || params.bytesize == 0 {
            return Err(INVALID);
        }
        if matches!(self.get(graph)?.home, super::Home::Child(_)) {
            return Err(INVALID);
        }
        let location = properties.location;
        if location.kind != CU_MEM_LOCATION_TYPE_DEVICE {
            return Err(CudaError::NOT_SUPPORTED);
        }
        let device = node()?.device(location.id)?;
        let allocation = Allocation::new(device, params.bytesize as u64, location, graph)?;
        let address = allocation.base;
        Ok((self.add(graph, edges, Work::Alloc(allocation))?, address))
    }

    /// A node that frees what another graph's or this one's node allocated.
    pub fn add_free(&mut self, graph: u64, edges: Vec<Edge>, pointer: u64) -> Result<u64, CudaError> {
        self.check_edges(graph, &edges)?;
        if matches!(self.get(graph)?.home, super::Home::Child(_)) {
            return Err(INVALID);
        }
        memory::enter_free_node(pointer, graph)?;
        self.add(graph, edges, Work::Free(pointer))
    }
}

fn add(
    phGraphNode: *mut CUgraphNode,
    hGraph: CUgraph,
    edges: Vec<Edge>,
    work: Result<Work, CudaError>,
) -> CuResult {
    current()?;
    needed(phGraphNode)?;
    let made = graphs().add(hGraph as u64, edges, work?)?;
    put(phGraphNode, made as CUgraphNode)
}

fn add_wanted(
    phGraphNode: *mut CUgraphNode,
    hGraph: CUgraph,
    edges: Vec<Edge>,
    nodeParams: *mut CUgraphNodeParams,
) -> CuResult {
    current()?;
    needed(phGraphNode)?;
    let mut given = read(nodeParams)?;
    let graph = hGraph as u64;
    let wanted = Wanted::of(&given)?;
    let mut graphs = graphs();
    let made = match wanted {
        Wanted::Work(work) => graphs.add(graph, edges, work)?,
        Wanted::Child { graph: child, moved } => {
            let made = if moved {
                graphs.add_moved(graph, edges, child)?
            } else {
                graphs.add_copy(graph, edges, child)?
            };
            given.union[0] = graphs.child_of(made)?;
            put(nodeParams, given)?;
            made
        }
        Wanted::Alloc(mut params) => {
            let (made, address) = graphs.add_allocation(graph, edges, &params)?;
            params.dptr = address;
            put(nodeParams, params::in_union(given.kind, params))?;
            made
        }
        Wanted::Free(pointer) => graphs.add_free(graph, edges, pointer)?,
    };
    put(phGraphNode, made as CUgraphNode)
}

/// Changes a node by what `make` makes of the call's parameters.
fn set(hNode: CUgraphNode, work: Result<Work, CudaError>) -> CuResult {
    node()?;
    let work = work?;
    let mut graphs = graphs();
    let node = graphs.node_mut(hNode as u64)?;
    if node.work.kind() != work.kind() {
        return Err(INVALID);
    }
    node.work = work.instead_of(&node.work);
    Ok(())
}

fn set_in(hGraphExec: CUgraphExec, hNode: CUgraphNode, work: Result<Work, CudaError>) -> CuResult {
    node()?;
    let work = work?;
    graphs().set_in_exec(hGraphExec as u64, hNode as u64, work)
}

macro_rules! node_functions {
    ($($add:ident $set:ident $set_in:ident ($($argument:ident: $kind:ty),+) $set_arguments:tt $work:expr, $set_work:expr;)*) => {
        impl Sim {$(
            pub(in crate::cuda) fn $add(
                _: StreamApi,
                phGraphNode: *mut CUgraphNode,
                hGraph: CUgraph,
                dependencies: *const CUgraphNode,
                numDependencies: usize,
                $($argument: $kind),+
            ) -> CuResult {
                let edges = edges(dependencies, std::ptr::null(), numDependencies)?;
                add(phGraphNode, hGraph, edges, $work($($argument),+))
            }

            node_functions! { @set $set $set_arguments $set_work }

            pub(in crate::cuda) fn $set_in(
                _: StreamApi,
                hGraphExec: CUgraphExec,
                hNode: CUgraphNode,
                $($argument: $kind),+
            ) -> CuResult {
                set_in(hGraphExec, hNode, $work($($argument),+))
            }
        )*}
    };
    (@set $set:ident ($argument:ident: $kind:ty) $work:expr) => {
        pub(in crate::cuda) fn $set(_: StreamApi, hNode: CUgraphNode, $argument: $kind) -> CuResult {
            set(hNode, $work(hNode, $argument))
        }
    };
}

/// The context of a node that exists already.
fn context_of(hNode: CUgraphNode) -> Result<CUcontext, CudaError> {
    match &graphs().node(hNode as u64)?.work {
        Work::Copy(_, context) | Work::Set(_, context) => Ok(context.handle()),
        _ => Err(INVALID),
    }
}

node_functions! {
    cuGraphAddKernelNode cuGraphKernelNodeSetParams cuGraphExecKernelNodeSetParams
        (nodeParams: *const CUDA_KERNEL_NODE_PARAMS_v1) (nodeParams: *const CUDA_KERNEL_NODE_PARAMS_v1)
        |given| params::kernel_v1(read(given)?),
        |_, given| params::kernel_v1(read(given)?);
    cuGraphAddKernelNode_v2 cuGraphKernelNodeSetParams_v2 cuGraphExecKernelNodeSetParams_v2
        (nodeParams: *const CUDA_KERNEL_NODE_PARAMS) (nodeParams: *const CUDA_KERNEL_NODE_PARAMS)
        |given| params::kernel(&read(given)?),
        |_, given| params::kernel(&read(given)?);
    cuGraphAddMemcpyNode cuGraphMemcpyNodeSetParams cuGraphExecMemcpyNodeSetParams
        (copyParams: *const CUDA_MEMCPY3D, ctx: CUcontext) (nodeParams: *const CUDA_MEMCPY3D)
        |given, ctx| params::copy(read(given)?, ctx),
        |of, given| params::copy(read(given)?, context_of(of)?);
    cuGraphAddMemsetNode cuGraphMemsetNodeSetParams cuGraphExecMemsetNodeSetParams
        (memsetParams: *const CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext) (nodeParams: *const CUDA_MEMSET_NODE_PARAMS)
        |given, ctx| params::set(read(given)?, ctx),
        |of, given| params::set(read(given)?, context_of(of)?);
    cuGraphAddHostNode cuGraphHostNodeSetParams cuGraphExecHostNodeSetParams
        (nodeParams: *const CUDA_HOST_NODE_PARAMS) (nodeParams: *const CUDA_HOST_NODE_PARAMS)
        |given| params::host(read(given)?),
        |_, given| params::host(read(given)?);
    cuGraphAddEventRecordNode cuGraphEventRecordNodeSetEvent cuGraphExecEventRecordNodeSetEvent
        (event: CUevent) (event: CUevent)
        params::record,
        |_, event| params::record(event);
    cuGraphAddEventWaitNode cuGraphEventWaitNodeSetEvent cuGraphExecEventWaitNodeSetEvent
        (event: CUevent) (event: CUevent)
        params::wait,
        |_, event| params::wait(event);
}

impl Sim {
    pub(in crate::cuda) fn cuGraphAddEmptyNode(
        _: StreamApi,
        phGraphNode: *mut CUgraphNode,
        hGraph: CUgraph,
        dependencies: *const CUgraphNode,
        numDependencies: usize,
    ) -> CuResult {
        let edges = edges(dependencies, std::ptr::null(), numDependencies)?;
        add(phGraphNode, hGraph, edges, Ok(Work::Empty))
    }

    pub(in crate::cuda) fn cuGraphAddChildGraphNode(
        _: StreamApi,
        phGraphNode: *mut CUgraphNode,
        hGraph: CUgraph,
        dependencies: *const CUgraphNode,
        numDependencies: usize,
        childGraph: CUgraph,
    ) -> CuResult {
        current()?;
        needed(phGraphNode)?;
        let edges = edges(dependencies, std::ptr::null(), numDependencies)?;
        let made = graphs().add_copy(hGraph as u64, edges, childGraph as u64)?;
        put(phGraphNode, made as CUgraphNode)
    }

    pub(in crate::cuda) fn cuGraphAddMemAllocNode(
        _: StreamApi,
        phGraphNode: *mut CUgraphNode,
        hGraph: CUgraph,
        dependencies: *const CUgraphNode,
        numDependencies: usize,
        nodeParams: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
    ) -> CuResult {
        current()?;
        needed(phGraphNode)?;
        let edges = edges(dependencies, std::ptr::null(), numDependencies)?;
        let mut given = read(nodeParams)?;
        let (made, address) = graphs().add_allocation(hGraph as u64, edges, &given)?;
        given.dptr = address;
        put(nodeParams, given)?;
        put(phGraphNode, made as CUgraphNode)
    }

    pub(in crate::cuda) fn cuGraphAddMemFreeNode(
        _: StreamApi,
        phGraphNode: *mut CUgraphNode,
        hGraph: CUgraph,
        dependencies: *const CUgraphNode,
        numDependencies: usize,
        dptr: CUdeviceptr,
    ) -> CuResult {
        current()?;
        needed(phGraphNode)?;
        let edges = edges(dependencies, std::ptr::null(), numDependencies)?;
        let made = graphs().add_free(hGraph as u64, edges, dptr)?;
        put(phGraphNode, made as CUgraphNode)
    }

    pub(in crate::cuda) fn cuGraphAddNode(
        _: StreamApi,
        phGraphNode: *mut CUgraphNode,
        hGraph: CUgraph,
        dependencies: *const CUgraphNode,
        numDependencies: usize,
        nodeParams: *mut CUgraphNodeParams,
    ) -> CuResult {
        let edges = edges(dependencies, std::ptr::null(), numDependencies)?;
        add_wanted(phGraphNode, hGraph, edges, nodeParams)
    }

    pub(in crate::cuda) fn cuGraphAddNode_v2(
        _: StreamApi,
        phGraphNode: *mut CUgraphNode,
        hGraph: CUgraph,
        dependencies: *const CUgraphNode,
        dependencyData: *const CUgraphEdgeData,
        numDependencies: usize,
        nodeParams: *mut CUgraphNodeParams,
    ) -> CuResult {
        let edges = edges(dependencies, dependencyData, numDependencies)?;
        add_wanted(phGraphNode, hGraph, edges, nodeParams)
    }

    pub(in crate::cuda) fn cuGraphAddNode_v3(
        api: StreamApi,
        phGraphNode: *mut CUgraphNode,
        hGraph: CUgraph,
        dependencies: *const CUgraphNode,
        dependencyData: *const CUgraphEdgeData,
        numDependencies: usize,
        nodeParams: *mut CUgraphNodeParams,
    ) -> CuResult {
        Sim::cuGraphAddNode_v2(
            api,
            phGraphNode,
            hGraph,
            dependencies,
            dependencyData,
            numDependencies,
            nodeParams,
        )
    }

    pub(in crate::cuda) fn cuGraphNodeSetParams(
        _: StreamApi,
        hNode: CUgraphNode,
        nodeParams: *mut CUgraphNodeParams,
    ) -> CuResult {
        match Wanted::of(&read(nodeParams)?)? {
            Wanted::Work(work) => set(hNode, Ok(work)),
            _ => Err(INVALID),
        }
    }

    pub(in crate::cuda) fn cuGraphNodeSetParams_v2(
        api: StreamApi,
        hNode: CUgraphNode,
        nodeParams: *mut CUgraphNodeParams,
    ) -> CuResult {
        Sim::cuGraphNodeSetParams(api, hNode, nodeParams)
    }
}
