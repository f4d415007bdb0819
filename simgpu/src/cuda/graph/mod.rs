//! Graphs: work described ahead, in an order of its own, and launched as often as the program likes.
//!
//! All graphs lie in one list under one lock: describing them is no hot path, and a launch holds the lock only while it
//! copies what is to be done. Handles are numbers that are never used again. Next files of the walk: `work.rs`, what a
//! node does; `exec.rs`, what can be launched; `memory.rs`, what allocation nodes take.

mod api;
mod child;
mod dot;
mod exec;
mod launch;
mod memory_api;
mod nodes;
mod params;
mod query;
mod update;
mod user_object;

pub use exec::Op;
pub use nodes::edges;

pub mod memory;
pub mod work;

use super::node::next_id;
use driver::prelude::*;
use exec::Exec;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use work::Work;

/// A dependency: the node that comes first, and what the program noted of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    pub from: u64,
    pub data: CUgraphEdgeData,
}

impl Edge {
    pub fn plain(from: u64) -> Edge {
        Edge {
            from,
            data: CUgraphEdgeData::default(),
        }
    }
}

pub struct Node {
    pub handle: u64,
    /// Its number in the graph.
    pub local: u32,
    pub work: Work,
    /// What it comes after.
    pub edges: Vec<Edge>,
    /// The node it was cloned from; 0: none.
    pub original: u64,
}

/// Who ends a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    Program,
    /// The node whose child it is, cloned into it or moved there.
    Child(u64),
    /// A capture under way, by its number.
    Capture(u64),
}

pub struct Graph {
    /// Its number in the process.
    pub number: u32,
    pub nodes: Vec<Node>,
    pub home: Home,
    /// The graph it was cloned from; 0: none.
    pub original: u64,
    /// Executable graphs made of it that are still there.
    pub instances: u32,
    /// References to objects of the program.
    pub objects: Vec<(u64, u32)>,
    next_local: u32,
}

/// All of them.
#[derive(Default)]
pub struct Graphs {
    graphs: HashMap<u64, Graph>,
    of_node: HashMap<u64, u64>,
    execs: HashMap<u64, Exec>,
    numbers: u32,
}

static GRAPHS: LazyLock<Mutex<Graphs>> = LazyLock::new(Default::default);

pub fn graphs() -> MutexGuard<'static, Graphs> {
    GRAPHS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks like an address, and is none.
fn fresh_handle() -> u64 {
    (0x5a << 56) | (next_id() << 6)
}

const INVALID: CudaError = CudaError::INVALID_VALUE;

impl Graphs {
    pub fn create(&mut self, home: Home) -> u64 {
        self.numbers += 1;
        let handle = fresh_handle();
        let graph = Graph {
            number: self.numbers,
            nodes: Vec::new(),
            home,
            original: 0,
            instances: 0,
            objects: Vec::new(),
            next_local: 0,
        };
        self.graphs.insert(handle, graph);
        handle
    }

    pub fn get(&self, handle: u64) -> Result<&Graph, CudaError> {
        self.graphs.get(&handle).ok_or(INVALID)
    }

    pub fn get_mut(&mut self, handle: u64) -> Result<&mut Graph, CudaError> {
        self.graphs.get_mut(&handle).ok_or(INVALID)
    }

    /// The graph a node is in.
    pub fn home_of(&self, node: u64) -> Result<u64, CudaError> {
        self.of_node.get(&node).copied().ok_or(INVALID)
    }

    pub fn node(&self, node: u64) -> Result<&Node, CudaError> {
        let graph = self.get(self.home_of(node)?)?;
        graph
            .nodes
            .iter()
            .find(|known| known.handle == node)
            .ok_or(INVALID)
    }

    pub fn node_mut(&mut self, node: u64) -> Result<&mut Node, CudaError> {
        let home = self.home_of(node)?;
        let graph = self.get_mut(home)?;
        graph
            .nodes
            .iter_mut()
            .find(|known| known.handle == node)
            .ok_or(INVALID)
    }

    /// Whether these edges may lead to a new node of the graph: each from a node of it, none twice.
    pub fn check_edges(&self, graph: u64, edges: &[Edge]) -> CuResult {
        self.get(graph)?;
        for (at, edge) in edges.iter().enumerate() {
            let twice = edges[..at].iter().any(|other| other.from == edge.from);
            if self.home_of(edge.from)? != graph || twice || edge.data.to_port != 0 {
                return Err(INVALID);
            }
        }
        Ok(())
    }

    /// A new node.
    pub fn add(&mut self, graph: u64, edges: Vec<Edge>, work: Work) -> Result<u64, CudaError> {
        self.check_edges(graph, &edges)?;
        let handle = fresh_handle();
        let entry = self.get_mut(graph)?;
        let local = entry.next_local;
        entry.next_local += 1;
        entry.nodes.push(Node {
            handle,
            local,
            work,
            edges,
            original: 0,
        });
        self.of_node.insert(handle, graph);
        Ok(handle)
    }

    /// Whether it has nodes that take or free memory, its children included.
    pub fn has_memory(&self, graph: u64) -> bool {
        self.graphs.get(&graph).is_some_and(|graph| {
            graph.nodes.iter().any(|node| match &node.work {
                Work::Alloc(_) | Work::Free(_) => true,
                Work::Graph(child) => self.has_memory(*child),
                _ => false,
            })
        })
    }

    /// A copy of the graph and its children, whose nodes know their originals.
    pub fn copy(&mut self, graph: u64, home: Home) -> Result<u64, CudaError> {
        if self.has_memory(graph) {
            return Err(INVALID);
        }
        let source = self.get(graph)?;
        type Copied = (u64, u32, Work, Vec<Edge>);
        let nodes: Vec<Copied> = source
            .nodes
            .iter()
            .map(|node| (node.handle, node.local, node.work.clone(), node.edges.clone()))
            .collect();
        let objects = source.objects.clone();
        let next_local = source.next_local;
        let copy = self.create(home);
        let names: HashMap<u64, u64> = nodes.iter().map(|node| (node.0, fresh_handle())).collect();
        let mut made = Vec::with_capacity(nodes.len());
        for (original, local, work, edges) in nodes {
            let handle = names[&original];
            let work = match work {
                Work::Graph(child) => Work::Graph(self.copy(child, Home::Child(handle))?),
                other => other,
            };
            let renamed = |edge: Edge| Edge {
                from: names.get(&edge.from).copied().unwrap_or(0),
                ..edge
            };
            let edges = edges.into_iter().map(renamed).collect();
            self.of_node.insert(handle, copy);
            made.push(Node {
                handle,
                local,
                work,
                edges,
                original,
            });
        }
        user_object::retain_all(&objects);
        let entry = self.get_mut(copy)?;
        (entry.nodes, entry.original, entry.objects, entry.next_local) = (made, graph, objects, next_local);
        Ok(copy)
    }

    /// Ends a graph with its children; allocations of its nodes that are in use live on.
    pub fn end(&mut self, handle: u64) {
        let Some(graph) = self.graphs.remove(&handle) else {
            return;
        };
        for node in &graph.nodes {
            self.of_node.remove(&node.handle);
            self.end_work(&node.work, handle);
        }
        user_object::release_all(graph.objects);
    }

    fn end_work(&mut self, work: &Work, graph: u64) {
        match work {
            Work::Graph(child) => self.end(*child),
            Work::Alloc(allocation) => allocation.let_go(),
            Work::Free(pointer) => memory::forget_free_node(*pointer, graph),
            _ => {}
        }
    }

    /// The nodes in an order that keeps every dependency: earlier made ones first.
    ///
    /// # Errors
    /// A node of a cycle.
    pub fn order(&self, graph: &Graph) -> Result<Vec<usize>, u64> {
        let place: HashMap<u64, usize> = graph
            .nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (node.handle, at))
            .collect();
        let mut open: Vec<usize> = graph.nodes.iter().map(|node| node.edges.len()).collect();
        let mut followers = vec![Vec::new(); graph.nodes.len()];
        for (at, node) in graph.nodes.iter().enumerate() {
            for edge in &node.edges {
                if let Some(&from) = place.get(&edge.from) {
                    followers[from].push(at);
                }
            }
        }
        let mut ready: std::collections::BTreeSet<usize> =
            (0..open.len()).filter(|&at| open[at] == 0).collect();
        let mut order = Vec::with_capacity(open.len());
        while let Some(at) = ready.pop_first() {
            order.push(at);
            for &follower in &followers[at] {
                open[follower] -= 1;
                if open[follower] == 0 {
                    ready.insert(follower);
                }
            }
        }
        match open.iter().position(|&left| left != 0) {
            Some(at) => Err(graph.nodes[at].handle),
            None => Ok(order),
        }
    }

    /// All nodes from which one of these is reached, themselves included.
    pub fn ancestors(&self, of: &[Edge]) -> std::collections::HashSet<u64> {
        let mut seen = std::collections::HashSet::new();
        let mut open: Vec<u64> = of.iter().map(|edge| edge.from).collect();
        while let Some(node) = open.pop() {
            if seen.insert(node)
                && let Ok(node) = self.node(node)
            {
                open.extend(node.edges.iter().map(|edge| edge.from));
            }
        }
        seen
    }

    /// Removes a node and the edges at both its sides.
    pub fn remove_node(&mut self, handle: u64) -> CuResult {
        let home = self.home_of(handle)?;
        if self.has_memory(home) || matches!(self.get(home)?.home, Home::Capture(_)) {
            return Err(INVALID);
        }
        let graph = self.get_mut(home)?;
        let at = graph.nodes.iter().position(|node| node.handle == handle);
        let gone = graph.nodes.remove(at.ok_or(INVALID)?);
        for node in &mut graph.nodes {
            node.edges.retain(|edge| edge.from != handle);
        }
        self.of_node.remove(&handle);
        self.end_work(&gone.work, home);
        Ok(())
    }
}
