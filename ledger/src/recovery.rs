//! Recovery: what the daemon does with the slot of a client that died, at whichever step.
//!
//! Read next: `ring.rs`, the other thing a client leaves behind.
//!
//! First the operation the dead client left unfinished is settled *in place*: recorded if it took effect, withdrawn if not.
//! Either is one store whose repetition changes nothing. Then the charge is given back by an ordinary operation in the dead
//! slot's own name. So a recoverer that is itself killed leaves the slot as a dead client would, and the next one starts
//! again from the top. Two recoverers must not work on one slot at the same time.

use crate::layout::MAX_GRANULES;
use crate::operation::{
    Hook, NUMBER_MASK, Operation, Outcome, Point, Table, charge_in, delta_in, next, number_in, pending_of,
    slot_in, state_of,
};
use crate::slot::SlotIndex;
use crate::sync::{Ordering::Acquire, Ordering::Release};

/// How a recovery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// The slot is vacant.
    Vacant {
        /// Granules given back.
        released: u64,
        /// The slot held values no client of ours writes; the account's sums may be wrong.
        corrupt: bool,
    },
    /// Others kept replacing the word; the slot still holds its charge. Try again later.
    Contended,
}

/// A recovery in progress: its program counter and registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Recovery {
    slot: SlotIndex,
    retries: u32,
    point: Point,
    charge: u64,
    number: u64,
    pending: u64,
    released: u64,
    corrupt: bool,
    release: Option<Operation>,
}

impl Recovery {
    /// Empties `slot`, whose owner is dead, with at most `retries` disturbances by others.
    #[must_use]
    pub fn new(slot: SlotIndex, retries: u32) -> Self {
        Recovery {
            slot,
            retries,
            point: Point::FindState,
            charge: 0,
            number: 0,
            pending: 0,
            released: 0,
            corrupt: false,
            release: None,
        }
    }

    /// The step that comes next.
    #[must_use]
    pub fn point(&self) -> Point {
        match &self.release {
            Some(operation) => operation.point(),
            None => self.point,
        }
    }

    /// Runs to the end, calling `hook` before each step.
    pub fn run<T: Table, H: Hook>(mut self, table: &T, hook: &mut H) -> Ended {
        loop {
            hook.before(self.point());
            if let Some(ended) = self.step(table) {
                return ended;
            }
        }
    }

    /// Makes one access to shared memory. `Some` when the recovery has ended.
    pub fn step<T: Table>(&mut self, table: &T) -> Option<Ended> {
        if let Some(operation) = &mut self.release {
            let outcome = operation.step(table)?;
            self.release = None;
            match outcome {
                Outcome::Applied { .. } => {
                    self.released = self.charge;
                    self.point = Point::Vacate;
                }
                Outcome::Contended => return Some(Ended::Contended),
                Outcome::Refused { .. } | Outcome::Short | Outcome::Corrupt => self.point = Point::WriteOff,
            }
            return None;
        }
        let cells = table.cells(self.slot);
        match self.point {
            Point::FindState => {
                let state = cells.state.load(Acquire);
                self.charge = charge_in(state);
                self.number = number_in(state);
                self.point = Point::FindPending;
            }
            Point::FindPending => {
                self.pending = cells.pending.load(Acquire);
                let pending = number_in(self.pending);
                if pending == self.number {
                    self.settled();
                } else if pending == next(self.number) {
                    self.point = Point::FindWord;
                } else {
                    self.corrupt = true;
                    self.point = Point::Drop;
                }
            }
            Point::FindWord => {
                let word = table.word().load(Acquire);
                let named = slot_in(word) == self.slot && number_in(word) == number_in(self.pending);
                self.point = if named { Point::Keep } else { Point::FindCommitted };
            }
            Point::FindCommitted => {
                let committed = cells.committed.load(Acquire) & NUMBER_MASK;
                self.point = if committed == number_in(self.pending) {
                    Point::Keep
                } else {
                    Point::Drop
                };
            }
            Point::Keep => {
                let charge = self.charge.checked_add_signed(delta_in(self.pending));
                self.corrupt |= charge.is_none();
                self.charge = charge.unwrap_or(0);
                self.number = number_in(self.pending);
                cells.state.store(state_of(self.charge, self.number), Release);
                self.settled();
            }
            Point::Drop => {
                cells.pending.store(pending_of(0, self.number), Release);
                self.settled();
            }
            Point::WriteOff => {
                self.corrupt = true;
                cells.state.store(state_of(0, self.number), Release);
                self.point = Point::Vacate;
            }
            // Nothing else is ever stored in `point`; the remaining points belong to the operation.
            _ => {
                cells.owner.store(0, Release);
                return Some(Ended::Vacant {
                    released: self.released,
                    corrupt: self.corrupt,
                });
            }
        }
        None
    }

    /// For the checker: as many retries as at first.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn refill(&mut self, retries: u32) {
        if let Some(operation) = &mut self.release {
            operation.refill(retries);
        }
    }

    /// Nothing is in progress in the slot any more: give its charge back.
    fn settled(&mut self) {
        if self.charge == 0 {
            self.point = Point::Vacate;
        } else if self.charge > MAX_GRANULES {
            self.point = Point::WriteOff;
        } else {
            self.release = Some(Operation::new(self.slot, -(self.charge as i64), self.retries));
        }
    }
}
