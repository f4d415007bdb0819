//! What `stint set` changed and `stint drain` closed, for after a reboot. The record (`record.rs`) goes with the run directory
//! and counts as long as it is there; this is `settings.json` in the state directory, written a second later in a thread of
//! its own, and when the daemon ends.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use serde::{Deserialize, Serialize};

use super::chronicle::write;
use super::core::Core;
use crate::config::DEFAULT_TENANT;
use crate::state::{Drains, Event, Overrides};

const FILE: &str = "settings.json";
/// Version of the file; a newer one is neither read nor overwritten.
const VERSION: u32 = 1;

/// What is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The boot in which it was written: what was set for an account of a launch ends with it.
    pub boot: String,
    pub overrides: Overrides,
    pub drains: Drains,
}

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    settings: Kept,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// The file, and what it says.
#[derive(Debug)]
pub(super) struct Settings {
    /// `None`: it is kept nowhere.
    path: Option<PathBuf>,
    /// What it says, or will when `writing` is done.
    kept: Kept,
    writing: Option<JoinHandle<io::Result<()>>>,
    /// Why it could not be written, as it was told.
    unwritten: Option<String>,
}

impl Settings {
    /// Takes over what an earlier daemon wrote to `directory`; the message says what is wrong with that.
    pub fn open(directory: Option<&Path>) -> (Settings, Option<String>) {
        let mut settings = Settings {
            path: directory.map(|directory| directory.join(FILE)),
            kept: Kept::default(),
            writing: None,
            unwritten: None,
        };
        let wrong = settings.take_over().err();
        (settings, wrong)
    }

    /// What it says.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    fn take_over(&mut self) -> Result<(), String> {
        let Some(path) = self.path.clone() else {
            return Ok(());
        };
        let shown = path.display();
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                self.path = None;
                return Err(format!(
                    "{shown}: {error}: what `set` changes and `drain` closes ends with a reboot"
                ));
            }
        };
        if let Ok(Version { version }) = serde_json::from_slice(&text)
            && version > VERSION
        {
            self.path = None;
            return Err(format!(
                "{shown}: written by a later version ({version}, this one knows {VERSION}): it is left alone, and what `set` \
                 changes and `drain` closes ends with a reboot"
            ));
        }
        match serde_json::from_slice::<File>(&text) {
            Ok(file) => self.kept = file.settings,
            Err(error) => {
                let aside = path.with_extension("json.damaged");
                let moved = std::fs::rename(&path, &aside).map_or_else(
                    |error| format!("it cannot be put aside ({error}) and will be overwritten"),
                    |()| format!("it is put aside as {}", aside.display()),
                );
                return Err(format!(
                    "{shown}: {error}: what `set` changed and `drain` closed before a reboot is lost; {moved}"
                ));
            }
        }
        Ok(())
    }

    /// Begins to write `now` where that is news and no write is under way. An error is that of the write before.
    fn keep(&mut self, now: Kept) -> Result<(), String> {
        if self
            .writing
            .as_ref()
            .is_some_and(|writing| !writing.is_finished())
        {
            return Ok(());
        }
        let before = self.join();
        if before.is_ok() && now == self.kept {
            return Ok(());
        }
        if let Some(path) = self.path.clone() {
            let text = text(&now);
            let thread = std::thread::Builder::new().name("settings".into());
            self.writing = thread.spawn(move || write(&path, &text?)).ok();
        }
        self.kept = now;
        before
    }

    /// Writes `now` where that is news and waits for it.
    fn keep_now(&mut self, now: Kept) -> Result<(), String> {
        if self.join().is_ok() && now == self.kept {
            return Ok(());
        }
        let Some(path) = &self.path else { return Ok(()) };
        let written = text(&now).and_then(|text| write(path, &text));
        self.kept = now;
        written.map_err(|error| self.failed(&error))
    }

    fn join(&mut self) -> Result<(), String> {
        let done = self.writing.take().map_or(Ok(()), |writing| {
            writing
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the thread that writes it panicked")))
        });
        done.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> String {
        let shown = self.path.as_deref().unwrap_or(Path::new(FILE)).display();
        format!("{shown}: {error}: what `set` changed and `drain` closed last ends with a reboot")
    }
}

fn text(kept: &Kept) -> io::Result<String> {
    let file = File {
        version: VERSION,
        settings: kept.clone(),
    };
    Ok(serde_json::to_string(&file)?)
}

impl Core {
    /// What held when the file was written, as far as it is about somebody who is still meant.
    pub fn settings_before(&self) -> (Overrides, Drains) {
        let Kept {
            boot,
            overrides,
            drains,
        } = self.settings.kept().clone();
        let mut overrides = overrides;
        if boot != self.record.boot() {
            // Accounts of launches, jobs and containers end with the machine, and tenants that `stint run -t` made with them.
            overrides.retain(|target| {
                let tenant = target.split('/').next().unwrap_or(target);
                let is_standing = tenant == DEFAULT_TENANT || self.config.tenants.contains_key(tenant);
                is_standing && !target.contains(['#', ':', '('])
            });
        }
        (overrides, drains)
    }

    fn settings_now(&self) -> Kept {
        Kept {
            boot: self.record.boot().into(),
            overrides: self.overrides.clone(),
            drains: self.state.drains.clone(),
        }
    }

    /// Keeps what is in force now for after a reboot. Called once a second.
    pub fn keep_settings(&mut self) {
        match self.settings.keep(self.settings_now()) {
            Ok(()) if self.settings.writing.is_none() => self.settings.unwritten = None,
            Ok(()) => {}
            Err(what) => self.tell_unkept(what),
        }
    }

    /// The same, at once.
    pub fn keep_settings_now(&mut self) {
        if let Err(what) = self.settings.keep_now(self.settings_now()) {
            self.tell_unkept(what);
        }
    }

    fn tell_unkept(&mut self, what: String) {
        if self.settings.unwritten.replace(what.clone()).as_ref() != Some(&what) {
            self.apply(Event::Fault { what });
        }
    }
}
