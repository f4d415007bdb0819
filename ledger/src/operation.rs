//! One operation on an account: charge `delta` granules in a slot's name, or refuse. Written as a machine that makes
//! one shared-memory access per step, so that the code which runs is the code the checker explores and the torture kills.
//!
//! Read next: `recovery.rs`, which finishes or undoes an operation whose process died at any of these steps.
//!
//! The account's *word* holds what is used together with the slot and number of the last operation: used (33 bits) |
//! slot (10) | number (21). Whoever replaces the word first makes sure that the operation it names is remembered in that
//! slot's `committed`. So an operation (slot, number) took effect if and only if the word names it or `committed`
//! carries its number, and a recoverer that reads the word first and `committed` after cannot miss it.
//!
//! A slot's `state` is its charge (43 bits) | number of its last settled operation (21); `pending` is the change in
//! progress (signed, 43 bits) | its number (21). Only the slot's owner writes these two, or, once it is dead, the one
//! recoverer.
//!
//! Numbers wrap at 2^21. That is sound as long as no process sleeps between reading the word and replacing it while the
//! last slot named there makes an exact multiple of 2^21 further operations and the used amount is the same again; even
//! then something is miscounted only if that slot's process is also killed between replacing the word and recording it.

use crate::layout::MAX_GRANULES;
use crate::slot::{Cells, SlotIndex};
use crate::sync::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

const NUMBER_BITS: u32 = 21;
const SLOT_BITS: u32 = 10;
pub(crate) const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;
/// An operation that replaces its own slot's word leaves `committed` alone except every 2^16 operations: the evidence is
/// needed only once somebody else replaces it, and a `committed` that never lags by 2^20 cannot be misread.
const REFRESH_MASK: u64 = (1 << 16) - 1;

/// The memory an operation works on. Implemented by the account and its policy, and by the small tables of the tests.
pub trait Table {
    /// Used amount, slot and number of the last operation.
    fn word(&self) -> &AtomicU64;
    /// Granules above which a reservation is refused.
    fn limit(&self) -> &AtomicU64;
    /// A slot's cells.
    fn cells(&self, slot: SlotIndex) -> &Cells;
}

/// Every step point of an operation and of a recovery. The torture kills at each; the checker interleaves at each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Point {
    /// Read the slot's own charge and number.
    ReadState,
    /// Write what is about to be attempted into `pending`.
    Announce,
    /// Read the word.
    ReadWord,
    /// Read `committed` of the slot that the word names.
    ReadCommitted,
    /// Read the word again: the two belong together only if it did not change.
    ConfirmWord,
    /// Remember the operation that the word names in its slot's `committed`.
    Help,
    /// Read the limit; after the word, so that a word seen after a cap change is judged by the new cap.
    ReadLimit,
    /// Read the word again before refusing: amount and limit are of one instant only if it did not change.
    ConfirmFull,
    /// Replace the word: the instant at which the operation takes effect.
    Commit,
    /// Write charge and number into `state`.
    Record,
    /// Take the announcement back: the operation did not take effect.
    Withdraw,
    /// Recovery: read the dead slot's charge and number.
    FindState,
    /// Recovery: read what the dead owner had announced.
    FindPending,
    /// Recovery: read the word.
    FindWord,
    /// Recovery: read the dead slot's `committed`, after the word.
    FindCommitted,
    /// Recovery: the operation had taken effect; record it for the dead owner.
    Keep,
    /// Recovery: the operation had not taken effect; withdraw it for the dead owner.
    Drop,
    /// Recovery of an account that its tenant falsified: forget a charge that exceeds what is used.
    WriteOff,
    /// Recovery: mark the slot vacant.
    Vacate,
}

impl Point {
    /// All points, in order.
    pub const ALL: [Point; 19] = [
        Point::ReadState,
        Point::Announce,
        Point::ReadWord,
        Point::ReadCommitted,
        Point::ConfirmWord,
        Point::Help,
        Point::ReadLimit,
        Point::ConfirmFull,
        Point::Commit,
        Point::Record,
        Point::Withdraw,
        Point::FindState,
        Point::FindPending,
        Point::FindWord,
        Point::FindCommitted,
        Point::Keep,
        Point::Drop,
        Point::WriteOff,
        Point::Vacate,
    ];
}

/// Called before each step. Production passes `()`, which compiles to nothing; the torture kills its process here.
pub trait Hook {
    /// The step at `point` comes next.
    fn before(&mut self, point: Point);
}

impl Hook for () {
    #[inline(always)]
    fn before(&mut self, _: Point) {}
}

/// How an operation ended. Amounts in granules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It took effect; what the account used right after it.
    Applied {
        /// Used by the whole account.
        used: u64,
    },
    /// It did not fit; nothing changed.
    Refused {
        /// Used by the whole account when it was refused.
        used: u64,
        /// The limit it was judged by.
        limit: u64,
    },
    /// A release of more than the slot holds; nothing changed.
    Short,
    /// A release of more than the account uses: somebody wrote nonsense into it. Nothing changed.
    Corrupt,
    /// The retries allowed to the operation were used up; nothing changed.
    Contended,
}

/// An operation in progress: its program counter and registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    slot: SlotIndex,
    delta: i64,
    retries: u32,
    point: Point,
    charge: u64,
    number: u64,
    word: u64,
    committed: u64,
    limit: u64,
    outcome: Outcome,
}

impl Operation {
    /// Charges `delta` granules (negative: gives back) in the name of `slot`, with at most `retries` disturbances by others.
    /// `delta` is at most [`MAX_GRANULES`] either way.
    #[must_use]
    #[inline]
    pub fn new(slot: SlotIndex, delta: i64, retries: u32) -> Self {
        debug_assert!(delta.unsigned_abs() <= MAX_GRANULES);
        Operation {
            slot,
            delta,
            retries,
            point: Point::ReadState,
            charge: 0,
            number: 0,
            word: 0,
            committed: 0,
            limit: 0,
            outcome: Outcome::Contended,
        }
    }

    /// The step that comes next.
    #[must_use]
    #[inline]
    pub fn point(&self) -> Point {
        self.point
    }

    /// Runs to the end, calling `hook` before each step.
    #[inline]
    pub fn run<T: Table, H: Hook>(mut self, table: &T, hook: &mut H) -> Outcome {
        loop {
            hook.before(self.point);
            if let Some(outcome) = self.step(table) {
                return outcome;
            }
        }
    }

    /// Makes one access to shared memory. `Some` when the operation has ended.
    #[inline(always)]
    pub fn step<T: Table>(&mut self, table: &T) -> Option<Outcome> {
        let own = table.cells(self.slot);
        match self.point {
            Point::ReadState => {
                let state = own.state.load(Acquire);
                self.charge = charge_in(state);
                self.number = number_in(state);
                if self.delta < 0 && self.charge < self.delta.unsigned_abs() {
                    return Some(Outcome::Short);
                }
                self.point = Point::Announce;
            }
            Point::Announce => {
                own.pending
                    .store(pending_of(self.delta, next(self.number)), Release);
                self.point = Point::ReadWord;
            }
            Point::ReadWord => {
                self.word = table.word().load(Acquire);
                self.point = Point::ReadCommitted;
            }
            Point::ReadCommitted => {
                self.committed = table.cells(slot_in(self.word)).committed.load(Acquire);
                self.point = Point::ConfirmWord;
            }
            Point::ConfirmWord => {
                let again = table.word().load(Acquire);
                if again != self.word {
                    self.word = again;
                    self.retry(Point::ReadCommitted);
                } else if self.help_is_due() {
                    self.point = Point::Help;
                } else {
                    self.decide();
                }
            }
            Point::Help => {
                let committed = &table.cells(slot_in(self.word)).committed;
                let target = self.committed.wrapping_add(self.behind());
                match committed.compare_exchange(self.committed, target, AcqRel, Relaxed) {
                    Ok(_) => self.decide(),
                    Err(_) => self.retry(Point::ReadWord),
                }
            }
            Point::ReadLimit => {
                self.limit = table.limit().load(Acquire).min(MAX_GRANULES);
                let fits = used_in(self.word) + self.delta.unsigned_abs() <= self.limit;
                self.point = if fits { Point::Commit } else { Point::ConfirmFull };
            }
            Point::ConfirmFull => {
                let again = table.word().load(Acquire);
                if again == self.word {
                    self.fail(Outcome::Refused {
                        used: used_in(again),
                        limit: self.limit,
                    });
                } else {
                    self.word = again;
                    self.retry(Point::ReadCommitted);
                }
            }
            Point::Commit => {
                let used = used_in(self.word).wrapping_add_signed(self.delta);
                let mine = word_of(used, self.slot, next(self.number));
                match table.word().compare_exchange(self.word, mine, AcqRel, Acquire) {
                    Ok(_) => {
                        self.word = mine;
                        self.point = Point::Record;
                    }
                    Err(now) => {
                        self.word = now;
                        self.retry(Point::ReadCommitted);
                    }
                }
            }
            Point::Record => {
                let charge = self.charge.wrapping_add_signed(self.delta);
                own.state.store(state_of(charge, next(self.number)), Release);
                return Some(Outcome::Applied {
                    used: used_in(self.word),
                });
            }
            // Nothing else is ever stored in `point`; the remaining points belong to recovery.
            _ => {
                own.pending.store(pending_of(0, self.number), Release);
                return Some(self.outcome);
            }
        }
        None
    }

    /// How far `committed`, as read, is behind the operation that the word names.
    #[inline]
    fn behind(&self) -> u64 {
        number_in(self.word).wrapping_sub(self.committed) & NUMBER_MASK
    }

    #[inline]
    fn help_is_due(&self) -> bool {
        let behind = self.behind();
        // More than half way round is a `committed` ahead of the word: only a falsified account shows that.
        let lags = behind != 0 && behind <= NUMBER_MASK / 2;
        lags && (slot_in(self.word) != self.slot || next(self.number) & REFRESH_MASK == 0)
    }

    /// The word and the evidence are in order: go on to the limit or the commit.
    #[inline]
    fn decide(&mut self) {
        if self.delta > 0 {
            self.point = Point::ReadLimit;
        } else if used_in(self.word) < self.delta.unsigned_abs() {
            self.fail(Outcome::Corrupt);
        } else {
            self.point = Point::Commit;
        }
    }

    #[inline]
    fn retry(&mut self, from: Point) {
        if self.retries == 0 {
            self.fail(Outcome::Contended);
        } else {
            self.retries -= 1;
            self.point = from;
            core::hint::spin_loop();
        }
    }

    /// For the checker: as many retries as at first.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn refill(&mut self, retries: u32) {
        self.retries = retries;
    }

    /// For the checker: makes `elsewhere` look like the word that was read.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn confirm_nothing(&self, elsewhere: &AtomicU64) {
        elsewhere.store(self.word, Relaxed);
    }

    #[inline]
    fn fail(&mut self, outcome: Outcome) {
        self.outcome = outcome;
        self.point = Point::Withdraw;
    }
}

#[inline]
pub(crate) const fn next(number: u64) -> u64 {
    (number + 1) & NUMBER_MASK
}

#[inline]
pub(crate) const fn word_of(used: u64, slot: SlotIndex, number: u64) -> u64 {
    (used << (SLOT_BITS + NUMBER_BITS)) | ((slot.get() as u64) << NUMBER_BITS) | (number & NUMBER_MASK)
}

#[inline]
pub(crate) const fn used_in(word: u64) -> u64 {
    word >> (SLOT_BITS + NUMBER_BITS)
}

#[inline]
pub(crate) const fn slot_in(word: u64) -> SlotIndex {
    SlotIndex::from_bits(word >> NUMBER_BITS)
}

#[inline]
pub(crate) const fn number_in(bits: u64) -> u64 {
    bits & NUMBER_MASK
}

#[inline]
pub(crate) const fn state_of(charge: u64, number: u64) -> u64 {
    (charge << NUMBER_BITS) | (number & NUMBER_MASK)
}

#[inline]
pub(crate) const fn charge_in(state: u64) -> u64 {
    state >> NUMBER_BITS
}

#[inline]
pub(crate) const fn pending_of(delta: i64, number: u64) -> u64 {
    ((delta as u64) << NUMBER_BITS) | (number & NUMBER_MASK)
}

#[inline]
pub(crate) const fn delta_in(pending: u64) -> i64 {
    (pending as i64) >> NUMBER_BITS
}
