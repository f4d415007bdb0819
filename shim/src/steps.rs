//! In which steps the driver grows what it reserves: presumed large until it was seen to grow.
//!
//! Next: `pools.rs`.

use crate::live::PAGE;

/// What the drivers grow a pool by, in bytes, until this one was seen to do otherwise. Less would let the first growth pass the
/// cap before it is undone; a driver that grows by less is known after its first.
const PRESUMED: u64 = 32 << 20;

/// What was seen so far.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// It grows in multiples of this: a page times a power of two.
    step: u64,
    /// And by no less than this.
    least: u64,
}

impl Steps {
    pub const fn new() -> Steps {
        Steps {
            step: PRESUMED,
            least: PRESUMED,
        }
    }

    /// The most that is expected to be added when `bytes` are asked for.
    pub fn foreseen(&self, bytes: u64) -> u64 {
        stepped(bytes, self.step).max(self.least)
    }

    /// The least that can be added when `bytes` are asked for and none lie idle, as far as was seen.
    pub fn needed(&self, bytes: u64) -> u64 {
        stepped(bytes, PAGE).max(self.least)
    }

    /// The least that can be added if what was seen does not bind it.
    pub fn page_wise(&self, bytes: u64) -> u64 {
        stepped(bytes, PAGE)
    }

    /// `asked` bytes alone made it grow by `grown`.
    pub fn learn(&mut self, asked: u64, grown: u64) {
        if grown == 0 {
            return;
        }
        self.least = self.least.min(grown);
        while self.step > PAGE && !grown.is_multiple_of(self.step) {
            self.step /= 2;
        }
        while self.foreseen(asked) < grown {
            self.step *= 2;
        }
    }
}

/// `bytes` in whole steps.
fn stepped(bytes: u64, step: u64) -> u64 {
    bytes.checked_next_multiple_of(step).unwrap_or(u64::MAX)
}
