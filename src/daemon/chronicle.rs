//! Feeds the history of accounts (`src/history.rs`) once a tick and keeps it in a file, `history.json` in the state
//! directory: systemd's, so that it outlives a reboot, else the run directory. `stint recommend` is answered from it. What
//! a daemon killed at once forgets is the last five minutes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::core::Core;
use super::state_file::{StateFile, Subject};
use crate::admission::identity::Place;
use crate::exit::Failure;
use crate::history::{Advice, History, Lacks, Sample};
use crate::protocol::recommend::{Device, Recommendation, Recommendations, SCHEMA};
use crate::state::{Event, Refusal};

const SUBJECT: Subject = Subject {
    key: "history",
    unkept: "the history is kept in memory only",
    lost: "the history begins anew",
};
/// Time between two writes.
const EVERY: Duration = Duration::from_secs(300);
/// A longer time between two looks is one in which nobody looked: the machine slept.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub(super) struct Chronicle {
    file: StateFile,
    history: History,
    /// The high-water marks that were seen already, so that none counts for a later day.
    marks: BTreeMap<String, u64>,
    looked: Option<Instant>,
    written: Instant,
}

impl Chronicle {
    /// Takes over what an earlier daemon wrote to `directory`; the message says what is wrong with that.
    pub fn open(directory: Option<&Path>) -> (Chronicle, Option<String>) {
        let (file, mut history, wrong) = StateFile::open::<History>(directory, SUBJECT);
        history.trim(SystemTime::now());
        let chronicle = Chronicle {
            file,
            history,
            marks: BTreeMap::new(),
            looked: None,
            written: Instant::now(),
        };
        (chronicle, wrong)
    }

    fn refused(&mut self, place: &Place, wanted_bytes: u64, now: SystemTime) {
        self.history
            .refused(subject(place), &place.tenant, wanted_bytes, now);
    }

    /// What `place` was like since the last look.
    fn note(&mut self, place: &Place, mut sample: Sample, elapsed: Duration, now: SystemTime) {
        let mark = self.marks.entry(place.account.clone()).or_default();
        if sample.peak_bytes <= *mark {
            sample.peak_bytes = 0;
        } else {
            *mark = sample.peak_bytes;
        }
        self.history
            .note(subject(place), &place.tenant, sample, elapsed, now);
    }

    /// The time since the last look, as far as somebody was looking.
    fn elapsed(&mut self, now: Instant) -> Duration {
        let since = self
            .looked
            .replace(now)
            .map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        if since > LONGEST_LOOK {
            Duration::ZERO
        } else {
            since
        }
    }

    /// Writes the file when it is time. The message, told once, is that of the write before.
    fn write_sometimes(&mut self, now: Instant) -> Option<String> {
        if self.file.is_writing() {
            return None;
        }
        let before = self.file.outcome();
        if now.saturating_duration_since(self.written) >= EVERY {
            self.written = now;
            self.file.begin(&self.history);
        }
        self.file.news(before)
    }

    /// Writes the file and waits for it.
    pub fn write_now(&mut self) -> Result<(), String> {
        self.file.outcome(); // of no matter now
        self.file.write_now(&self.history)
    }
}

/// What an account's use is told of. A part counts for the whole it is carved from; jobs and containers come and go, their
/// tenant stays.
fn subject(place: &Place) -> &str {
    match (&place.carved_from, &place.lives_in) {
        (Some(whole), _) => whole,
        (None, Some(_)) => &place.tenant,
        (None, None) => &place.account,
    }
}

impl Core {
    /// Takes down what every account uses, after a reading.
    pub fn chronicle(&mut self, now: Instant) {
        let at = SystemTime::now();
        let elapsed = self.chronicle.elapsed(now);
        self.chronicle
            .marks
            .retain(|account, _| self.places.contains_key(account));
        // What parts use is use of the whole they were carved from.
        let mut parts: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, sample) in self.state.samples(at) {
            if let Some(whole) = self
                .places
                .get(name)
                .and_then(|place| place.carved_from.as_deref())
            {
                let used = parts.entry(whole).or_default();
                *used = used.saturating_add(sample.used_bytes);
            }
        }
        for (name, mut sample) in self.state.samples(at) {
            let Some(place) = self.places.get(name).filter(|place| place.carved_from.is_none()) else {
                continue;
            };
            let of_parts = parts.get(name).copied().unwrap_or(0);
            sample.used_bytes = sample.used_bytes.saturating_add(of_parts);
            self.chronicle.note(place, sample, elapsed, at);
        }
        if let Some(what) = self.chronicle.write_sometimes(now) {
            self.apply(Event::Fault { what });
        }
    }

    /// An account is about to close; how far it got since the last look would be lost.
    pub fn chronicle_end_of(&mut self, account: &str) {
        let Some(place) = self
            .places
            .get(account)
            .filter(|place| place.carved_from.is_none())
        else {
            return;
        };
        let most = self
            .ledgers
            .read(account)
            .iter()
            .map(|reading| reading.peak_bytes)
            .max();
        let cap = self
            .grants
            .get(account)
            .into_iter()
            .flatten()
            .map(|granted| granted.cap_bytes)
            .max();
        let sample = Sample {
            peak_bytes: most.unwrap_or(0).min(cap.unwrap_or(0)),
            ..Sample::default()
        };
        self.chronicle
            .note(place, sample, Duration::ZERO, SystemTime::now());
    }

    /// An allocation was refused at a cap. What was in use is at most what the account may have, whatever its words say; how
    /// much more was asked for is the program's own word, up to what tenants may have of the device.
    pub fn chronicle_refusal(&mut self, account: &str, device: usize, refusal: &Refusal) {
        let Some(place) = self.places.get(account).filter(|_| refusal.reason == "cap") else {
            return;
        };
        let cap = self.grants.get(account).and_then(|granted| granted.get(device));
        let used = refusal.used_bytes.min(cap.map_or(0, |granted| granted.cap_bytes));
        let wanted = used
            .saturating_add(refusal.asked_bytes)
            .min(self.state.usable(device));
        self.chronicle.refused(place, wanted, refusal.at);
    }

    /// Writes what there is, at the end.
    pub fn end_chronicle(&mut self) {
        if let Err(what) = self.chronicle.write_now() {
            tracing::warn!("{what}");
        }
    }

    /// Answers `recommend`: about a tenant or account, or all.
    pub fn recommend(&mut self, wanted: Option<&str>) -> Result<Recommendations, Failure> {
        self.reap();
        self.answer_bells();
        self.read_ledgers();
        self.chronicle(Instant::now());
        let devices = 0..self.inventory.devices.len();
        let smallest = devices.map(|device| self.state.usable(device)).min();
        let of = |name: &str, tenant: &str| wanted.is_none_or(|wanted| wanted == name || wanted == tenant);
        let told: Vec<Recommendation> = self
            .chronicle
            .history
            .subjects()
            .filter(|(name, subject)| of(name, &subject.tenant))
            .map(|(name, subject)| {
                self.recommendation(name, &subject.tenant, subject.advice(smallest.unwrap_or(0)))
            })
            .collect();
        if let Some(wanted) = wanted
            && told.is_empty()
        {
            self.known_target(wanted)?; // an error names who there is
        }
        Ok(Recommendations {
            schema: SCHEMA.into(),
            recommendations: told,
        })
    }

    fn recommendation(&self, name: &str, tenant: &str, advice: Advice) -> Recommendation {
        let place = self.places.get(name).cloned();
        let place = place.unwrap_or_else(|| self.example_of(name));
        let granted = self.grants.get(name).cloned();
        let granted = granted.unwrap_or_else(|| self.grants_of(&place));
        let devices = self.inventory.devices.iter().zip(granted);
        Recommendation {
            tenant: tenant.into(),
            account: name.into(),
            days: advice.days,
            used_seconds: advice.held.as_secs(),
            idle_seconds: advice.idle.as_secs(),
            peak_bytes: advice.peak_bytes,
            p99_bytes: advice.p99_bytes,
            refusals_total: advice.refusals,
            wanted_bytes: Some(advice.wanted_bytes).filter(|bytes| *bytes > 0),
            devices: devices
                .map(|(device, granted)| Device {
                    index: device.index,
                    cap_bytes: granted.cap_bytes,
                })
                .collect(),
            memory_bytes: advice.cap.ok(),
            lacks: advice.cap.err().map(|Lacks::Time| "time".into()),
        }
    }
}
