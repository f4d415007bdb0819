//! A slot: the page of an account that one client writes. Slot 0 is the daemon's.
//!
//! Read next: `operation.rs`, which changes a slot's charge, and `recovery.rs`, which empties a dead client's slot.

use crate::layout::{bytes_of, shareable};
use crate::ring::Ring;
use crate::sync::{AtomicU64, Ordering::Acquire, Ordering::Relaxed};

/// Slots in an account, the daemon's included. The word has ten bits for the slot's number.
pub const SLOTS: usize = 1024;

/// The number of a slot: always below [`SLOTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotIndex(u16);

impl SlotIndex {
    /// The slot in whose name the daemon makes a cap change take effect. No client ever has it.
    pub const DAEMON: SlotIndex = SlotIndex(0);

    /// A client's slot: 1 to 1023. `None` for every other number, whoever sent it.
    #[must_use]
    pub const fn client(index: u32) -> Option<SlotIndex> {
        if index >= 1 && index < SLOTS as u32 {
            Some(SlotIndex(index as u16))
        } else {
            None
        }
    }

    /// The slot named by the low ten bits of `bits`.
    pub(crate) const fn from_bits(bits: u64) -> SlotIndex {
        SlotIndex((bits & (SLOTS as u64 - 1)) as u16)
    }

    /// The number, below [`SLOTS`].
    #[must_use]
    pub const fn get(self) -> usize {
        self.0 as usize & (SLOTS - 1)
    }
}

/// Which process owns a slot. A pid alone is not a name: it is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Process id in the daemon's namespace; never 0.
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`, in clock ticks since boot.
    pub start_time: u64,
    /// The nonce of the hello: differs between two programs that one process executed.
    pub nonce: u64,
}

/// What a charge is for. The counters are informational: the client keeps them, the daemon shows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Linear and pitched allocations.
    Device,
    /// Contexts.
    Context,
    /// The driver's slabs for small allocations, as far as they exceed the sum of what was asked for.
    Slab,
    /// What stream-ordered pools have reserved.
    Pool,
    /// Physical memory made by `cuMemCreate`.
    Physical,
    /// Managed memory.
    Managed,
    /// Arrays and mipmapped arrays.
    Array,
    /// Memory reserved for graphs.
    Graph,
    /// Modules and their global variables.
    Module,
    /// Blocks freed by the program and kept for its next request; part of the charge, free to the program.
    Idle,
    /// Page-locked host memory; not part of the charge.
    Host,
}

/// Number of counters a slot has room for; those beyond the last [`Class`] are zero.
pub const CLASSES: usize = 16;

shareable! {
    /// The words of a slot that operations are made of; see `operation.rs` for what each holds.
    #[repr(align(64))]
    pub struct Cells {
        /// Charge in granules and the number of the last settled operation. Written by the owner, or its recoverer.
        pub(crate) state: AtomicU64,
        /// Change in granules and number of the operation in progress. Written by the owner, or its recoverer.
        pub(crate) pending: AtomicU64,
        /// Pid of the owner, 0 when vacant.
        pub(crate) owner: AtomicU64,
        pub(crate) reserved: [AtomicU64; 5],
        /// Full number of the latest operation known to have been committed; on a line of its own because others write it.
        pub(crate) committed: AtomicU64,
        pub(crate) reserved_too: [AtomicU64; 7],
    }
}

shareable! {
    /// One client's page.
    #[repr(align(4096))]
    pub struct Slot {
        pub(crate) cells: Cells,
        /// Launches since the slot was claimed; on a line of its own because every thread of the client adds to it.
        pub(crate) launches: AtomicU64,
        launches_line: [AtomicU64; 7],
        pub(crate) start_time: AtomicU64,
        pub(crate) nonce: AtomicU64,
        key_line: [AtomicU64; 6],
        pub(crate) classes: [AtomicU64; CLASSES],
        reserved: [AtomicU64; 192],
        pub(crate) ring: Ring,
    }
}

impl Slot {
    /// The owner as the daemon wrote it; `None` when the slot is vacant. A tenant can write these words: the daemon
    /// decides by its own record.
    #[must_use]
    pub fn owner(&self) -> Option<Owner> {
        let pid = self.cells.owner.load(Acquire) as u32;
        (pid != 0).then(|| Owner {
            pid,
            start_time: self.start_time.load(Relaxed),
            nonce: self.nonce.load(Relaxed),
        })
    }

    /// Bytes charged by the slot's owner.
    #[must_use]
    pub fn charge(&self) -> u64 {
        bytes_of(crate::operation::charge_in(self.cells.state.load(Acquire)))
    }

    /// Launches the owner has counted since it attached.
    #[must_use]
    pub fn launches(&self) -> u64 {
        self.launches.load(Relaxed)
    }

    /// Bytes the owner says it holds for `class`.
    #[must_use]
    pub fn class_bytes(&self, class: Class) -> u64 {
        self.classes[class as usize & (CLASSES - 1)].load(Relaxed)
    }

    /// Events the owner could not post because its ring was full.
    #[must_use]
    pub fn dropped_events(&self) -> u64 {
        self.ring.dropped()
    }
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<Cells>() == 128);
    assert!(size_of::<Slot>() == 4096);
};

/// A set of slots: the daemon's own record of which are taken. Lowest first, so that the pages touched stay few.
#[derive(Clone, Debug)]
pub struct SlotSet([u64; SLOTS / 64]);

impl Default for SlotSet {
    fn default() -> Self {
        Self::new()
    }
}

impl SlotSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        SlotSet([0; SLOTS / 64])
    }

    /// Adds the lowest client slot that is not in the set and returns it; `None` when all 1023 are.
    pub fn take(&mut self) -> Option<SlotIndex> {
        let slot = (1..SLOTS as u32)
            .filter_map(SlotIndex::client)
            .find(|slot| !self.contains(*slot))?;
        self.insert(slot);
        Some(slot)
    }

    /// Adds `slot`; false when it was in the set already.
    pub fn insert(&mut self, slot: SlotIndex) -> bool {
        let fresh = !self.contains(slot);
        self.0[slot.get() / 64] |= 1 << (slot.get() % 64);
        fresh
    }

    /// Removes `slot`; false when it was not in the set.
    pub fn remove(&mut self, slot: SlotIndex) -> bool {
        let present = self.contains(slot);
        self.0[slot.get() / 64] &= !(1 << (slot.get() % 64));
        present
    }

    /// Whether `slot` is in the set.
    #[must_use]
    pub fn contains(&self, slot: SlotIndex) -> bool {
        self.0[slot.get() / 64] >> (slot.get() % 64) & 1 == 1
    }
}
