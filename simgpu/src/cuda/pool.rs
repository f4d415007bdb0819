//! Memory pools of the stream-ordered allocator: what they reserve, what is used, when they let go.
//!
//! A pool grows by segments, gives out parts of them, and takes parts back in stream order: a part that
//! one stream freed makes another stream that gets it follow the first. A wholly free segment goes back
//! to the device when the program has waited for its work and the pool holds more than its threshold.

use super::allocate::spending;
use super::block::{self, Block, Kind};
use super::context::Context;
use super::heap::shown;
use super::node::{Device, next_id};
use super::order;
use super::ranges::{ALIGN, Ranges};
use super::space;
use super::stream::Stream;
use super::vram::{Extent, HOST, Vram};
use crate::client::StreamId;
use driver::CudaError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// A pool grows by at least this, where the device has it.
const SEGMENT: u64 = 32 << 20;

pub struct Pool {
    /// `None`: host memory.
    pub device: Option<&'static Device>,
    /// The NUMA node of host memory, or -1.
    pub host_node: i32,
    /// Most bytes it may reserve; 0: no limit.
    pub max: u64,
    pub origin: Origin,
    /// Its number in the process.
    pub id: u64,
    state: Mutex<State>,
    /// Flags of the devices other than its own.
    pub access: Mutex<Vec<(i32, u32)>>,
}

/// How a pool came to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The device's own.
    Default,
    Made,
    /// Made to be shared.
    Exportable,
    /// Of another process: the pool's number there, and the id under which the node knows its memory.
    Imported {
        pool: u64,
        share: u64,
    },
}

#[derive(Default)]
pub struct State {
    segments: Vec<Segment>,
    pub reserved: u64,
    pub reserved_high: u64,
    pub used: u64,
    pub used_high: u64,
    pub threshold: u64,
    /// Follow events, opportunistic, internal dependencies.
    pub reuse: [i32; 3],
    destroyed: bool,
}

struct Segment {
    address: u64,
    extent: Extent,
    free: Ranges,
    /// Parts that were freed in stream order, and where.
    parked: Vec<(u64, u64, StreamId)>,
}

static POOLS: RwLock<Vec<Arc<Pool>>> = RwLock::new(Vec::new());
/// Segments of all pools: nothing to look at while there is none.
static SEGMENTS: AtomicUsize = AtomicUsize::new(0);

/// The pool behind a handle.
pub fn get(handle: *mut std::ffi::c_void) -> Result<Arc<Pool>, CudaError> {
    let pools = POOLS.read().unwrap_or_else(PoisonError::into_inner);
    pools
        .iter()
        .find(|pool| pool.handle() == handle)
        .cloned()
        .ok_or(CudaError::INVALID_VALUE)
}

/// The device's default pool.
pub fn default_of(device: &'static Device) -> Arc<Pool> {
    device
        .default_pool
        .get_or_init(|| Pool::create(Some(device), -1, 0, Origin::Default))
        .clone()
}

/// The pool that `cuMemAllocAsync` takes from.
pub fn current_of(device: &'static Device) -> Arc<Pool> {
    let current = device.current_pool.lock().unwrap_or_else(PoisonError::into_inner);
    current.clone().unwrap_or_else(|| default_of(device))
}

/// The program has waited for work of the device: what no pool needs to keep goes.
pub fn observed(device: &'static Device) {
    if SEGMENTS.load(Ordering::Acquire) == 0 {
        return;
    }
    for pool in POOLS.read().unwrap_or_else(PoisonError::into_inner).iter() {
        if pool.device.is_some_and(|of| of.index == device.index) {
            let keep = pool.state().threshold;
            pool.trim(keep);
        }
    }
}

impl Pool {
    pub fn create(device: Option<&'static Device>, host_node: i32, max: u64, origin: Origin) -> Arc<Pool> {
        let state = State {
            reuse: [1; 3],
            ..State::default()
        };
        let pool = Arc::new(Pool {
            device,
            host_node,
            max,
            origin,
            id: next_id(),
            state: Mutex::new(state),
            access: Mutex::new(Vec::new()),
        });
        POOLS
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(pool.clone());
        pool
    }

    pub fn handle(&self) -> *mut std::ffi::c_void {
        (&raw const *self).cast_mut().cast()
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn vram(&self) -> &'static Vram {
        self.device.map_or(&HOST, |device| &device.vram)
    }

    /// Memory from the pool, for use in the order of the stream.
    pub fn take(
        self: &Arc<Pool>,
        context: &'static Context,
        stream: &'static Stream,
        bytes: u64,
    ) -> Result<Arc<Block>, CudaError> {
        if bytes == 0 || matches!(self.origin, Origin::Imported { .. }) {
            return Err(CudaError::INVALID_VALUE);
        }
        let whole = bytes
            .checked_next_multiple_of(ALIGN)
            .ok_or(CudaError::OUT_OF_MEMORY)?;
        let mut state = self.state();
        let part = state
            .segments
            .iter_mut()
            .enumerate()
            .find_map(|(i, s)| s.free.take(whole).map(|at| (i, at)));
        let (index, at) = match part {
            Some(part) => part,
            None => {
                self.grow(&mut state, whole)?;
                let index = state.segments.len() - 1;
                let at = state.segments[index]
                    .free
                    .take(whole)
                    .ok_or(CudaError::OUT_OF_MEMORY)?;
                (index, at)
            }
        };
        let segment = &mut state.segments[index];
        let mut leaders = Vec::new();
        segment.parked.retain(|&(start, length, leader)| {
            let meets = start < at + whole && at < start + length;
            if meets && leader != stream.on_node() && !leaders.contains(&leader) {
                leaders.push(leader);
            }
            !meets
        });
        let address = segment.address + at;
        state.used += whole;
        state.used_high = state.used_high.max(state.used);
        drop(state);
        order::before(stream)?;
        for leader in leaders {
            // Ignored for a stream that is gone: its work was waited for or does not matter any more.
            let _ = context.client().follow(stream.on_node(), leader);
        }
        let block = Block::new(
            address,
            bytes,
            Some(context),
            self.device,
            Kind::Async(self.clone()),
        );
        Ok(block::insert(block))
    }

    fn grow(&self, state: &mut State, bytes: u64) -> Result<(), CudaError> {
        let fits = |size: u64| self.max == 0 || state.reserved.saturating_add(size) <= self.max;
        let take = |size: u64| {
            if !fits(size) {
                return Err(CudaError::OUT_OF_MEMORY);
            }
            match self.device {
                Some(device) => spending(device.client, size, || device.vram.take(size)),
                None => HOST.take(size),
            }
        };
        let exact = space::granules(bytes).ok_or(CudaError::OUT_OF_MEMORY)?;
        let extent = match take(exact.max(SEGMENT)) {
            Err(CudaError::OUT_OF_MEMORY) if exact < SEGMENT => take(exact)?,
            other => other?,
        };
        let Some(address) = shown(self.vram(), extent) else {
            self.vram().give(extent);
            return Err(CudaError::OUT_OF_MEMORY);
        };
        let free = Ranges::new(extent.bytes);
        state.segments.push(Segment {
            address,
            extent,
            free,
            parked: Vec::new(),
        });
        SEGMENTS.fetch_add(1, Ordering::AcqRel);
        state.reserved += extent.bytes;
        state.reserved_high = state.reserved_high.max(state.reserved);
        Ok(())
    }

    /// Where an address of the pool's lies: the range of the device, and how far inside.
    pub fn place_of(&self, address: u64) -> Option<(Extent, u64)> {
        let state = self.state();
        let inside = |s: &&Segment| (s.address..s.address + s.extent.bytes).contains(&address);
        let segment = state.segments.iter().find(inside)?;
        Some((segment.extent, address - segment.address))
    }

    /// Takes a block of the pool back: in the order of `stream`, or with nothing left to wait for.
    pub fn give(&self, block: &Block, stream: Option<&'static Stream>) {
        let mut state = self.state();
        let whole = block.size.next_multiple_of(ALIGN);
        let inside = |s: &&mut Segment| (s.address..s.address + s.extent.bytes).contains(&block.base);
        let Some(segment) = state.segments.iter_mut().find(inside) else {
            return;
        };
        let at = block.base - segment.address;
        segment.free.give(at, whole);
        if let Some(stream) = stream {
            segment.parked.push((at, whole, stream.on_node()));
        }
        state.used = state.used.saturating_sub(whole);
        let last = state.destroyed && state.used == 0;
        drop(state);
        if last {
            self.trim(0);
        }
    }

    /// Gives free segments whose work is done back to the device while more than `keep` is reserved.
    pub fn trim(&self, keep: u64) {
        let mut state = self.state();
        let mut index = 0;
        while index < state.segments.len() && state.reserved > keep {
            let segment = &mut state.segments[index];
            if !segment.free.is_all_free() {
                index += 1;
                continue;
            }
            if let Some(device) = self.device {
                segment
                    .parked
                    .retain(|(_, _, stream)| device.client.query(*stream) == Ok(false));
            }
            if !segment.parked.is_empty() {
                index += 1;
                continue;
            }
            let segment = state.segments.swap_remove(index);
            SEGMENTS.fetch_sub(1, Ordering::AcqRel);
            state.reserved -= segment.extent.bytes;
            space::unmap(segment.address, segment.extent.bytes);
            self.vram().give(segment.extent);
        }
    }

    /// The handle dies now; what was given out lives on until it is freed.
    pub fn destroy(self: &Arc<Pool>) {
        POOLS
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|pool| !Arc::ptr_eq(pool, self));
        if let Some(device) = self.device {
            let mut current = device.current_pool.lock().unwrap_or_else(PoisonError::into_inner);
            if current.as_ref().is_some_and(|pool| Arc::ptr_eq(pool, self)) {
                *current = None;
            }
        }
        self.state().destroyed = true;
        self.trim(0);
    }
}

impl Drop for Pool {
    /// Nobody has the pool or a block of it any more: what work still parks is past caring.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for segment in state.segments.drain(..) {
            SEGMENTS.fetch_sub(1, Ordering::AcqRel);
            space::unmap(segment.address, segment.extent.bytes);
            self.device
                .map_or(&HOST, |device| &device.vram)
                .give(segment.extent);
        }
    }
}
