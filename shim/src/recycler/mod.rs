//! The recycler: whole blocks of `cuMemAlloc` that the program frees are kept, charged as before, and handed out again to a
//! request of exactly their size in their context. The pointer stays the driver's own, so that address ranges, peer access
//! and the end of a context need no imitation.
//!
//! A block is handed out only when a certificate (`certificate.rs`) says that everything submitted before it was freed is
//! complete. Never kept is what somebody else may know by its identity: see `hooks/exposure.rs`. What is kept is the
//! account's own, counts as free to the program, and goes back to the driver before the program is refused anything, when the
//! daemon wants it, and by and by when nobody asks for it.
//!
//! The walk: `kept.rs` (freeing and asking again) → `blocks.rs` → `certificate.rs` → `given_back.rs`; beside it `gate.rs`,
//! `captures.rs`, `surroundings.rs`.

mod blocks;
mod captures;
mod certificate;
mod gate;
mod given_back;
mod kept;
mod surroundings;

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::lock::{Lock, Rank};
use blocks::{Block, Blocks};
use captures::Captures;
use gate::{Gate, Shut};

/// Most bytes kept for an account on a device: this, or a tenth of its cap where that is less.
const MOST: u64 = 1 << 30;

/// What one process keeps.
pub struct Recycler {
    blocks: Lock<Blocks>,
    pub captures: Captures,
    /// Shut while a context is being ended: then no block of it may be in anybody's hands.
    endings: Gate,
    /// How many blocks are kept, so that a program without any pays one load.
    count: AtomicUsize,
    /// Something was given up: see [`Blocks::give_up`].
    is_off: AtomicBool,
    /// [`surroundings::suit`], once asked.
    suits: AtomicU8,
    /// The pressure each account showed last.
    pressures: Vec<AtomicU32>,
    /// When one of them last changed, and when stale blocks were last looked for, in nanoseconds.
    pressed: AtomicU64,
    swept: AtomicU64,
}

const UNKNOWN: u8 = 0;
const SUITS: u8 = 1;
const FORBIDDEN: u8 = 2;

impl Recycler {
    /// For a process with so many accounts, which show these pressures.
    pub fn new(pressures: Vec<u32>) -> Recycler {
        Recycler {
            blocks: Lock::new(Rank::Recycler, Blocks::new()),
            captures: Captures::new(),
            endings: Gate::new(),
            count: AtomicUsize::new(0),
            is_off: AtomicBool::new(false),
            suits: AtomicU8::new(UNKNOWN),
            pressures: pressures.into_iter().map(AtomicU32::new).collect(),
            pressed: AtomicU64::new(0),
            swept: AtomicU64::new(0),
        }
    }

    /// Whether it keeps anything.
    #[inline]
    pub fn holds(&self) -> bool {
        self.count.load(Relaxed) != 0
    }

    /// Keeps blocks where they are while a context is being ended; waits for calls of our own that are under way.
    pub fn stand_still(&self) -> Shut<'_> {
        self.endings.keep_shut()
    }

    /// Nothing is recycled in this process from now on.
    pub fn forbid(&self) {
        self.suits.store(FORBIDDEN, Relaxed);
    }

    /// Nothing is recycled until `context` is gone.
    pub fn give_up(&self, context: usize) {
        self.blocks.lock().give_up(context);
        self.is_off.store(true, Relaxed);
    }

    /// Whether `address` lies in a block that is kept: the program has freed it.
    pub fn covers(&self, address: u64) -> bool {
        self.holds() && self.blocks.lock().covers(address)
    }

    /// The order of frees so far, where anything is kept.
    pub fn turn(&self) -> Option<u64> {
        self.holds().then(|| self.blocks.lock().turn())
    }

    /// Everything the process submitted before the frees up to `turn` is complete.
    pub fn complete_until(&self, turn: u64) {
        self.blocks.lock().promote_until(turn);
    }

    /// The driver ended `context`, and with it its blocks that were allocated up to the instant `until`.
    pub fn drop_context(&self, context: usize, until: u64) -> Vec<Block> {
        self.captures.context_ended(context);
        self.drop_kept(context, until)
    }

    /// What is kept of a context, and what belongs to it, in case it ended.
    pub fn drop_kept(&self, context: usize, until: u64) -> Vec<Block> {
        let mut blocks = self.blocks.lock();
        let gone = blocks.take_context(context, until);
        self.is_off.store(blocks.has_given_up(), Relaxed);
        self.note(&blocks);
        gone
    }

    /// Takes out the block at exactly this address.
    #[inline]
    pub fn drop_at(&self, pointer: u64) -> Option<Block> {
        match self.holds() {
            true => self.take_at(pointer),
            false => None,
        }
    }

    #[cold]
    fn take_at(&self, pointer: u64) -> Option<Block> {
        let mut blocks = self.blocks.lock();
        let gone = blocks.take_at(pointer);
        self.note(&blocks);
        gone
    }

    fn note(&self, blocks: &Blocks) {
        self.count.store(blocks.count(), Relaxed);
    }
}
