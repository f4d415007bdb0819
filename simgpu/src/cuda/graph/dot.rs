//! A graph as text, in the language of Graphviz.

use super::graphs;
use crate::cuda::Sim;
use crate::cuda::edge::text;
use crate::cuda::node::node;
use driver::prelude::*;
use std::fmt::Write as _;

const NAMES: [&str; 12] = [
    "KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY", "WAIT", "RECORD", "SIGNAL", "AWAIT", "ALLOC",
    "FREE",
];

impl Sim {
    pub(in crate::cuda) fn cuGraphDebugDotPrint(
        _: StreamApi,
        hGraph: CUgraph,
        path: *const c_char,
        _flags: c_uint,
    ) -> CuResult {
        node()?;
        let path = text(path)?;
        let mut out = String::from("digraph dot {\n");
        {
            let graphs = graphs();
            let graph = graphs.get(hGraph as u64)?;
            for node in &graph.nodes {
                let name = NAMES.get(node.work.kind() as usize).unwrap_or(&"NODE");
                // Writing to a String does not fail.
                let _ = writeln!(out, "\"node_{}\" [label=\"{} {name}\"];", node.local, node.local);
                for edge in &node.edges {
                    if let Ok(from) = graphs.node(edge.from) {
                        let _ = writeln!(out, "\"node_{}\" -> \"node_{}\";", from.local, node.local);
                    }
                }
            }
        }
        out.push_str("}\n");
        std::fs::write(path, out).map_err(|_| CudaError::OPERATING_SYSTEM)
    }
}
