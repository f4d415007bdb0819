//! Launching: the ops of an executable graph, one by one, on the stream of the launch and, where nodes do not depend on
//! each other or work in another context, on streams of its own beside it.
//!
//! Next file of the walk: `memory.rs`.

use super::INVALID;
use super::exec::{Op, Run};
use super::memory::{self, Allocation};
use super::work::Work;
use crate::client::{Client, EventId};
use crate::cuda::context::Context;
use crate::cuda::node::Node;
use crate::cuda::order::{before, submit};
use crate::cuda::stream::{self, NON_BLOCKING, Stream, entry};
use crate::cuda::{Sim, capture};
use driver::prelude::*;
use std::sync::Arc;

/// Streams that one launch uses beside its own.
const LANES: usize = 15;

/// What a launch needs of its executable graph.
struct Ready {
    ops: Arc<Vec<Op>>,
    run: Arc<Run>,
    memory: Vec<Arc<Allocation>>,
    objects: Vec<(u64, u32)>,
    frees_itself: bool,
}

fn ready(exec: CUgraphExec) -> Result<Ready, CudaError> {
    let graphs = super::graphs();
    let exec = graphs.exec(exec as u64)?;
    Ok(Ready {
        ops: exec.ops.clone(),
        run: exec.run.clone(),
        memory: exec.memory.clone(),
        objects: exec.objects.clone(),
        frees_itself: exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH != 0,
    })
}

/// Memory behind every allocation; where it does not suffice, what this call got goes on waiting for a launch.
fn map(ready: &Ready) -> CuResult {
    for allocation in ready.memory.iter().filter(|allocation| !allocation.is_mapped()) {
        memory::sweep(allocation.device);
    }
    ready
        .memory
        .iter()
        .try_for_each(|allocation| allocation.map(&ready.run))
}

/// Where ops of one context follow each other.
struct Lane {
    context: &'static Context,
    /// The op that was the last there.
    tail: Option<usize>,
}

/// The lane of each op: that of a predecessor which was the last there, else one of its own while there are some. The first lane
/// is the launch's stream; an op that works in a certain context has a lane of that.
fn lanes(ops: &[Op], first: &'static Context) -> (Vec<usize>, Vec<Lane>) {
    let mut lane_of: Vec<usize> = Vec::with_capacity(ops.len());
    let mut lanes = vec![Lane {
        context: first,
        tail: None,
    }];
    for (place, op) in ops.iter().enumerate() {
        let context = op.work.context();
        let suits = |lane: &Lane| context.is_none_or(|context| std::ptr::eq(context, lane.context));
        let follows = |&&earlier: &&usize| {
            let lane = &lanes[lane_of[earlier]];
            lane.tail == Some(earlier) && suits(lane)
        };
        let crowded = |lanes: &[Lane]| {
            let earlier = op.after.iter().map(|&earlier| lane_of[earlier]);
            earlier
                .chain(0..lanes.len())
                .find(|&number| suits(&lanes[number]))
        };
        let number = match op.after.iter().find(follows) {
            Some(&earlier) => Some(lane_of[earlier]),
            None if lanes[0].tail.is_none() && suits(&lanes[0]) => Some(0),
            None if lanes.len() <= LANES => None,
            None => crowded(&lanes),
        };
        let number = number.unwrap_or_else(|| {
            let context = context.unwrap_or(first);
            lanes.push(Lane { context, tail: None });
            lanes.len() - 1
        });
        lanes[number].tail = Some(place);
        lane_of.push(number);
    }
    (lane_of, lanes)
}

/// What one launch uses for itself: streams beside the program's, and events.
struct Own {
    client: &'static Client,
    streams: Vec<&'static Stream>,
    events: Vec<EventId>,
}

impl Own {
    fn record(&mut self, on: &'static Stream) -> Result<EventId, CudaError> {
        let event = self.client.event()?;
        self.events.push(event);
        self.client.record(event, on.on_node())?;
        Ok(event)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        for stream in &self.streams {
            let _ = stream::end(stream);
        }
        for event in &self.events {
            self.client.drop_event(*event);
        }
    }
}

fn perform(node: &'static Node, first: &'static Stream, ready: &Ready) -> CuResult {
    let client = node.client;
    before(first)?;
    // One launch of a graph comes after the other, whatever the streams.
    client.wait_event(first.on_node(), ready.run.event)?;
    let here = |op: &Op| {
        let context = op.work.context();
        context.is_none_or(|context| std::ptr::eq(context, first.context()))
    };
    if node.null && ready.ops.iter().all(here) {
        for op in ready.ops.iter().filter(|op| op.enabled) {
            op.work.perform(node, first)?;
        }
        return submit(node, first, |on_node| client.record(ready.run.event, on_node));
    }
    let (lane_of, lanes) = lanes(&ready.ops, first.context());
    let mut forks = vec![false; ready.ops.len()];
    for (place, op) in ready.ops.iter().enumerate() {
        for &earlier in op
            .after
            .iter()
            .filter(|&&earlier| lane_of[earlier] != lane_of[place])
        {
            forks[earlier] = true;
        }
    }
    let mut own = Own {
        client,
        streams: Vec::new(),
        events: Vec::new(),
    };
    let beside = &lanes[1..];
    if !beside.is_empty() {
        let start = own.record(first)?;
        for Lane { context, .. } in beside {
            context.usable()?;
            context.intact()?;
            let lane = stream::create(context, NON_BLOCKING, first.priority())?;
            own.streams.push(lane);
            client.wait_event(lane.on_node(), start)?;
        }
    }
    let mut reached: Vec<Option<EventId>> = Vec::with_capacity(ready.ops.len());
    for (place, op) in ready.ops.iter().enumerate() {
        let lane = match lane_of[place] {
            0 => first,
            number => own.streams[number - 1],
        };
        for &earlier in op
            .after
            .iter()
            .filter(|&&earlier| lane_of[earlier] != lane_of[place])
        {
            if let Some(event) = reached[earlier] {
                client.wait_event(lane.on_node(), event)?;
            }
        }
        if op.enabled {
            op.work.perform(node, lane)?;
        }
        reached.push(if forks[place] {
            Some(own.record(lane)?)
        } else {
            None
        });
    }
    let mut ends = Vec::with_capacity(own.streams.len());
    for at in 0..own.streams.len() {
        ends.push(own.record(own.streams[at])?);
    }
    submit(node, first, |on_node| {
        for end in ends {
            client.wait_event(on_node, end)?;
        }
        client.record(ready.run.event, on_node)
    })
}

/// A launch inside a capture becomes a child graph of what the executable one does now.
fn capture_launch(capturing: capture::Capturing, ready: &Ready) -> CuResult {
    let has_memory = |op: &Op| matches!(op.work, Work::Alloc(_) | Work::Free(_));
    if ready.ops.iter().any(has_memory) {
        return Err(INVALID);
    }
    capturing.add_graph(&ready.ops, &ready.objects)
}

impl Sim {
    pub(in crate::cuda) fn cuGraphLaunch(
        api: StreamApi,
        hGraphExec: CUgraphExec,
        hStream: CUstream,
    ) -> CuResult {
        let (node, stream) = entry(api, hStream)?;
        let ready = ready(hGraphExec)?;
        if let Some(capturing) = capture::of(stream)? {
            return capture_launch(capturing, &ready);
        }
        let left = |allocation: &&Arc<Allocation>| allocation.is_live();
        if ready.frees_itself {
            ready
                .memory
                .iter()
                .filter(left)
                .for_each(|allocation| allocation.end_silently());
        } else if ready.memory.iter().any(|allocation| allocation.is_live()) {
            return Err(INVALID);
        }
        let _beginning = ready.run.begin();
        map(&ready)?;
        perform(node, stream, &ready)
    }

    pub(in crate::cuda) fn cuGraphUpload(
        api: StreamApi,
        hGraphExec: CUgraphExec,
        hStream: CUstream,
    ) -> CuResult {
        let (_, stream) = entry(api, hStream)?;
        let ready = ready(hGraphExec)?;
        if capture::of(stream)?.is_some() {
            return Err(capture::refuse(stream));
        }
        map(&ready)
    }
}
