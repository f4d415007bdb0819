//! Feeds the history of accounts (`src/history.rs`) once a tick and keeps it in a file, `history.json` in the state
//! directory: systemd's, so that it outlives a reboot, else the run directory. `stint recommend` is answered from it. What
//! a daemon killed at once forgets is the last five minutes.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use super::core::Core;
use crate::admission::identity::Place;
use crate::exit::Failure;
use crate::history::{Advice, History, Lacks, Sample};
use crate::protocol::recommend::{Device, Recommendation, Recommendations, SCHEMA};
use crate::state::{Event, Refusal};

const FILE: &str = "history.json";
/// Version of the file; a newer one is neither read nor overwritten.
const VERSION: u32 = 1;
/// Time between two writes.
const EVERY: Duration = Duration::from_secs(300);
/// A longer time between two looks is one in which nobody looked: the machine slept.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    history: History,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Chronicle {
    /// `None`: it is kept nowhere.
    path: Option<PathBuf>,
    history: History,
    /// The high-water marks that were seen already, so that none counts for a later day.
    marks: BTreeMap<String, u64>,
    looked: Option<Instant>,
    written: Instant,
    /// The last write: a slow disk holds up nobody.
    writing: Option<JoinHandle<io::Result<()>>>,
    /// Why it could not be written, as it was told.
    unwritten: Option<String>,
}

impl Chronicle {
    /// Takes over what an earlier daemon wrote to `directory`; the message says what is wrong with that.
    pub fn open(directory: Option<&Path>) -> (Chronicle, Option<String>) {
        let mut chronicle = Chronicle {
            path: directory.map(|directory| directory.join(FILE)),
            history: History::default(),
            marks: BTreeMap::new(),
            looked: None,
            written: Instant::now(),
            writing: None,
            unwritten: None,
        };
        let wrong = chronicle.take_over().err();
        chronicle.history.trim(SystemTime::now());
        (chronicle, wrong)
    }

    fn take_over(&mut self) -> Result<(), String> {
        let Some(path) = self.path.clone() else {
            return Ok(());
        };
        let shown = path.display();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                self.path = None;
                return Err(format!("{shown}: {error}: the history is kept in memory only"));
            }
        };
        if let Ok(Version { version }) = serde_json::from_slice(&text)
            && version > VERSION
        {
            self.path = None;
            return Err(format!(
                "{shown}: written by a later version ({version}, this one knows {VERSION}): it is left alone, and the history \
                 kept in memory only"
            ));
        }
        match serde_json::from_slice::<File>(&text) {
            Ok(file) => self.history = file.history,
            Err(error) => {
                let aside = path.with_extension("json.damaged");
                let moved = fs::rename(&path, &aside).map_or_else(
                    |error| format!("it cannot be put aside ({error}) and will be overwritten"),
                    |()| format!("it is put aside as {}", aside.display()),
                );
                return Err(format!("{shown}: {error}: the history begins anew; {moved}"));
            }
        }
        Ok(())
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

    /// Writes the file in a thread of its own when it is time. Returns what became of the write before, once.
    fn write_sometimes(&mut self, now: Instant) -> Option<Result<(), String>> {
        let finished = self.writing.as_ref().is_some_and(JoinHandle::is_finished);
        let before = if finished { self.join() } else { None };
        if self.writing.is_none() && now.saturating_duration_since(self.written) >= EVERY {
            self.written = now;
            if let (Some(path), Ok(text)) = (self.path.clone(), self.text()) {
                let thread = std::thread::Builder::new().name("history".into());
                self.writing = thread.spawn(move || write(&path, &text)).ok();
            }
        }
        before
    }

    /// Writes the file and waits for it.
    pub fn write_now(&mut self) -> Result<(), String> {
        self.join(); // what became of the one before is of no matter now
        let (Some(path), Ok(text)) = (&self.path, self.text()) else {
            return Ok(());
        };
        write(path, &text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn text(&self) -> serde_json::Result<String> {
        serde_json::to_string(&File {
            version: VERSION,
            history: self.history.clone(),
        })
    }

    /// Waits for the write under way; `None`: there is none.
    fn join(&mut self) -> Option<Result<(), String>> {
        let panicked = |_| Err(io::Error::other("the thread that writes it panicked"));
        let done = self.writing.take()?.join().unwrap_or_else(panicked);
        let shown = || self.path.as_deref().unwrap_or(Path::new(FILE)).display();
        Some(done.map_err(|error| format!("{}: {error}", shown())))
    }
}

/// The whole file in one step: what is there is always one that was written.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let fresh = path.with_extension("json.new");
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(fresh, path)
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
        match self.chronicle.write_sometimes(now) {
            None => {}
            Some(Ok(())) => self.chronicle.unwritten = None,
            Some(Err(what)) => self.tell_unwritten(what),
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

    fn tell_unwritten(&mut self, what: String) {
        if self.chronicle.unwritten.replace(what.clone()).as_ref() != Some(&what) {
            self.apply(Event::Fault { what });
        }
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
