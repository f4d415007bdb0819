//! The doorbell of an account: a futex word by which clients wake the daemon when they posted an event.
//!
//! Read next: `wire.rs`, how a client comes to have the account at all.
//!
//! The daemon announces that it is about to sleep; only then does a ring cost a system call, so that a client refused
//! in a tight loop costs itself an addition per refusal.

use crate::layout::shareable;
use crate::sync::{
    AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst, fence,
};

/// Accounts one thread can wait for: the kernel takes 128 words, one is left for the caller's own bell.
pub const MOST_BELLS: usize = 128;

shareable! {
    /// A word that counts rings, and one that says whether anybody sleeps on it.
    #[repr(align(64))]
    pub struct Doorbell {
        rings: AtomicU32,
        asleep: AtomicU32,
        line: [AtomicU32; 14],
    }
}

/// The number of rings seen so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen(u32);

impl Doorbell {
    /// A bell of the caller's own, to be woken by its other threads.
    #[must_use]
    pub fn new() -> Self {
        Doorbell {
            rings: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
            line: core::array::from_fn(|_| AtomicU32::new(0)),
        }
    }

    /// Rings: wakes whoever sleeps in [`wait`]. Never blocks; a system call only when somebody does sleep.
    pub fn ring(&self) {
        self.rings.fetch_add(1, Release);
        // Pairs with the fence in `announce`: either the sleeper sees the ring, or we see the sleeper.
        fence(SeqCst);
        if self.asleep.load(Relaxed) != 0 && self.asleep.swap(0, Relaxed) != 0 {
            self.wake();
        }
    }

    /// The count now. Take it before draining: a later ring then keeps [`wait`] from sleeping.
    #[must_use]
    pub fn seen(&self) -> Seen {
        Seen(self.rings.load(Acquire))
    }

    /// Says that the caller is about to sleep unless the count moved past `seen`; false when it did already.
    pub(crate) fn announce(&self, seen: Seen) -> bool {
        self.asleep.store(1, Relaxed);
        fence(SeqCst);
        self.rings.load(Relaxed) == seen.0
    }

    #[cfg(not(loom))]
    fn wake(&self) {
        // Not PRIVATE: the sleeper is in another process. An error leaves the daemon to its tick.
        let _ =
            rustix::thread::futex::wake(&self.rings, rustix::thread::futex::Flags::empty(), u32::MAX >> 1);
    }

    #[cfg(loom)]
    fn wake(&self) {}

    #[cfg(all(test, loom))]
    pub(crate) fn nobody_sleeps(&self) -> bool {
        self.asleep.load(Relaxed) == 0
    }
}

/// How a [`wait`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// At least one bell may have rung: look at all of them.
    Rung,
    /// The time passed.
    TimedOut,
}

/// Sleeps until one of `bells` rings past its count, or `timeout` passes. Returns early now and then.
///
/// On kernels without `futex_waitv` (before 5.16) it sleeps on the first bell alone, for at most a millisecond, and leaves
/// the others to be found on that tick. Of more than [`MOST_BELLS`] the rest is found on the same tick.
#[cfg(not(loom))]
pub fn wait(bells: &[(&Doorbell, Seen)], timeout: core::time::Duration) -> Woken {
    sleep::on(bells, timeout)
}

impl Default for Doorbell {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(not(loom))]
mod sleep {
    use super::{Doorbell, MOST_BELLS, Seen, Woken};
    use core::time::Duration;
    use rustix::io::Errno;
    use rustix::thread::futex::{self, ClockId, Flags, Timespec, Wait, WaitFlags, WaitPtr, WaitvFlags};

    const TICK: Duration = Duration::from_millis(1);

    pub(super) fn on(bells: &[(&Doorbell, Seen)], timeout: Duration) -> Woken {
        let mut quiet = true;
        for (bell, seen) in bells {
            quiet &= bell.announce(*seen);
        }
        if !quiet {
            return Woken::Rung;
        }
        let Some((first, rest)) = bells.split_first() else {
            pause(timeout);
            return Woken::TimedOut;
        };
        let in_one_call = bells.len() <= MOST_BELLS;
        let nap = if in_one_call { timeout } else { timeout.min(TICK) };
        let ended = if rest.is_empty() {
            one(*first, nap)
        } else {
            any(&bells[..bells.len().min(MOST_BELLS)], nap)
        };
        match ended {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Woken::Rung,
            Err(Errno::TIMEDOUT) if nap == timeout => Woken::TimedOut,
            Err(Errno::TIMEDOUT) => Woken::Rung,
            // No futex_waitv here: the tick.
            Err(_) => match one(*first, timeout.min(TICK)) {
                Err(Errno::TIMEDOUT) if timeout <= TICK => Woken::TimedOut,
                _ => Woken::Rung,
            },
        }
    }

    fn one((bell, seen): (&Doorbell, Seen), nap: Duration) -> Result<(), Errno> {
        futex::wait(&bell.rings, Flags::empty(), seen.0, Some(&timespec(nap)))
    }

    fn any(bells: &[(&Doorbell, Seen)], nap: Duration) -> Result<(), Errno> {
        let mut waits = [Wait::new(); MOST_BELLS];
        for (wait, (bell, seen)) in waits.iter_mut().zip(bells) {
            wait.val = u64::from(seen.0);
            wait.uaddr = WaitPtr::new(bell.rings.as_ptr().cast());
            wait.flags = WaitFlags::SIZE_U32;
        }
        let now = rustix::time::clock_gettime(ClockId::Monotonic);
        let until = now.checked_add(timespec(nap)).unwrap_or(Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        });
        futex::waitv(
            &waits[..bells.len()],
            WaitvFlags::empty(),
            Some(&until),
            ClockId::Monotonic,
        )
        .map(|_| ())
    }

    fn pause(nap: Duration) {
        let _ = rustix::thread::nanosleep(&timespec(nap));
    }

    fn timespec(duration: Duration) -> Timespec {
        Timespec {
            tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(duration.subsec_nanos()),
        }
    }
}
