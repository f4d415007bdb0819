//! What allocation nodes take: an address for as long as the node or the allocation lives, and behind it memory of the
//! device while a launch has put it there.
//!
//! Memory comes with the first launch or upload and stays with the allocation, used or not, until its graphs are gone or
//! the program trims the device's graph memory. What is left of ended ones is kept for others; only trimming gives memory
//! back to the device. Each allocation has memory of its own.

use super::exec::Run;
use crate::cuda::block::{self, Block, Kind};
use crate::cuda::node::Device;
use crate::cuda::space::{self, granules};
use crate::cuda::vram::Extent;
use driver::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A device's memory for graphs, of this process.
#[derive(Default)]
pub struct GraphMemory {
    /// Reserved, and behind no allocation.
    idle: Vec<Extent>,
    /// Of graphs that are gone, but for a launch that still worked on them.
    ended: Vec<Arc<Allocation>>,
    pub used: u64,
    pub used_high: u64,
    pub reserved: u64,
    pub reserved_high: u64,
}

pub struct Allocation {
    pub device: &'static Device,
    pub base: u64,
    pub bytes: u64,
    pub location: CUmemLocation,
    /// The graph of its node.
    graph: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    extent: Option<Extent>,
    /// Allocated by a launch and not freed since.
    live: bool,
    /// The graph with the node that frees it; 0: none.
    freed_in: u64,
    /// The graph of its own node and the executable ones made of that.
    holders: u32,
    /// The launch that used it last.
    run: Option<Arc<Run>>,
}

impl State {
    fn is_busy(&self) -> bool {
        self.run.as_ref().is_some_and(|run| !run.is_done())
    }
}

fn pool(device: &'static Device) -> MutexGuard<'static, GraphMemory> {
    device.graph_memory.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GraphMemory {
    /// Memory out of what lies idle, else of the device.
    fn take(&mut self, device: &'static Device, bytes: u64) -> Result<Extent, CudaError> {
        let fitting = (0..self.idle.len()).filter(|&at| self.idle[at].bytes >= bytes);
        let extent = match fitting.min_by_key(|&at| self.idle[at].bytes) {
            Some(at) => {
                let whole = self.idle.swap_remove(at);
                if whole.bytes > bytes {
                    self.idle.push(Extent {
                        offset: whole.offset + bytes,
                        bytes: whole.bytes - bytes,
                    });
                }
                Extent {
                    offset: whole.offset,
                    bytes,
                }
            }
            None => {
                let extent = device.vram.take(bytes)?;
                self.reserved += extent.bytes;
                self.reserved_high = self.reserved_high.max(self.reserved);
                extent
            }
        };
        self.used += extent.bytes;
        self.used_high = self.used_high.max(self.used);
        Ok(extent)
    }

    fn give(&mut self, extent: Extent) {
        self.used -= extent.bytes;
        self.idle.push(extent);
    }
}

/// Takes back what graphs had that are gone, where the last launch is complete by now.
pub fn sweep(device: &'static Device) {
    let ended = std::mem::take(&mut pool(device).ended);
    for allocation in ended {
        allocation.end_if_over(allocation.state());
    }
}

/// Gives everything back to the device that no graph uses now.
pub fn trim(device: &'static Device) {
    sweep(device);
    for allocation in of_device(device) {
        let mut state = allocation.state();
        if !state.live && !state.is_busy() {
            allocation.unmap(&mut state);
            allocation.end_if_over(state);
        }
    }
    let mut pool = pool(device);
    for extent in std::mem::take(&mut pool.idle) {
        pool.reserved -= extent.bytes;
        device.vram.give(extent);
    }
}

fn of_device(device: &'static Device) -> Vec<Arc<Allocation>> {
    let of = |block: &Arc<Block>| match &block.kind {
        Kind::Graph(allocation) if allocation.device.index == device.index => Some(allocation.clone()),
        _ => None,
    };
    block::read().values().filter_map(of).collect()
}

/// The allocation that begins at an address.
fn at(pointer: u64) -> Option<Arc<Allocation>> {
    match &block::find(pointer)?.kind {
        Kind::Graph(allocation) if allocation.base == pointer => Some(allocation.clone()),
        _ => None,
    }
}

/// Whether this is an address of a graph's.
pub fn is_graph(pointer: u64) -> bool {
    at(pointer).is_some()
}

/// Frees what a launch allocated, by a node or by a plain call; the latter must not free what a node of its own graph will.
pub fn free(pointer: u64, by_node: bool) -> CuResult {
    let allocation = at(pointer).ok_or(CudaError::INVALID_VALUE)?;
    let mut state = allocation.state();
    if !state.live || !by_node && state.freed_in == allocation.graph {
        return Err(CudaError::INVALID_VALUE);
    }
    state.live = false;
    allocation.end_if_over(state);
    Ok(())
}

/// A node of `graph` will free it.
pub fn enter_free_node(pointer: u64, graph: u64) -> CuResult {
    let allocation = at(pointer).ok_or(CudaError::INVALID_VALUE)?;
    let mut state = allocation.state();
    if state.freed_in != 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    state.freed_in = graph;
    Ok(())
}

/// That node is gone.
pub fn forget_free_node(pointer: u64, graph: u64) {
    if let Some(allocation) = at(pointer) {
        let mut state = allocation.state();
        if state.freed_in == graph {
            state.freed_in = 0;
        }
    }
}

impl Allocation {
    /// An address for a new node of `graph`.
    pub fn new(
        device: &'static Device,
        bytes: u64,
        location: CUmemLocation,
        graph: u64,
    ) -> Result<Arc<Allocation>, CudaError> {
        let whole = granules(bytes)
            .filter(|&whole| whole != 0)
            .ok_or(CudaError::INVALID_VALUE)?;
        let base = space::reserve(whole, space::GRANULE, 0).ok_or(CudaError::OUT_OF_MEMORY)?;
        let allocation = Arc::new(Allocation {
            device,
            base,
            bytes,
            location,
            graph,
            state: Mutex::new(State {
                holders: 1,
                ..State::default()
            }),
        });
        let kind = Kind::Graph(allocation.clone());
        block::insert(Block::new(base, bytes, None, Some(device), kind));
        Ok(allocation)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn whole(&self) -> u64 {
        self.bytes.next_multiple_of(space::GRANULE)
    }

    pub fn is_mapped(&self) -> bool {
        self.state().extent.is_some()
    }

    pub fn is_live(&self) -> bool {
        self.state().live
    }

    /// Puts memory behind it, unless some is there, for the launch or upload `run`.
    pub fn map(&self, run: &Arc<Run>) -> CuResult {
        let mut state = self.state();
        if state.extent.is_none() {
            let extent = pool(self.device).take(self.device, self.whole())?;
            let shown = self
                .device
                .vram
                .file()
                .is_ok_and(|file| space::show(self.base, extent.bytes, file, extent.offset, true));
            if !shown {
                pool(self.device).give(extent);
                return Err(CudaError::OUT_OF_MEMORY);
            }
            state.extent = Some(extent);
        }
        state.run = Some(run.clone());
        Ok(())
    }

    fn unmap(&self, state: &mut State) {
        if let Some(extent) = state.extent.take() {
            space::hide(self.base, extent.bytes);
            pool(self.device).give(extent);
        }
        state.run = None;
    }

    /// A launch has come to its node.
    pub fn begin(&self) {
        self.state().live = true;
    }

    /// What was not freed is, as a launch with `AUTO_FREE_ON_LAUNCH` begins.
    pub fn end_silently(&self) {
        self.state().live = false;
    }

    /// One more executable graph uses it.
    pub fn hold(&self) {
        self.state().holders += 1;
    }

    /// A graph that used it is gone.
    pub fn let_go(self: &Arc<Self>) {
        let mut state = self.state();
        state.holders = state.holders.saturating_sub(1);
        self.end_if_over(state);
    }

    /// Where neither a graph nor the program uses it any more, address and memory go. What a launch still works on waits for
    /// the next launch that needs memory, or trimming.
    fn end_if_over(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.holders != 0 || state.live {
            return;
        }
        if state.is_busy() {
            pool(self.device).ended.push(self.clone());
            return;
        }
        self.unmap(&mut state);
        drop(state);
        let own = |block: &Block| matches!(&block.kind, Kind::Graph(of) if Arc::ptr_eq(of, self));
        if block::remove(self.base, own).is_ok() {
            space::unmap(self.base, self.whole());
        }
    }
}
