//! The locks inside one process. Each has a rank, and a thread takes them in rising order only; builds with debug assertions
//! check that, and that none is held over a driver call.
//!
//! A lock never outlives a fork: it lies in what the child leaves behind (see `process.rs`).
//!
//! Next: `guard.rs`.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// In the order in which they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Rank {
    Contexts,
    Pools,
    Physical,
    Deferred,
    /// Streams that capture.
    Captures,
    /// Blocks kept by the recycler.
    Recycler,
    Live,
    /// What arrays cost; held for a look alone.
    Costs,
    /// The ledger's client of one account: innermost, held for one operation.
    Client,
}

/// A mutual exclusion of threads of this process.
pub struct Lock<T> {
    rank: Rank,
    inner: Mutex<T>,
}

impl<T> Lock<T> {
    pub const fn new(rank: Rank, value: T) -> Self {
        Lock {
            rank,
            inner: Mutex::new(value),
        }
    }

    /// Waits for the other threads. A thread that panicked inside left whole values behind: every change made under a lock
    /// is complete before anything that could panic.
    pub fn lock(&self) -> Held<'_, T> {
        order::take(self.rank);
        Held {
            rank: self.rank,
            inner: self.inner.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// A lock taken; given back on drop.
pub struct Held<'a, T> {
    rank: Rank,
    inner: MutexGuard<'a, T>,
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        order::give_back(self.rank);
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// Checks, in builds with debug assertions, that the calling thread holds no lock.
pub fn none_held() {
    order::none_held();
}

#[cfg(debug_assertions)]
mod order {
    use super::Rank;
    use core::cell::Cell;

    thread_local! {
        /// One bit per rank held by this thread.
        static HELD: Cell<u32> = const { Cell::new(0) };
    }

    pub fn take(rank: Rank) {
        let held = HELD.get();
        assert!(
            held >> rank as u8 == 0,
            "{rank:?} is taken after a later rank: {held:#b}"
        );
        HELD.set(held | 1 << rank as u8);
    }

    pub fn give_back(rank: Rank) {
        HELD.set(HELD.get() & !(1 << rank as u8));
    }

    pub fn none_held() {
        assert_eq!(HELD.get(), 0, "a lock is held over a driver call");
    }
}

#[cfg(not(debug_assertions))]
mod order {
    use super::Rank;

    pub fn take(_: Rank) {}
    pub fn give_back(_: Rank) {}
    pub fn none_held() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locks_are_taken_in_rising_order_only() {
        let (outer, inner) = (Lock::new(Rank::Contexts, 1), Lock::new(Rank::Client, 2));
        {
            let first = outer.lock();
            assert_eq!(*first + *inner.lock(), 3);
        }
        none_held();
        let wrong = std::panic::catch_unwind(|| {
            let _inner = inner.lock();
            let _outer = outer.lock();
        });
        assert!(wrong.is_err());
        none_held();
    }
}
