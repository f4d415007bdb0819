//! The account object: what the clients of one account hold on one device.
//!
//! A [`Client`] is a process that charges memory here, the [`Daemon`] hands out slots, changes
//! the cap and recovers what the dead held. An observer, who only reads, has a `View<Account>` and the methods below.
//!
//! Read next: `client.rs`, then `operation.rs`, which does the work.

pub use crate::client::{Client, Refusal, ReleaseError};
pub use crate::daemon::{Contended, Daemon, Recovered};
use crate::doorbell::Doorbell;
use crate::layout::{Header, MAX_GRANULES, Object, bytes_of, shareable};
use crate::operation::{Table, used_in};
use crate::policy::Policy;
use crate::slot::{Cells, SLOTS, Slot, SlotIndex};
use crate::sync::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};

shareable! {
    /// What one account holds on one device. Written by its clients, hence by its tenant: no value here is to be trusted
    /// beyond the account itself.
    #[repr(align(4096))]
    pub struct Account {
        header: Header,
        word: AtomicU64,
        word_line: [AtomicU64; 7],
        pub(crate) doorbell: Doorbell,
        /// Granules used at most so far.
        pub(crate) peak: AtomicU64,
        peak_line: [AtomicU64; 7],
        /// One bit per slot that may be in use, so that a reader touches no page of an unused one.
        occupied: [AtomicU64; SLOTS / 64],
        reserved: [AtomicU64; 464],
        slots: [Slot; SLOTS],
    }
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Account>() == 4096 * (1 + SLOTS));

impl Object for Account {
    const MAGIC: u64 = u64::from_le_bytes(*b"STNTACCT");
    const VERSION: u32 = 1;
    fn header(&self) -> &Header {
        &self.header
    }
}

impl Account {
    /// Bytes charged by all clients together.
    #[must_use]
    pub fn used(&self) -> u64 {
        bytes_of(used_in(self.word.load(Acquire)))
    }

    /// The most bytes that were charged at once since the account was made, to within operations whose process was killed
    /// between charging and noting it.
    #[must_use]
    pub fn peak(&self) -> u64 {
        bytes_of(self.peak.load(Relaxed).min(MAX_GRANULES))
    }

    /// A slot's page.
    #[must_use]
    pub fn slot(&self, slot: SlotIndex) -> &Slot {
        &self.slots[slot.get()]
    }

    /// The slots that may be in use, lowest first; at most 1023. A slot listed may be vacant: see [`Slot::owner`].
    pub fn occupied(&self) -> impl Iterator<Item = SlotIndex> + '_ {
        (1..SLOTS as u32)
            .filter_map(SlotIndex::client)
            .filter(|slot| self.occupied[slot.get() / 64].load(Acquire) >> (slot.get() % 64) & 1 == 1)
    }

    /// How many slots may be in use; at most 1023.
    #[must_use]
    pub fn clients(&self) -> u32 {
        self.occupied
            .iter()
            .map(|word| word.load(Relaxed).count_ones())
            .sum::<u32>()
            .min(SLOTS as u32 - 1)
    }

    /// Says whether `slot` may be in use.
    pub(crate) fn mark(&self, slot: SlotIndex, occupied: bool) {
        let bit = 1 << (slot.get() % 64);
        let word = &self.occupied[slot.get() / 64];
        if occupied {
            word.fetch_or(bit, AcqRel)
        } else {
            word.fetch_and(!bit, AcqRel)
        };
    }
}

/// The two objects together: what an operation works on.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) account: &'a Account,
}

impl Table for Pair<'_> {
    #[inline]
    fn word(&self) -> &AtomicU64 {
        &self.account.word
    }
    #[inline]
    fn limit(&self) -> &AtomicU64 {
        &self.policy.limit
    }
    #[inline]
    fn cells(&self, slot: SlotIndex) -> &Cells {
        &self.account.slot(slot).cells
    }
}
