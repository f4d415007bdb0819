//! What `stint set` changed and `stint drain` closed, for after a reboot. The record (`record.rs`) goes with the run directory
//! and counts as long as it is there; this is `settings.json` in the state directory, written a second later in a thread of
//! its own, and when the daemon ends.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::core::Core;
use super::state_file::{StateFile, Subject};
use crate::config::DEFAULT_TENANT;
use crate::state::{Drains, Event, Overrides};

const SUBJECT: Subject = Subject {
    key: "settings",
    unkept: "what `set` changes and `drain` closes ends with a reboot",
    lost: "what `set` changed and `drain` closed before a reboot is lost",
};

/// What is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The boot in which it was written: what was set for an account of a launch ends with it.
    pub boot: String,
    pub overrides: Overrides,
    pub drains: Drains,
}

/// The file, and what it says.
#[derive(Debug)]
pub(super) struct Settings {
    file: StateFile,
    /// What it says, or will when what was begun is written.
    kept: Kept,
}

impl Settings {
    /// Takes over what an earlier daemon wrote to `directory`; the message says what is wrong with that.
    pub fn open(directory: Option<&Path>) -> (Settings, Option<String>) {
        let (file, kept, wrong) = StateFile::open(directory, SUBJECT);
        (Settings { file, kept }, wrong)
    }

    /// What it says.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Begins to write `now` where that is news and no write is under way. The message, told once, is that of the write before.
    fn keep(&mut self, now: Kept) -> Option<String> {
        if self.file.is_writing() {
            return None;
        }
        let before = self.file.outcome();
        if matches!(before, Some(Err(_))) || now != self.kept {
            self.file.begin(&now);
            self.kept = now;
        }
        self.file.news(before)
    }

    /// Writes `now` where that is news and waits for it.
    fn keep_now(&mut self, now: Kept) -> Option<String> {
        let before = self.file.outcome();
        if !matches!(before, Some(Err(_))) && now == self.kept {
            return None;
        }
        let written = self.file.write_now(&now);
        self.kept = now;
        self.file.news(Some(written))
    }
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
        if let Some(what) = self.settings.keep(self.settings_now()) {
            self.apply(Event::Fault { what });
        }
    }

    /// The same, at once.
    pub fn keep_settings_now(&mut self) {
        if let Some(what) = self.settings.keep_now(self.settings_now()) {
            self.apply(Event::Fault { what });
        }
    }
}
