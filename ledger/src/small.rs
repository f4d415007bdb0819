//! A table of a few slots for the checker and the models: the same cells, without an account around them.

use crate::operation::{Table, state_of, word_of};
use crate::slot::{Cells, SlotIndex};
use crate::sync::AtomicU64;

pub(crate) struct Small {
    pub(crate) word: AtomicU64,
    pub(crate) limit: AtomicU64,
    pub(crate) slots: Vec<Cells>,
}

impl Small {
    /// `slots` vacant slots, the daemon's included, each with `operations` operations behind it that left no charge.
    pub(crate) fn new(slots: usize, limit: u64, operations: u64) -> Self {
        Small {
            word: AtomicU64::new(word_of(0, SlotIndex::DAEMON, operations)),
            limit: AtomicU64::new(limit),
            slots: (0..slots).map(|_| cells(operations)).collect(),
        }
    }
}

fn cells(operations: u64) -> Cells {
    let zero = || AtomicU64::new(0);
    Cells {
        state: AtomicU64::new(state_of(0, operations)),
        pending: AtomicU64::new(state_of(0, operations)),
        owner: zero(),
        reserved: std::array::from_fn(|_| zero()),
        committed: AtomicU64::new(operations),
        reserved_too: std::array::from_fn(|_| zero()),
    }
}

impl Table for Small {
    fn word(&self) -> &AtomicU64 {
        &self.word
    }
    fn limit(&self) -> &AtomicU64 {
        &self.limit
    }
    fn cells(&self, slot: SlotIndex) -> &Cells {
        &self.slots[slot.get()]
    }
}

pub(crate) fn slot(index: u32) -> SlotIndex {
    if index == 0 {
        SlotIndex::DAEMON
    } else {
        SlotIndex::client(index).expect("a client's slot")
    }
}
