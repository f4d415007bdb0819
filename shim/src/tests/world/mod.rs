//! A driver of a few hundred lines that knows what is physically there, for tests of the hooks without a device. Its
//! functions find their state by the calling thread; a test with several threads lets each of them enter the same world.

mod functions;
mod graphs;

use core::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use driver::abi::*;
use driver::{CudaError, Driver};

use crate::live::PAGE;

pub const UUID: [u8; 16] = *b"device of a test";
/// What a context of this driver costs.
pub const CONTEXT: u64 = 6 << 20;

#[derive(Default, Clone)]
pub struct Pool {
    pub reserved: u64,
    pub used: u64,
    pub threshold: u64,
    pub destroyed: bool,
    host: bool,
}

/// What lives at an address.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Block {
    Plain { context: usize, bytes: u64 },
    Pooled { pool: usize, bytes: u64 },
}

pub type Meanwhile = Box<dyn FnOnce() + Send>;

/// A tile: array, kind, devices and place.
type Place = (u64, u32, u32, CUarrayMapInfo_subresource);

#[derive(Default)]
pub struct State {
    blocks: BTreeMap<u64, Block>,
    slabs: BTreeMap<(usize, u64), BTreeSet<u64>>,
    /// Freed in stream order: there until the stream is synchronised.
    zombies: Vec<(usize, u64, Block)>,
    pub pools: BTreeMap<usize, Pool>,
    /// Physical memory: size, handle uses, mappings.
    memory: BTreeMap<u64, (u64, u64, u64)>,
    mappings: BTreeMap<u64, (u64, u64)>,
    /// Arrays: their context and bytes; 0 bytes for those whose memory is mapped later.
    arrays: BTreeMap<u64, (usize, u64)>,
    /// What each array would take, or does.
    needs: BTreeMap<u64, u64>,
    /// What the device says of arrays whose memory is mapped later, and whether it refuses them.
    pub maps_later: i32,
    pub no_twins: bool,
    tiles: BTreeMap<Place, u64>,
    pub contexts: BTreeSet<usize>,
    primary: u32,
    /// Work that was submitted and is not complete: its number, context and operand.
    work: Vec<(u64, usize, u64)>,
    submitted: u64,
    /// Events: their context, and the work each was recorded behind.
    events: BTreeMap<usize, (usize, u64)>,
    /// Streams that capture, and their contexts.
    pub captures: BTreeMap<usize, usize>,
    /// Streams of other contexts than the primary one.
    pub streams: BTreeMap<usize, usize>,
    /// Captures that somebody else's call spoilt.
    pub spoilt: u32,
    /// What a block was filled with last.
    pub filled: BTreeMap<u64, u8>,
    pub current: usize,
    next: u64,
    /// Pools grow in steps of this.
    pub growth: u64,
    /// The driver's pitch unit.
    pub pitch: u64,
    /// The next call of this name fails with this code.
    pub fault: Option<(&'static str, u32)>,
    /// The so-manieth call from now fails with this code.
    pub fail_call: Option<(u32, u32)>,
    /// What happens in other threads before the next call of a name does its work, and after, while it has not returned.
    pub before: BTreeMap<&'static str, Meanwhile>,
    pub after: BTreeMap<&'static str, Meanwhile>,
    /// Calls that reached the driver, by name.
    pub calls: BTreeMap<&'static str, u32>,
    /// The most that was there at once.
    pub peak: u64,
    pub graphs: graphs::Graphs,
}

pub const PRIMARY: usize = 0xc0;
pub const DEFAULT_POOL: usize = 0xd0;

thread_local! {
    /// Contexts this thread made current for a while.
    static PUSHED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    static WORLD: RefCell<Option<Arc<Mutex<State>>>> = const { RefCell::new(None) };
}

/// All its functions.
pub fn driver() -> Driver {
    let driver = functions::driver();
    graphs::add_to(&driver);
    driver
}

/// Lets the functions of the driver work on `state` when this thread calls them.
pub fn enter(state: &Arc<Mutex<State>>) {
    PUSHED.with_borrow_mut(Vec::clear);
    WORLD.set(Some(state.clone()));
}

impl State {
    pub fn new() -> State {
        State {
            growth: PAGE,
            pitch: 512,
            maps_later: 1,
            next: 0x7f00_0000_0000,
            pools: BTreeMap::from([(DEFAULT_POOL, Pool::default())]),
            ..State::default()
        }
    }

    /// Bytes that are taken on the device.
    pub fn physical(&self) -> u64 {
        let large = |block: &Block| match block {
            Block::Plain { bytes, .. } if *bytes >= 1 << 20 => bytes.next_multiple_of(PAGE),
            _ => 0,
        };
        let blocks: u64 = self.blocks.values().map(large).sum();
        let zombies: u64 = self.zombies.iter().map(|(_, _, block)| large(block)).sum();
        let pools: u64 = self
            .pools
            .values()
            .filter(|pool| !pool.host)
            .map(|pool| pool.reserved)
            .sum();
        let memory: u64 = self.memory.values().map(|(size, _, _)| *size).sum();
        let contexts = (self.contexts.len() as u64 + u64::from(self.primary > 0)) * CONTEXT;
        let graphs = self.graphs.reserved;
        graphs
            + blocks
            + zombies
            + self.slabs.len() as u64 * PAGE
            + pools
            + memory
            + contexts
            + self.in_arrays()
    }

    /// Large arrays take whole pages, the small ones of a context share some.
    fn in_arrays(&self) -> u64 {
        let mut small: BTreeMap<usize, u64> = BTreeMap::new();
        let mut sum = 0;
        for (context, bytes) in self.arrays.values() {
            if *bytes < 1 << 20 {
                *small.entry(*context).or_default() += bytes;
            } else {
                sum += bytes.next_multiple_of(PAGE);
            }
        }
        sum + small
            .values()
            .map(|bytes| bytes.next_multiple_of(PAGE))
            .sum::<u64>()
    }

    fn unmap_tile(&mut self, tile: Place) {
        if let Some(handle) = self.tiles.remove(&tile) {
            self.memory.get_mut(&handle).expect("a tile holds its memory").2 -= 1;
            self.forget_memory(handle);
        }
    }

    fn end_array(&mut self, array: u64) {
        self.arrays.remove(&array);
        let tiles: Vec<_> = self
            .tiles
            .keys()
            .filter(|(of, ..)| *of == array)
            .copied()
            .collect();
        for tile in tiles {
            self.unmap_tile(tile);
        }
    }

    fn note(&mut self) {
        self.peak = self.peak.max(self.physical());
    }

    /// Work on a block begins, in a context.
    pub fn submit(&mut self, context: usize, pointer: u64) {
        self.submitted += 1;
        self.work.push((self.submitted, context, pointer));
    }

    /// One piece of work completes: contexts are served in any order, each in its own.
    pub fn complete(&mut self, which: usize) {
        let Some((_, context, _)) = (!self.work.is_empty()).then(|| self.work[which % self.work.len()])
        else {
            return;
        };
        let first = self.work.iter().position(|(_, of, _)| *of == context);
        first.map(|first| self.work.remove(first));
    }

    /// Whether the driver has this block.
    pub fn is_there(&self, pointer: u64) -> bool {
        self.blocks.contains_key(&pointer)
    }

    pub fn pending(&self) -> usize {
        self.work.len()
    }

    pub fn is_in_flight(&self, pointer: u64) -> bool {
        self.work.iter().any(|(_, _, of)| *of == pointer)
    }

    fn complete_all_of(&mut self, context: usize, until: u64) {
        self.work
            .retain(|(number, of, _)| *of != context || *number > until);
    }

    fn is_complete(&self, context: usize, until: u64) -> bool {
        !self
            .work
            .iter()
            .any(|(number, of, _)| *of == context && *number <= until)
    }

    /// The context that calls of this thread mean.
    fn current(&self) -> usize {
        PUSHED.with_borrow(|pushed| pushed.last().copied().unwrap_or(self.current))
    }

    /// Forgets a large block, whose address is handed out next.
    pub fn reuse(&mut self, at: u64) {
        assert!(self.blocks.remove(&at).is_some());
        self.next = at;
    }

    fn fresh(&mut self, bytes: u64) -> u64 {
        let at = self.next;
        self.next += bytes.next_multiple_of(PAGE) + PAGE;
        at
    }

    fn plain(&mut self, bytes: u64) -> u64 {
        let context = self.current();
        let block = Block::Plain { context, bytes };
        if bytes >= 1 << 20 {
            let at = self.fresh(bytes);
            self.blocks.insert(at, block);
            return at;
        }
        // The first slab of the context with room, else a new one.
        let unit = bytes.next_multiple_of(512).max(512);
        let mut place = None;
        for ((of, slab), taken) in self.slabs.iter().filter(|((of, _), _)| *of == context) {
            let end = taken
                .iter()
                .next_back()
                .map_or(slab * PAGE, |last| last + self.size_at(*last));
            if end + unit <= (slab + 1) * PAGE {
                place = Some((*of, *slab, end));
                break;
            }
        }
        let (of, slab, at) = place.unwrap_or_else(|| {
            let at = self.fresh(PAGE);
            (context, at / PAGE, at)
        });
        self.slabs.entry((of, slab)).or_default().insert(at);
        self.blocks.insert(at, block);
        at
    }

    fn size_at(&self, at: u64) -> u64 {
        let waiting = self
            .zombies
            .iter()
            .find(|(_, pointer, _)| *pointer == at)
            .map(|(_, _, block)| block);
        match self.blocks.get(&at).or(waiting) {
            Some(Block::Plain { bytes, .. }) => bytes.next_multiple_of(512).max(512),
            _ => 512,
        }
    }

    fn drop_block(&mut self, at: u64, block: Block) {
        match block {
            Block::Plain { context, bytes } if bytes < 1 << 20 => {
                let slab = (context, at / PAGE);
                let taken = self.slabs.get_mut(&slab).expect("a small block lies in a slab");
                assert!(taken.remove(&at));
                if taken.is_empty() {
                    self.slabs.remove(&slab);
                }
            }
            Block::Plain { .. } => {}
            Block::Pooled { pool, bytes } => {
                let pool_state = self.pools.get_mut(&pool).expect("a pool outlives its blocks");
                pool_state.used -= bytes;
                if pool_state.destroyed && pool_state.used == 0 {
                    self.pools.remove(&pool);
                }
            }
        }
    }

    fn pooled(&mut self, pool: usize, bytes: u64) -> Result<u64, CudaError> {
        let growth = self.growth;
        let bytes = bytes.next_multiple_of(512);
        let state = self
            .pools
            .get_mut(&pool)
            .filter(|pool| !pool.destroyed)
            .ok_or(CudaError::INVALID_VALUE)?;
        state.used += bytes;
        if state.used > state.reserved {
            state.reserved += (state.used - state.reserved).next_multiple_of(growth);
        }
        let at = self.fresh(bytes);
        self.blocks.insert(at, Block::Pooled { pool, bytes });
        Ok(at)
    }

    fn shrink(pool: &mut Pool, keep: u64) {
        pool.reserved = pool
            .reserved
            .min(pool.used.max(keep.min(pool.reserved)).next_multiple_of(PAGE));
    }

    /// Somebody waited for everything, past the hooks.
    pub fn wait_unseen(&mut self) {
        self.synchronised(None);
    }

    fn synchronised(&mut self, stream: Option<usize>) {
        let stream = stream.map(named);
        let done = |(of, _, _): &mut (usize, u64, Block)| stream.is_none_or(|stream| *of == stream);
        let zombies: Vec<_> = self.zombies.extract_if(.., done).collect();
        for (_, at, block) in zombies {
            self.drop_block(at, block);
        }
        for pool in self.pools.values_mut() {
            Self::shrink(pool, pool.threshold);
        }
    }

    fn end_context(&mut self, context: usize) {
        self.complete_all_of(context, u64::MAX);
        self.events.retain(|_, (of, _)| *of != context);
        self.captures.retain(|_, of| *of != context);
        if context == PRIMARY {
            self.graphs.end_all();
        }
        let owned =
            |_: &u64, block: &mut Block| matches!(block, Block::Plain { context: of, .. } if *of == context);
        let owned: Vec<_> = self.blocks.extract_if(.., owned).collect();
        for (at, block) in owned {
            self.drop_block(at, block);
        }
        let arrays: Vec<u64> = self
            .arrays
            .iter()
            .filter_map(|(array, (of, _))| (*of == context).then_some(*array))
            .collect();
        for array in arrays {
            self.end_array(array);
        }
        let zombies: Vec<_> = self
            .zombies
            .extract_if(
                ..,
                |(_, _, block)| matches!(block, Block::Plain { context: of, .. } if *of == context),
            )
            .collect();
        for (_, at, block) in zombies {
            self.drop_block(at, block);
        }
    }

    fn forget_memory(&mut self, handle: u64) {
        if matches!(self.memory.get(&handle), Some((_, 0, 0))) {
            self.memory.remove(&handle);
        }
    }
}

/// The legacy default stream has two handles.
fn named(stream: usize) -> usize {
    if stream == CU_STREAM_LEGACY as usize {
        0
    } else {
        stream
    }
}
