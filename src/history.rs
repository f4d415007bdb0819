//! What accounts used in the last fortnight, as a value: days of how long how much was held, bounded in size whoever writes
//! into it. `daemon/chronicle.rs` feeds and stores it; `history/advice.rs` makes a right-sized cap of it (`stint recommend`).

mod advice;
mod day;
mod spread;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

pub use advice::{Advice, Lacks};
use day::Day;

/// Days kept, today included.
pub const DAYS: usize = 14;
/// Accounts kept; a newcomer takes the place of the one that held memory for the least time.
pub const SUBJECTS: usize = 512;

const DAY: u64 = 24 * 60 * 60;

/// An account at one instant, on the device where it holds most: a cap is one number for each device alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    pub used_bytes: u64,
    /// The most it ever held at once since it was opened.
    pub peak_bytes: u64,
    /// It holds memory, and nothing of it launched work lately.
    pub idle: bool,
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    subjects: BTreeMap<String, Subject>,
}

/// An account, or, of accounts that come and go with a job or a container, their tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    pub tenant: String,
    /// The latest at the end.
    days: VecDeque<Day>,
}

impl History {
    /// `name` was like `sample` for the last `elapsed` before `now`. Holding nothing leaves no trace.
    pub fn note(&mut self, name: &str, tenant: &str, sample: Sample, elapsed: Duration, now: SystemTime) {
        if sample.used_bytes > 0 || sample.peak_bytes > 0 {
            self.day(name, tenant, now).add(sample, elapsed);
        }
    }

    /// `name` was refused at its cap: with `asked_bytes` more it would have held `wanted_bytes`.
    pub fn refused(&mut self, name: &str, tenant: &str, wanted_bytes: u64, now: SystemTime) {
        self.day(name, tenant, now).refused(wanted_bytes);
    }

    /// All subjects, by name.
    pub fn subjects(&self) -> impl Iterator<Item = (&str, &Subject)> {
        self.subjects
            .iter()
            .map(|(name, subject)| (name.as_str(), subject))
    }

    /// Brings what a file said within bounds. Days after today are from a clock that was wrong.
    pub fn trim(&mut self, now: SystemTime) {
        let today = date(now);
        for subject in self.subjects.values_mut() {
            subject.days.retain(|day| day.is_within(DAYS as u64, today));
            subject.days.make_contiguous().sort_by_key(|day| day.date);
            subject.days.iter_mut().for_each(Day::bound);
        }
        self.subjects.retain(|_, subject| !subject.days.is_empty());
        while self.subjects.len() > SUBJECTS {
            self.drop_least();
        }
    }

    fn day(&mut self, name: &str, tenant: &str, now: SystemTime) -> &mut Day {
        if !self.subjects.contains_key(name) && self.subjects.len() >= SUBJECTS {
            self.drop_least();
        }
        let subject = self.subjects.entry(name.into()).or_insert_with(|| Subject {
            tenant: tenant.into(),
            days: VecDeque::new(),
        });
        let today = date(now);
        subject.days.retain(|day| day.is_within(DAYS as u64, today));
        if subject.days.back().is_none_or(|last| last.date != today) {
            subject.days.push_back(Day::new(today));
        }
        let last = subject.days.len() - 1;
        &mut subject.days[last]
    }

    /// Many short-lived names take each other's place and nobody else's.
    fn drop_least(&mut self) {
        let held = |subject: &Subject| {
            let ms = subject.days.iter().map(|day| day.held.total_ms());
            ms.fold(0u64, u64::saturating_add)
        };
        let least = self.subjects.iter().min_by_key(|(_, subject)| held(subject));
        if let Some(name) = least.map(|(name, _)| name.clone()) {
            self.subjects.remove(&name);
        }
    }
}

/// Days since 1970 in UTC.
fn date(now: SystemTime) -> u64 {
    now.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() / DAY)
}
