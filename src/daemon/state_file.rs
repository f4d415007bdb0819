//! A value in a file of the state directory, which outlives a reboot where systemd gives one. The whole file is written in one
//! step, in a thread of its own, so that a slow disk holds up nobody; one that is damaged is put aside, one of a later version
//! left alone. `chronicle.rs` and `settings.rs` keep theirs in one each.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use serde::Serialize;
use serde::de::{DeserializeOwned, Error};
use serde_json::{Map, Value};

/// Version of the files; a newer one is neither read nor overwritten.
const VERSION: u64 = 1;

/// Which value it is, and what to say of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    /// Its key in the file, which is named after it.
    pub key: &'static str,
    /// Where it cannot be kept.
    pub unkept: &'static str,
    /// Where what was kept cannot be read.
    pub lost: &'static str,
}

/// See the module.
#[derive(Debug)]
pub(super) struct StateFile {
    subject: Subject,
    /// `None`: it is kept nowhere.
    path: Option<PathBuf>,
    writing: Option<JoinHandle<io::Result<()>>>,
    /// Why it could not be written, as it was told.
    unwritten: Option<String>,
}

impl StateFile {
    /// Takes over what an earlier daemon wrote to `directory`; the message says what is wrong with that.
    pub fn open<T: DeserializeOwned + Default>(
        directory: Option<&Path>,
        subject: Subject,
    ) -> (StateFile, T, Option<String>) {
        let mut file = StateFile {
            subject,
            path: directory.map(|directory| directory.join(subject.key).with_extension("json")),
            writing: None,
            unwritten: None,
        };
        match file.take_over() {
            Ok(value) => (file, value, None),
            Err(wrong) => (file, T::default(), Some(wrong)),
        }
    }

    fn take_over<T: DeserializeOwned + Default>(&mut self) -> Result<T, String> {
        let Some(path) = self.path.clone() else {
            return Ok(T::default());
        };
        let (shown, Subject { key, unkept, lost }) = (path.display(), self.subject);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(T::default()),
            Err(error) => {
                self.path = None;
                return Err(format!("{shown}: {error}: {unkept}"));
            }
        };
        let whole = serde_json::from_slice::<Map<String, Value>>(&text);
        let version = whole
            .as_ref()
            .ok()
            .and_then(|whole| whole.get("version")?.as_u64());
        if let Some(later) = version.filter(|version| *version > VERSION) {
            self.path = None;
            return Err(format!(
                "{shown}: written by a later version ({later}, this one knows {VERSION}): it is left alone, and {unkept}"
            ));
        }
        let value = whole.and_then(|mut whole| {
            let value = whole.remove(key).filter(|_| version.is_some());
            serde_json::from_value(value.ok_or_else(|| serde_json::Error::missing_field(key))?)
        });
        value.map_err(|error| {
            let aside = path.with_extension("json.damaged");
            let moved = fs::rename(&path, &aside).map_or_else(
                |error| format!("it cannot be put aside ({error}) and will be overwritten"),
                |()| format!("it is put aside as {}", aside.display()),
            );
            format!("{shown}: {error}: {lost}; {moved}")
        })
    }

    /// A write is under way.
    pub fn is_writing(&self) -> bool {
        self.writing
            .as_ref()
            .is_some_and(|writing| !writing.is_finished())
    }

    /// Begins to write `value`, after what was begun before.
    pub fn begin(&mut self, value: &impl Serialize) {
        let (text, thread) = (self.text(value), std::thread::Builder::new());
        if let Some(path) = self.path.clone() {
            let write = move || write(&path, &text?);
            self.writing = thread.name(self.subject.key.into()).spawn(write).ok();
        }
    }

    /// What became of the write that was begun last, once; waits for it where it is under way.
    pub fn outcome(&mut self) -> Option<Result<(), String>> {
        let panicked = |_| Err(io::Error::other("the thread that writes it panicked"));
        let done = self.writing.take()?.join().unwrap_or_else(panicked);
        Some(done.map_err(|error| self.failed(&error)))
    }

    /// Writes `value` and waits for it.
    pub fn write_now(&mut self, value: &impl Serialize) -> Result<(), String> {
        let Some(path) = &self.path else { return Ok(()) };
        let written = self.text(value).and_then(|text| write(path, &text));
        written.map_err(|error| self.failed(&error))
    }

    /// The message of `outcome`, where it was not told yet.
    pub fn news(&mut self, outcome: Option<Result<(), String>>) -> Option<String> {
        match outcome? {
            Ok(()) => {
                self.unwritten = None;
                None
            }
            Err(what) => (self.unwritten.replace(what.clone()).as_ref() != Some(&what)).then_some(what),
        }
    }

    fn text(&self, value: &impl Serialize) -> io::Result<String> {
        let (key, value) = (self.subject.key, serde_json::to_string(value)?);
        Ok(format!("{{\"version\":{VERSION},\"{key}\":{value}}}"))
    }

    fn failed(&self, error: &io::Error) -> String {
        let shown = self
            .path
            .as_deref()
            .unwrap_or(Path::new(self.subject.key))
            .display();
        format!("{shown}: {error}: {}", self.subject.unkept)
    }
}

/// The whole file in one step: what is there is always one that was written.
fn write(path: &Path, text: &str) -> io::Result<()> {
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
