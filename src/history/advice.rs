//! A right-sized cap from what was measured: the most an account held, and a tenth more for what was not seen.

use std::collections::VecDeque;
use std::time::Duration;

use super::Subject;
use super::day::Day;
use super::spread::Spread;

/// Memory has to be held for so long in all before a cap is recommended.
pub const ENOUGH: Duration = Duration::from_secs(60 * 60);
/// Recommended caps are multiples of this.
pub const STEP_BYTES: u64 = 256 << 20;

/// What an account did, and what cap would fit it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// Days with anything in them.
    pub days: usize,
    /// Time it held memory, and the part of that in which nothing launched work.
    pub held: Duration,
    pub idle: Duration,
    pub peak_bytes: u64,
    /// What it held at most in 99 % of the time it held anything; up to 12.5 % too much, never above the peak.
    pub p99_bytes: u64,
    /// Refusals at its cap, and the most it would have held without them.
    pub refusals: u64,
    pub wanted_bytes: u64,
    pub cap: Result<u64, Lacks>,
}

/// Why no cap is recommended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lacks {
    /// It held memory for less than an hour.
    Time,
}

impl Subject {
    /// What the days say; no cap above `device_bytes`, what tenants may have of the smallest device, is recommended.
    pub fn advice(&self, device_bytes: u64) -> Advice {
        let mut held = Spread::default();
        self.days.iter().for_each(|day| held.join(&day.held));
        let most = |value: fn(&Day) -> u64| self.days.iter().map(value).max().unwrap_or(0);
        let (peak_bytes, wanted_bytes) = (most(|day| day.peak_bytes), most(|day| day.wanted_bytes));
        let time = Duration::from_millis(held.total_ms());
        let fits = rounded(peak_bytes.saturating_add(peak_bytes / 10)).max(rounded(wanted_bytes));
        Advice {
            days: self.days.len(),
            held: time,
            idle: Duration::from_millis(sum(&self.days, |day| day.idle_ms)),
            peak_bytes,
            p99_bytes: held.quantile(990).min(peak_bytes),
            refusals: sum(&self.days, |day| day.refusals),
            wanted_bytes,
            cap: if time < ENOUGH {
                Err(Lacks::Time)
            } else {
                Ok(fits.min(device_bytes))
            },
        }
    }
}

fn sum(days: &VecDeque<Day>, value: fn(&Day) -> u64) -> u64 {
    days.iter().fold(0, |sum, day| sum.saturating_add(value(day)))
}

fn rounded(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(STEP_BYTES).unwrap_or(u64::MAX)
}
