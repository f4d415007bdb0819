//! What a program may ask about graphs and nodes.

use super::params::{self, in_union};
use super::work::Work;
use super::{Edge, INVALID, graphs};
use crate::cuda::Sim;
use crate::cuda::edge::{get as read, needed, put};
use crate::cuda::node::node;
use driver::prelude::*;
use std::ptr::null_mut;

/// Writes a list as the API does: the number alone where the list is null, else as many as there is room for, and null
/// behind the last.
fn list(found: &[u64], to: *mut CUgraphNode, count: *mut usize) -> CuResult {
    needed(count)?;
    if to.is_null() {
        return put(count, found.len());
    }
    let room = read(count)?;
    for at in 0..room {
        let handle = found.get(at).map_or(null_mut(), |&handle| handle as CUgraphNode);
        put(to.wrapping_add(at), handle)?;
    }
    put(count, found.len().min(room))
}

/// The data of edges, beside a list of them. Without a place for it, data that is not zero is an error.
fn data(found: &[CUgraphEdgeData], to: *mut CUgraphEdgeData, has_list: bool, room: usize) -> CuResult {
    if to.is_null() {
        let lost = has_list && found.iter().any(|data| *data != CUgraphEdgeData::default());
        return if lost { Err(CudaError::LOSSY_QUERY) } else { Ok(()) };
    }
    let mut written = found.iter().take(room).enumerate();
    written.try_for_each(|(at, data)| put(to.wrapping_add(at), *data))
}

fn room(count: *mut usize) -> Result<usize, CudaError> {
    needed(count)?;
    read(count)
}

fn all_edges(
    graph: CUgraph,
    from: *mut CUgraphNode,
    to: *mut CUgraphNode,
    edge_data: *mut CUgraphEdgeData,
    count: *mut usize,
) -> CuResult {
    node()?;
    let graphs = graphs();
    let graph = graphs.get(graph as u64)?;
    let pairs: Vec<(Edge, u64)> = graph
        .nodes
        .iter()
        .flat_map(|node| node.edges.iter().map(|edge| (*edge, node.handle)))
        .collect();
    if from.is_null() != to.is_null() {
        return Err(INVALID);
    }
    let own: Vec<CUgraphEdgeData> = pairs.iter().map(|(edge, _)| edge.data).collect();
    let space = room(count)?;
    data(&own, edge_data, !from.is_null(), space)?;
    let starts: Vec<u64> = pairs.iter().map(|(edge, _)| edge.from).collect();
    let ends: Vec<u64> = pairs.iter().map(|(_, to)| *to).collect();
    list(&starts, from, count)?;
    if !to.is_null() {
        put(count, space)?;
        list(&ends, to, count)?;
    }
    Ok(())
}

fn dependencies(
    hNode: CUgraphNode,
    to: *mut CUgraphNode,
    edge_data: *mut CUgraphEdgeData,
    count: *mut usize,
) -> CuResult {
    node()?;
    let edges = graphs().node(hNode as u64)?.edges.clone();
    answer_edges(edges, to, edge_data, count)
}

fn dependents(
    hNode: CUgraphNode,
    to: *mut CUgraphNode,
    edge_data: *mut CUgraphEdgeData,
    count: *mut usize,
) -> CuResult {
    node()?;
    let graphs = graphs();
    let graph = graphs.get(graphs.home_of(hNode as u64)?)?;
    let edges = graph.nodes.iter().flat_map(|node| {
        let own = node.edges.iter().filter(|edge| edge.from == hNode as u64);
        own.map(|edge| Edge {
            from: node.handle,
            data: edge.data,
        })
    });
    answer_edges(edges.collect(), to, edge_data, count)
}

fn answer_edges(
    edges: Vec<Edge>,
    to: *mut CUgraphNode,
    edge_data: *mut CUgraphEdgeData,
    count: *mut usize,
) -> CuResult {
    let own: Vec<CUgraphEdgeData> = edges.iter().map(|edge| edge.data).collect();
    data(&own, edge_data, !to.is_null(), room(count)?)?;
    let nodes: Vec<u64> = edges.iter().map(|edge| edge.from).collect();
    list(&nodes, to, count)
}

/// Looks at a node's work.
fn of_node<T>(hNode: CUgraphNode, to: *mut T, look: impl FnOnce(&Work) -> Result<T, CudaError>) -> CuResult {
    node()?;
    needed(to)?;
    put(to, look(&graphs().node(hNode as u64)?.work)?)
}

fn whole(work: &Work) -> Result<CUgraphNodeParams, CudaError> {
    const OWNERSHIP_UNKNOWN: u32 = u32::MAX;
    let kind = work.kind();
    Ok(match work {
        Work::Kernel(_) => in_union(kind, params::kernel_params(work)?),
        Work::Copy(copy, context) => {
            let params = CUDA_MEMCPY_NODE_PARAMS {
                flags: 0,
                reserved: 0,
                copyCtx: context.handle(),
                copyParams: copy.0,
            };
            in_union(kind, params)
        }
        Work::Set(set, context) => {
            let mut params = in_union(kind, *set);
            params.union[5] = context.handle() as u64;
            params
        }
        Work::Host(host) => in_union(kind, host.0),
        Work::Graph(child) => in_union(kind, [*child, u64::from(OWNERSHIP_UNKNOWN)]),
        Work::Empty => in_union(kind, 0u64),
        Work::Wait(event) | Work::Record(event) => in_union(kind, event.0),
        Work::Alloc(allocation) => in_union(kind, params::alloc_params(allocation)),
        Work::Free(pointer) => in_union(kind, *pointer),
    })
}

impl Sim {
    pub(in crate::cuda) fn cuGraphGetNodes(
        _: StreamApi,
        hGraph: CUgraph,
        nodes: *mut CUgraphNode,
        numNodes: *mut usize,
    ) -> CuResult {
        node()?;
        let graphs = graphs();
        let found: Vec<u64> = graphs
            .get(hGraph as u64)?
            .nodes
            .iter()
            .map(|node| node.handle)
            .collect();
        list(&found, nodes, numNodes)
    }

    pub(in crate::cuda) fn cuGraphGetRootNodes(
        _: StreamApi,
        hGraph: CUgraph,
        rootNodes: *mut CUgraphNode,
        numRootNodes: *mut usize,
    ) -> CuResult {
        node()?;
        let graphs = graphs();
        let nodes = graphs.get(hGraph as u64)?.nodes.iter();
        let roots = nodes.filter(|node| node.edges.is_empty()).map(|node| node.handle);
        list(&roots.collect::<Vec<u64>>(), rootNodes, numRootNodes)
    }

    pub(in crate::cuda) fn cuGraphGetEdges(
        _: StreamApi,
        hGraph: CUgraph,
        from: *mut CUgraphNode,
        to: *mut CUgraphNode,
        numEdges: *mut usize,
    ) -> CuResult {
        all_edges(hGraph, from, to, null_mut(), numEdges)
    }

    pub(in crate::cuda) fn cuGraphGetEdges_v2(
        _: StreamApi,
        hGraph: CUgraph,
        from: *mut CUgraphNode,
        to: *mut CUgraphNode,
        edgeData: *mut CUgraphEdgeData,
        numEdges: *mut usize,
    ) -> CuResult {
        all_edges(hGraph, from, to, edgeData, numEdges)
    }

    pub(in crate::cuda) fn cuGraphNodeGetDependencies(
        _: StreamApi,
        hNode: CUgraphNode,
        nodes: *mut CUgraphNode,
        count: *mut usize,
    ) -> CuResult {
        dependencies(hNode, nodes, null_mut(), count)
    }

    pub(in crate::cuda) fn cuGraphNodeGetDependencies_v2(
        _: StreamApi,
        hNode: CUgraphNode,
        nodes: *mut CUgraphNode,
        edgeData: *mut CUgraphEdgeData,
        count: *mut usize,
    ) -> CuResult {
        dependencies(hNode, nodes, edgeData, count)
    }

    pub(in crate::cuda) fn cuGraphNodeGetDependentNodes(
        _: StreamApi,
        hNode: CUgraphNode,
        nodes: *mut CUgraphNode,
        count: *mut usize,
    ) -> CuResult {
        dependents(hNode, nodes, null_mut(), count)
    }

    pub(in crate::cuda) fn cuGraphNodeGetDependentNodes_v2(
        _: StreamApi,
        hNode: CUgraphNode,
        nodes: *mut CUgraphNode,
        edgeData: *mut CUgraphEdgeData,
        count: *mut usize,
    ) -> CuResult {
        dependents(hNode, nodes, edgeData, count)
    }

    pub(in crate::cuda) fn cuGraphGetId(_: StreamApi, hGraph: CUgraph, graphId: *mut c_uint) -> CuResult {
        node()?;
        put(graphId, graphs().get(hGraph as u64)?.number)
    }

    pub(in crate::cuda) fn cuGraphNodeGetContainingGraph(
        _: StreamApi,
        hNode: CUgraphNode,
        phGraph: *mut CUgraph,
    ) -> CuResult {
        node()?;
        put(phGraph, graphs().home_of(hNode as u64)? as CUgraph)
    }

    pub(in crate::cuda) fn cuGraphNodeGetLocalId(
        _: StreamApi,
        hNode: CUgraphNode,
        nodeId: *mut c_uint,
    ) -> CuResult {
        node()?;
        put(nodeId, graphs().node(hNode as u64)?.local)
    }

    pub(in crate::cuda) fn cuGraphNodeGetType(
        _: StreamApi,
        hNode: CUgraphNode,
        kind: *mut CUgraphNodeType,
    ) -> CuResult {
        of_node(hNode, kind, |work| Ok(work.kind()))
    }

    pub(in crate::cuda) fn cuGraphNodeGetParams(
        _: StreamApi,
        hNode: CUgraphNode,
        nodeParams: *mut CUgraphNodeParams,
    ) -> CuResult {
        of_node(hNode, nodeParams, whole)
    }

    pub(in crate::cuda) fn cuGraphKernelNodeGetParams(
        _: StreamApi,
        hNode: CUgraphNode,
        nodeParams: *mut CUDA_KERNEL_NODE_PARAMS_v1,
    ) -> CuResult {
        of_node(hNode, nodeParams, |work| Ok(params::kernel_params(work)?.v1))
    }

    pub(in crate::cuda) fn cuGraphKernelNodeGetParams_v2(
        _: StreamApi,
        hNode: CUgraphNode,
        nodeParams: *mut CUDA_KERNEL_NODE_PARAMS,
    ) -> CuResult {
        of_node(hNode, nodeParams, params::kernel_params)
    }

    pub(in crate::cuda) fn cuGraphMemcpyNodeGetParams(
        _: StreamApi,
        hNode: CUgraphNode,
        nodeParams: *mut CUDA_MEMCPY3D,
    ) -> CuResult {
        of_node(hNode, nodeParams, |work| Ok(params::copy_params(work)?.0))
    }

    pub(in crate::cuda) fn cuGraphMemsetNodeGetParams(
        _: StreamApi,
        hNode: CUgraphNode,
        nodeParams: *mut CUDA_MEMSET_NODE_PARAMS,
    ) -> CuResult {
        of_node(hNode, nodeParams, |work| Ok(params::set_params(work)?.0))
    }

    pub(in crate::cuda) fn cuGraphHostNodeGetParams(
        _: StreamApi,
        hNode: CUgraphNode,
        nodeParams: *mut CUDA_HOST_NODE_PARAMS,
    ) -> CuResult {
        of_node(hNode, nodeParams, params::host_params)
    }

    pub(in crate::cuda) fn cuGraphEventRecordNodeGetEvent(
        _: StreamApi,
        hNode: CUgraphNode,
        event_out: *mut CUevent,
    ) -> CuResult {
        of_node(hNode, event_out, |work| match work {
            Work::Record(event) => Ok(event.0),
            _ => Err(INVALID),
        })
    }

    pub(in crate::cuda) fn cuGraphEventWaitNodeGetEvent(
        _: StreamApi,
        hNode: CUgraphNode,
        event_out: *mut CUevent,
    ) -> CuResult {
        of_node(hNode, event_out, |work| match work {
            Work::Wait(event) => Ok(event.0),
            _ => Err(INVALID),
        })
    }

    pub(in crate::cuda) fn cuGraphMemAllocNodeGetParams(
        _: StreamApi,
        hNode: CUgraphNode,
        params_out: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
    ) -> CuResult {
        of_node(hNode, params_out, |work| match work {
            Work::Alloc(allocation) => Ok(params::alloc_params(allocation)),
            _ => Err(INVALID),
        })
    }

    pub(in crate::cuda) fn cuGraphMemFreeNodeGetParams(
        _: StreamApi,
        hNode: CUgraphNode,
        dptr_out: *mut CUdeviceptr,
    ) -> CuResult {
        of_node(hNode, dptr_out, |work| match work {
            Work::Free(pointer) => Ok(*pointer),
            _ => Err(INVALID),
        })
    }
}
