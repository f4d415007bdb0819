//! One day of an account: how long it held how much (`history/spread.rs`), and what it was refused.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Sample;
use super::spread::Spread;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Day {
    /// Days since 1970 in UTC.
    pub date: u64,
    /// Time it held memory, in milliseconds by what it held.
    pub held: Spread,
    /// The part of it in which nothing launched work, in milliseconds.
    pub idle_ms: u64,
    pub peak_bytes: u64,
    pub refusals: u64,
    /// The most it would have held had it not been refused.
    pub wanted_bytes: u64,
}

impl Day {
    pub fn new(date: u64) -> Day {
        Day {
            date,
            held: Spread::default(),
            idle_ms: 0,
            peak_bytes: 0,
            refusals: 0,
            wanted_bytes: 0,
        }
    }

    pub fn add(&mut self, sample: Sample, elapsed: Duration) {
        self.peak_bytes = self.peak_bytes.max(sample.peak_bytes).max(sample.used_bytes);
        if sample.used_bytes == 0 {
            return;
        }
        let ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        self.held.add(sample.used_bytes, ms);
        if sample.idle {
            self.idle_ms = self.idle_ms.saturating_add(ms);
        }
    }

    pub fn refused(&mut self, wanted_bytes: u64) {
        self.refusals = self.refusals.saturating_add(1);
        self.wanted_bytes = self.wanted_bytes.max(wanted_bytes);
    }

    /// One of the `days` that end with `today`.
    pub fn is_within(&self, days: u64, today: u64) -> bool {
        self.date <= today && today - self.date < days
    }

    /// Drops what no day of ours says.
    pub fn bound(&mut self) {
        self.held.bound();
    }
}
