//! Changing an executable graph: one node's parameters, or all by those of a graph of the same form.

use super::exec::Op;
use super::nodes::Wanted;
use super::work::Work;
use super::{Graphs, INVALID, user_object};
use crate::cuda::Sim;
use crate::cuda::edge::{get as read, put, put_optional};
use crate::cuda::node::node;
use driver::prelude::*;
use std::ptr::null_mut;
use std::sync::Arc;

const FAILED: u32 = 1;
const TOPOLOGY_CHANGED: u32 = 2;
const TYPE_CHANGED: u32 = 3;
const PARAMETERS_CHANGED: u32 = 5;
const FUNCTION_CHANGED: u32 = 7;

/// Why an update is not possible: a result, and the nodes of the new graph that tell.
struct Mismatch(u32, u64, u64);

/// Whether a node's work may become this other work.
fn fits(old: &Work, new: &Work) -> Result<(), u32> {
    let same = |same: bool, otherwise: u32| if same { Ok(()) } else { Err(otherwise) };
    match (old, new) {
        (Work::Kernel(old), Work::Kernel(new)) => {
            let contexts = std::ptr::eq(old.context, new.context);
            same(
                contexts && old.shape.cooperative == new.shape.cooperative,
                FUNCTION_CHANGED,
            )
        }
        (Work::Copy(old, a), Work::Copy(new, b)) => same(
            old.0.srcMemoryType == new.0.srcMemoryType
                && old.0.dstMemoryType == new.0.dstMemoryType
                && std::ptr::eq(*a, *b),
            PARAMETERS_CHANGED,
        ),
        (Work::Set(old, a), Work::Set(new, b)) => {
            let flat = old.height > 1 || new.height > 1;
            let form = |set: &CUDA_MEMSET_NODE_PARAMS| (set.width, set.height, set.pitch, set.elementSize);
            same(
                (!flat || form(old) == form(new)) && std::ptr::eq(*a, *b),
                PARAMETERS_CHANGED,
            )
        }
        (Work::Alloc(old), Work::Alloc(new)) => same(Arc::ptr_eq(old, new), PARAMETERS_CHANGED),
        (Work::Free(old), Work::Free(new)) => same(old == new, PARAMETERS_CHANGED),
        _ => same(old.kind() == new.kind(), TYPE_CHANGED),
    }
}

/// Gives the ops of a span the work of others in the same form, or changes nothing.
fn update(ops: &mut [Op], start: usize, fresh: Vec<Op>) -> Result<(), Mismatch> {
    if ops.len() != fresh.len() {
        return Err(Mismatch(TOPOLOGY_CHANGED, 0, 0));
    }
    for (old, new) in ops.iter().zip(&fresh) {
        fits(&old.work, &new.work).map_err(|result| Mismatch(result, new.node, 0))?;
        // What a child's first nodes come after lies outside of it.
        let inside: Vec<usize> = old
            .after
            .iter()
            .filter_map(|&place| place.checked_sub(start))
            .collect();
        if inside != new.after || old.span != new.span {
            let from = new.after.iter().find(|place| !inside.contains(place));
            let from = from.map_or(0, |&place| fresh[place].node);
            return Err(Mismatch(TOPOLOGY_CHANGED, new.node, from));
        }
    }
    for (old, new) in ops.iter_mut().zip(fresh) {
        if !matches!(old.work, Work::Graph(_)) {
            old.work = new.work;
        }
    }
    Ok(())
}

impl Graphs {
    fn update_exec(&mut self, exec: u64, graph: u64) -> Result<(), Mismatch> {
        let failed = |_| Mismatch(FAILED, 0, 0);
        self.get(graph).map_err(failed)?;
        let fresh = self
            .flatten(graph)
            .map_err(|node| Mismatch(TOPOLOGY_CHANGED, node, 0))?;
        let objects = self.objects_of(graph);
        let exec = self.exec_mut(exec).map_err(failed)?;
        let ops: &mut Vec<Op> = Arc::make_mut(&mut exec.ops);
        update(ops, 0, fresh)?;
        user_object::retain_all(&objects);
        let old = std::mem::replace(&mut exec.objects, objects);
        user_object::release_after(exec.run.clone(), old);
        Ok(())
    }

    /// Changes the child of a node in an executable graph.
    fn update_child(&mut self, exec: u64, node: u64, child: u64) -> CuResult {
        let fresh = self.flatten(child).map_err(|_| INVALID)?;
        let objects = self.objects_of(child);
        let exec = self.exec_mut(exec)?;
        let ops = Arc::make_mut(&mut exec.ops);
        let place = place_of(ops, node)?;
        if !matches!(ops[place].work, Work::Graph(_)) {
            return Err(INVALID);
        }
        let start = place - ops[place].span;
        update(&mut ops[start..place], start, fresh).map_err(|_| INVALID)?;
        // What the child before this one held goes with the executable graph.
        user_object::retain_all(&objects);
        exec.objects.extend(objects);
        Ok(())
    }

    /// Changes what a node of an executable graph does.
    pub fn set_in_exec(&mut self, exec: u64, node: u64, work: Work) -> CuResult {
        let ops = Arc::make_mut(&mut self.exec_mut(exec)?.ops);
        let place = place_of(ops, node)?;
        let work = work.instead_of(&ops[place].work);
        fits(&ops[place].work, &work).map_err(|_| INVALID)?;
        ops[place].work = work;
        Ok(())
    }
}

fn place_of(ops: &[Op], node: u64) -> Result<usize, CudaError> {
    ops.iter().position(|op| op.node == node).ok_or(INVALID)
}

fn update_all(exec: CUgraphExec, graph: CUgraph) -> Result<CUgraphExecUpdateResultInfo, CudaError> {
    node()?;
    let mut graphs = super::graphs();
    graphs.exec(exec as u64)?;
    let info = match graphs.update_exec(exec as u64, graph as u64) {
        Ok(()) => CUgraphExecUpdateResultInfo {
            result: 0,
            errorNode: null_mut(),
            errorFromNode: null_mut(),
        },
        Err(Mismatch(result, node, from)) => CUgraphExecUpdateResultInfo {
            result,
            errorNode: node as CUgraphNode,
            errorFromNode: from as CUgraphNode,
        },
    };
    Ok(info)
}

fn verdict(info: &CUgraphExecUpdateResultInfo) -> CuResult {
    if info.result == 0 {
        Ok(())
    } else {
        Err(CudaError::GRAPH_EXEC_UPDATE_FAILURE)
    }
}

impl Sim {
    pub(in crate::cuda) fn cuGraphExecUpdate(
        _: StreamApi,
        hGraphExec: CUgraphExec,
        hGraph: CUgraph,
        hErrorNode_out: *mut CUgraphNode,
        updateResult_out: *mut CUgraphExecUpdateResult,
    ) -> CuResult {
        let info = update_all(hGraphExec, hGraph)?;
        put_optional(hErrorNode_out, info.errorNode);
        put_optional(updateResult_out, info.result);
        verdict(&info)
    }

    pub(in crate::cuda) fn cuGraphExecUpdate_v2(
        _: StreamApi,
        hGraphExec: CUgraphExec,
        hGraph: CUgraph,
        resultInfo: *mut CUgraphExecUpdateResultInfo,
    ) -> CuResult {
        let info = update_all(hGraphExec, hGraph)?;
        put(resultInfo, info)?;
        verdict(&info)
    }

    pub(in crate::cuda) fn cuGraphExecChildGraphNodeSetParams(
        _: StreamApi,
        hGraphExec: CUgraphExec,
        hNode: CUgraphNode,
        childGraph: CUgraph,
    ) -> CuResult {
        node()?;
        super::graphs().update_child(hGraphExec as u64, hNode as u64, childGraph as u64)
    }

    pub(in crate::cuda) fn cuGraphNodeSetEnabled(
        _: StreamApi,
        hGraphExec: CUgraphExec,
        hNode: CUgraphNode,
        isEnabled: c_uint,
    ) -> CuResult {
        node()?;
        let mut graphs = super::graphs();
        let ops = Arc::make_mut(&mut graphs.exec_mut(hGraphExec as u64)?.ops);
        let place = place_of(ops, hNode as u64)?;
        if !matches!(ops[place].work, Work::Kernel(_) | Work::Copy(..) | Work::Set(..)) {
            return Err(INVALID);
        }
        ops[place].enabled = isEnabled != 0;
        Ok(())
    }

    pub(in crate::cuda) fn cuGraphNodeGetEnabled(
        _: StreamApi,
        hGraphExec: CUgraphExec,
        hNode: CUgraphNode,
        isEnabled: *mut c_uint,
    ) -> CuResult {
        node()?;
        let graphs = super::graphs();
        let ops = &graphs.exec(hGraphExec as u64)?.ops;
        put(isEnabled, ops[place_of(ops, hNode as u64)?].enabled as c_uint)
    }

    pub(in crate::cuda) fn cuGraphExecNodeSetParams(
        _: StreamApi,
        hGraphExec: CUgraphExec,
        hNode: CUgraphNode,
        nodeParams: *mut CUgraphNodeParams,
    ) -> CuResult {
        let wanted = Wanted::of(&read(nodeParams)?)?;
        match wanted {
            Wanted::Work(work) => super::graphs().set_in_exec(hGraphExec as u64, hNode as u64, work),
            Wanted::Child { graph, .. } => {
                super::graphs().update_child(hGraphExec as u64, hNode as u64, graph)
            }
            Wanted::Alloc(_) | Wanted::Free(_) => Err(INVALID),
        }
    }
}
