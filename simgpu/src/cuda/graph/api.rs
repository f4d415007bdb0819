//! Making, cloning and ending graphs, and their dependencies.

use super::nodes::edges;
use super::{Edge, Home, INVALID, graphs};
use crate::cuda::Sim;
use crate::cuda::current::current;
use crate::cuda::edge::{element, needed, put};
use crate::cuda::node::node;
use driver::prelude::*;

/// Pairs of a call: the edge, and the node it leads to.
fn pairs(
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
) -> Result<Vec<(Edge, u64)>, CudaError> {
    let edges = edges(from, data, count)?;
    let to = (0..count).map(|at| element(to, at).map(|node| node as u64));
    edges
        .into_iter()
        .zip(to)
        .map(|(edge, to)| Ok((edge, to?)))
        .collect()
}

fn add(graph: CUgraph, pairs: Vec<(Edge, u64)>) -> CuResult {
    node()?;
    let mut graphs = graphs();
    graphs.get(graph as u64)?;
    for (edge, to) in pairs {
        let inside = graphs.home_of(edge.from)? == graph as u64
            && graphs.home_of(to)? == graph as u64
            && edge.from != to;
        let node = graphs.node_mut(to)?;
        if !inside || node.edges.iter().any(|known| known.from == edge.from) {
            return Err(INVALID);
        }
        node.edges.push(edge);
    }
    Ok(())
}

fn remove(graph: CUgraph, pairs: Vec<(Edge, u64)>, by_data: bool) -> CuResult {
    node()?;
    let mut graphs = graphs();
    graphs.get(graph as u64)?;
    if graphs.has_memory(graph as u64) && !pairs.is_empty() {
        return Err(INVALID);
    }
    for (edge, to) in pairs {
        if graphs.home_of(to)? != graph as u64 {
            return Err(INVALID);
        }
        let node = graphs.node_mut(to)?;
        let found = node
            .edges
            .iter()
            .position(|known| known.from == edge.from && (!by_data || known.data == edge.data));
        node.edges.remove(found.ok_or(INVALID)?);
    }
    Ok(())
}

impl Sim {
    pub(in crate::cuda) fn cuGraphCreate(_: StreamApi, phGraph: *mut CUgraph, flags: c_uint) -> CuResult {
        node()?;
        needed(phGraph)?;
        if flags != 0 {
            return Err(INVALID);
        }
        put(phGraph, graphs().create(Home::Program) as CUgraph)
    }

    pub(in crate::cuda) fn cuGraphDestroy(_: StreamApi, hGraph: CUgraph) -> CuResult {
        node()?;
        let mut graphs = graphs();
        if graphs.get(hGraph as u64)?.home != Home::Program {
            return Err(INVALID);
        }
        graphs.end(hGraph as u64);
        Ok(())
    }

    pub(in crate::cuda) fn cuGraphDestroyNode(_: StreamApi, hNode: CUgraphNode) -> CuResult {
        node()?;
        graphs().remove_node(hNode as u64)
    }

    pub(in crate::cuda) fn cuGraphClone(
        _: StreamApi,
        phGraphClone: *mut CUgraph,
        originalGraph: CUgraph,
    ) -> CuResult {
        current()?;
        needed(phGraphClone)?;
        put(
            phGraphClone,
            graphs().copy(originalGraph as u64, Home::Program)? as CUgraph,
        )
    }

    pub(in crate::cuda) fn cuGraphNodeFindInClone(
        _: StreamApi,
        phNode: *mut CUgraphNode,
        hOriginalNode: CUgraphNode,
        hClonedGraph: CUgraph,
    ) -> CuResult {
        node()?;
        let graphs = graphs();
        let original = graphs.home_of(hOriginalNode as u64)?;
        let clone = graphs.get(hClonedGraph as u64)?;
        if clone.original != original {
            return Err(INVALID);
        }
        let found = clone
            .nodes
            .iter()
            .find(|node| node.original == hOriginalNode as u64);
        put(phNode, found.ok_or(INVALID)?.handle as CUgraphNode)
    }

    pub(in crate::cuda) fn cuGraphAddDependencies(
        _: StreamApi,
        hGraph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        numDependencies: usize,
    ) -> CuResult {
        add(hGraph, pairs(from, to, std::ptr::null(), numDependencies)?)
    }

    pub(in crate::cuda) fn cuGraphAddDependencies_v2(
        _: StreamApi,
        hGraph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        edgeData: *const CUgraphEdgeData,
        numDependencies: usize,
    ) -> CuResult {
        add(hGraph, pairs(from, to, edgeData, numDependencies)?)
    }

    pub(in crate::cuda) fn cuGraphRemoveDependencies(
        _: StreamApi,
        hGraph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        numDependencies: usize,
    ) -> CuResult {
        remove(hGraph, pairs(from, to, std::ptr::null(), numDependencies)?, false)
    }

    pub(in crate::cuda) fn cuGraphRemoveDependencies_v2(
        _: StreamApi,
        hGraph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        edgeData: *const CUgraphEdgeData,
        numDependencies: usize,
    ) -> CuResult {
        remove(
            hGraph,
            pairs(from, to, edgeData, numDependencies)?,
            !edgeData.is_null(),
        )
    }
}
