//! What the checker explores: the state of shared memory, of every participant, and the truth about them.
//!
//! Read next: `checker.rs`, which moves from one state to the next.

use crate::operation::{Operation, Table, used_in};
use crate::recovery::Recovery;
use crate::slot::{Cells, SlotIndex};
use crate::small::Small;
use crate::sync::{AtomicU64, Ordering::Relaxed};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Retries given to operations that are to be followed until they get through.
pub(super) const PATIENT: u32 = 1000;

/// A precaution left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sabotage {
    None,
    /// Whoever replaces the word does not remember what it named.
    NoHelp,
    /// The recoverer does not look at the word.
    IgnoreWord,
    /// The recoverer does not look at `committed`.
    IgnoreCommitted,
    /// The recoverer reads `committed` first and the word after.
    CommittedFirst,
    /// The recoverer vacates the slot without giving the charge back.
    NoRelease,
    /// The recoverer subtracts in the daemon's name, and clears the dead slot afterwards.
    ThroughDaemon,
    /// A cap change does not replace the word.
    NoFence,
    /// A refusal is not confirmed.
    HastyRefusal,
}

/// What is explored: sizes that keep the number of states near a million.
pub(super) struct Model {
    pub(super) clients: usize,
    /// Reservations tried by each client, one after the other, each released again unless the client is killed before.
    pub(super) sizes: &'static [u64],
    pub(super) cap: u64,
    /// The caps put into force, one after the other.
    pub(super) caps: &'static [u64],
    pub(super) kills: u8,
    pub(super) recoverer_kills: u8,
    /// Operations behind every slot at the start: near 2^21 - 1 the numbers wrap.
    pub(super) operations: u64,
    pub(super) retries: u32,
    pub(super) sabotage: Sabotage,
}

impl Default for Model {
    fn default() -> Self {
        Model {
            clients: 2,
            sizes: &[2],
            cap: 3,
            caps: &[],
            kills: 1,
            recoverer_kills: 1,
            operations: 7,
            retries: PATIENT,
            sabotage: Sabotage::None,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Doing {
    Nothing,
    Operating {
        operation: Operation,
        delta: i64,
        was_full: bool,
    },
    Dead,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct ClientState {
    pub(super) doing: Doing,
    /// Index of the next size, and whether it is held.
    pub(super) next: usize,
    pub(super) held: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum DaemonState {
    Nothing,
    /// Settling its own slot, then replacing the word.
    Settling(Recovery),
    Fencing(Operation),
    Recovering {
        client: usize,
        recovery: Recovery,
        hint: Option<bool>,
    },
    /// Sabotage: subtracting through slot 0.
    Subtracting {
        client: usize,
        operation: Operation,
        charge: u64,
    },
    Clearing {
        client: usize,
    },
}

/// Everything: shared memory, registers, and what the checker knows better than they do.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) word: u64,
    pub(super) limit: u64,
    pub(super) cells: Vec<[u64; 4]>,
    pub(super) clients: Vec<ClientState>,
    pub(super) daemon: DaemonState,
    pub(super) kills: u8,
    pub(super) recoverer_kills: u8,
    pub(super) next_cap: usize,
    /// The cap the last finished change put into force.
    pub(super) in_force: u64,
    /// What took effect in each slot's name.
    pub(super) truth: Vec<i64>,
}

pub(super) type Verdict = Result<(), String>;

impl World {
    pub(super) fn new(model: &Model) -> Self {
        let small = Small::new(model.clients + 1, model.cap, model.operations);
        let client = ClientState {
            doing: Doing::Nothing,
            next: 0,
            held: 0,
        };
        let mut world = World {
            word: 0,
            limit: 0,
            cells: vec![[0; 4]; model.clients + 1],
            clients: vec![client; model.clients],
            daemon: DaemonState::Nothing,
            kills: model.kills,
            recoverer_kills: model.recoverer_kills,
            next_cap: 0,
            in_force: model.cap,
            truth: vec![0; model.clients + 1],
        };
        world.read_back(&small);
        world
    }

    pub(super) fn write_out(&self, small: &Small) {
        small.word.store(self.word, Relaxed);
        small.limit.store(self.limit, Relaxed);
        for (cells, [state, pending, owner, committed]) in small.slots.iter().zip(&self.cells) {
            cells.state.store(*state, Relaxed);
            cells.pending.store(*pending, Relaxed);
            cells.owner.store(*owner, Relaxed);
            cells.committed.store(*committed, Relaxed);
        }
    }

    pub(super) fn read_back(&mut self, small: &Small) {
        self.word = small.word.load(Relaxed);
        self.limit = small.limit.load(Relaxed);
        for (cells, shared) in self.cells.iter_mut().zip(&small.slots) {
            *cells = [&shared.state, &shared.pending, &shared.owner, &shared.committed]
                .map(|cell| cell.load(Relaxed));
        }
    }

    /// Takes over what a step by `who` did to shared memory, and checks what must hold at every instant.
    pub(super) fn observe(&mut self, small: &Small, who: usize) -> Verdict {
        let before = used_in(self.word) as i64;
        self.read_back(small);
        let after = used_in(self.word) as i64;
        self.truth[who] += after - before;
        if after > before && after as u64 > self.in_force.max(self.limit) {
            return Err(format!(
                "{after} used above the cap {} / {}",
                self.in_force, self.limit
            ));
        }
        if self.truth[who] < 0 {
            return Err(format!("slot {who} gave back more than it held"));
        }
        for client in &mut self.clients {
            if let Doing::Operating { delta, was_full, .. } = &mut client.doing {
                *was_full |= *delta > 0 && after as u64 + delta.unsigned_abs() > self.limit;
            }
        }
        Ok(())
    }

    pub(super) fn fingerprint(&self) -> u128 {
        let hash = |seed: u64| {
            let mut hasher = DefaultHasher::new();
            seed.hash(&mut hasher);
            self.hash(&mut hasher);
            hasher.finish()
        };
        u128::from(hash(1)) << 64 | u128::from(hash(2))
    }
}

/// Shared memory as a sabotaged participant takes it: one part of it is something else.
pub(super) struct Lie<'a> {
    pub(super) small: &'a Small,
    pub(super) word: Option<&'a AtomicU64>,
    pub(super) cells: Option<&'a Cells>,
    pub(super) other: SlotIndex,
}

impl Table for Lie<'_> {
    fn word(&self) -> &AtomicU64 {
        self.word.unwrap_or(&self.small.word)
    }
    fn limit(&self) -> &AtomicU64 {
        &self.small.limit
    }
    fn cells(&self, slot: SlotIndex) -> &Cells {
        match self.cells {
            Some(cells) if slot == self.other => cells,
            _ => self.small.cells(slot),
        }
    }
}
