//! Child graphs: a graph inside a node of another one, cloned into it or moved there.

use super::exec::Op;
use super::work::Work;
use super::{Edge, Graphs, Home, INVALID, user_object};
use crate::cuda::Sim;
use crate::cuda::edge::put;
use crate::cuda::node::node;
use driver::prelude::*;

impl Graphs {
    /// A node that runs a copy of `child`.
    pub fn add_copy(&mut self, graph: u64, edges: Vec<Edge>, child: u64) -> Result<u64, CudaError> {
        self.check_edges(graph, &edges)?;
        if child == graph {
            return Err(INVALID);
        }
        let copy = self.copy(child, Home::Program)?;
        self.adopt(graph, edges, copy)
    }

    /// A node that runs `child` itself, which is the node's from now on.
    pub fn add_moved(&mut self, graph: u64, edges: Vec<Edge>, child: u64) -> Result<u64, CudaError> {
        self.check_edges(graph, &edges)?;
        let moved = self.get(child)?;
        if self.is_within(graph, child) || moved.home != Home::Program || moved.instances != 0 {
            return Err(INVALID);
        }
        self.adopt(graph, edges, child)
    }

    /// Whether it is that graph, or one inside of it.
    fn is_within(&self, graph: u64, outer: u64) -> bool {
        let mut at = graph;
        while at != outer {
            let Ok(Home::Child(node)) = self.get(at).map(|graph| graph.home) else {
                return false;
            };
            let Ok(home) = self.home_of(node) else {
                return false;
            };
            at = home;
        }
        true
    }

    /// A node that does what an executable graph does.
    pub fn add_ops(
        &mut self,
        graph: u64,
        edges: Vec<Edge>,
        ops: &[Op],
        objects: &[(u64, u32)],
    ) -> Result<u64, CudaError> {
        self.check_edges(graph, &edges)?;
        let child = self.create(Home::Program);
        let mut made = Vec::with_capacity(ops.len());
        for op in ops {
            let work = match &op.work {
                _ if !op.enabled => Work::Empty,
                // Its ops are in the list, before it.
                Work::Graph(_) => Work::Empty,
                other => other.clone(),
            };
            let after = op.after.iter().map(|&place| Edge::plain(made[place])).collect();
            made.push(self.add(child, after, work)?);
        }
        user_object::retain_all(objects);
        self.get_mut(child)?.objects = objects.to_vec();
        self.adopt(graph, edges, child)
    }

    fn adopt(&mut self, graph: u64, edges: Vec<Edge>, child: u64) -> Result<u64, CudaError> {
        let node = self.add(graph, edges, Work::Graph(child))?;
        self.get_mut(child)?.home = Home::Child(node);
        Ok(node)
    }

    /// The graph of a node that has one.
    pub fn child_of(&self, node: u64) -> Result<u64, CudaError> {
        match self.node(node)?.work {
            Work::Graph(child) => Ok(child),
            _ => Err(INVALID),
        }
    }
}

impl Sim {
    pub(in crate::cuda) fn cuGraphChildGraphNodeGetGraph(
        _: StreamApi,
        hNode: CUgraphNode,
        phGraph: *mut CUgraph,
    ) -> CuResult {
        node()?;
        put(phGraph, super::graphs().child_of(hNode as u64)? as CUgraph)
    }
}
