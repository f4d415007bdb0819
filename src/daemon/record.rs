//! The daemon's own record, `RUN/state`: what the next daemon must know and no descriptor tells. A line per entry, each with
//! its checksum, appended before what it describes takes effect; the last line about a key counts. Read by `adopt.rs`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ledger::SlotIndex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::step::step;
use crate::admission::process::Identity;

/// Version of the file; a newer one is not read.
const VERSION: u32 = 1;
/// A file is written anew once it is longer than this and than four times what still counts.
const WORTH_REWRITING: u64 = 64 << 10;

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// An account, by its number.
    Account(u32),
    /// The client in a slot of that account.
    Client(u32, SlotIndex),
    /// The launch that this process heads.
    Launch(Identity),
    /// What `stint set` changed.
    Overrides,
    /// What `stint drain` closed.
    Drains,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Account(number) => write!(f, "account {number}"),
            Key::Client(number, slot) => write!(f, "client {number} {}", slot.get()),
            Key::Launch(head) => write!(f, "launch {} {}", head.pid, head.start_time),
            Key::Overrides => f.write_str("overrides 0"),
            Key::Drains => f.write_str("drains 0"),
        }
    }
}

impl Key {
    /// The key at the beginning of `text`, and what follows it.
    fn read(text: &str) -> Option<(Key, &str)> {
        let mut words = text.splitn(4, ' ');
        let (kind, first) = (words.next()?, words.next()?);
        let after_first = || {
            text[kind.len() + 1..]
                .split_once(' ')
                .map_or("", |(_, value)| value)
        };
        match kind {
            "account" => Some((Key::Account(first.parse().ok()?), after_first())),
            "overrides" => Some((Key::Overrides, after_first())),
            "drains" => Some((Key::Drains, after_first())),
            "client" => {
                let slot = SlotIndex::client(words.next()?.parse().ok()?)?;
                Some((Key::Client(first.parse().ok()?, slot), words.next().unwrap_or("")))
            }
            "launch" => {
                let head = Identity {
                    pid: first.parse().ok()?,
                    start_time: words.next()?.parse().ok()?,
                };
                Some((Key::Launch(head), words.next().unwrap_or("")))
            }
            _ => None,
        }
    }
}

/// What the file said when it was taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// There was none, or one of an earlier boot.
    Fresh,
    Whole,
    /// So many lines made no sense; the others count.
    Damaged(usize),
    /// Written by a later version: nothing of it counts.
    Newer(u32),
}

#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}: nobody new is admitted until it can be written", path = path.display())]
pub struct RecordError {
    path: PathBuf,
    error: io::Error,
}

/// The record, open for writing.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    boot: String,
    file: File,
    /// Where the next line goes.
    end: u64,
    /// What counts, as JSON.
    entries: BTreeMap<Key, String>,
    /// The file says something else than `entries`: it is to be written anew.
    stale: bool,
}

impl Record {
    /// Takes over what a former daemon left at `path`. The file is changed by the first [`Record::put`] or
    /// [`Record::rewrite`] only.
    pub fn take_over(path: &Path) -> io::Result<(Record, Condition)> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let file = open(path, false)?;
        let mut bytes = vec![0; file.metadata()?.len() as usize];
        file.read_exact_at(&mut bytes, 0)?;
        let mut record = Record {
            path: path.into(),
            boot: boot.trim().into(),
            file,
            end: bytes.len() as u64,
            entries: BTreeMap::new(),
            stale: false,
        };
        let condition = record.read(&bytes);
        record.stale = condition != Condition::Whole;
        Ok((record, condition))
    }

    fn read(&mut self, bytes: &[u8]) -> Condition {
        let mut damaged = 0;
        let lines = bytes
            .strip_suffix(b"\n")
            .unwrap_or(bytes)
            .split(|byte| *byte == b'\n');
        let mut lines = lines.map(unsealed);
        if bytes.is_empty() {
            return Condition::Fresh;
        }
        match lines.next().flatten().map(|head| self.judge(head)) {
            Some(Condition::Whole) => {}
            None | Some(Condition::Damaged(_)) => damaged += 1,
            Some(other) => return other,
        }
        for line in lines {
            let change = line.and_then(|line| {
                let (verb, rest) = line.split_once(' ')?;
                let (key, value) = Key::read(rest)?;
                match verb {
                    "put" => drop(self.entries.insert(key, value.into())),
                    "drop" => drop(self.entries.remove(&key)),
                    _ => return None,
                }
                Some(())
            });
            damaged += usize::from(change.is_none());
        }
        if damaged > 0 || !bytes.ends_with(b"\n") {
            return Condition::Damaged(damaged);
        }
        Condition::Whole
    }

    fn judge(&self, head: &str) -> Condition {
        let mut words = head.split(' ');
        let version = match (
            words.next(),
            words.next().and_then(|word| word.parse::<u32>().ok()),
        ) {
            (Some("stint.state"), Some(version)) => version,
            _ => return Condition::Damaged(1),
        };
        if words.next() != Some(&self.boot) {
            return Condition::Fresh;
        }
        if version > VERSION {
            return Condition::Newer(version);
        }
        Condition::Whole
    }

    /// Which boot of the machine this is.
    pub fn boot(&self) -> &str {
        &self.boot
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.stale = true;
    }

    /// The one entry of a key that has no other.
    pub fn one<T: DeserializeOwned>(&self, key: Key) -> Option<T> {
        serde_json::from_str(self.entries.get(&key)?).ok()
    }

    /// The entries that can be read as `T`, among those whose key `wanted` takes.
    pub fn all<K, T: DeserializeOwned>(&self, wanted: impl Fn(Key) -> Option<K>) -> Vec<(K, T)> {
        let read = |(key, value): (&Key, &String)| Some((wanted(*key)?, serde_json::from_str(value).ok()?));
        self.entries.iter().filter_map(read).collect()
    }

    /// Says something about `key`. After an error nothing has changed.
    pub fn put(&mut self, key: Key, value: &impl Serialize) -> Result<(), RecordError> {
        let json = serde_json::to_string(value).map_err(|error| self.failed(error.into()))?;
        step("record: put");
        let before = self.entries.insert(key, json.clone());
        let line = sealed(&format!("put {key} {json}"));
        let written = if self.is_to_be_rewritten() {
            self.rewrite()
        } else {
            self.append(&line)
        };
        if written.is_err() {
            match before {
                Some(before) => self.entries.insert(key, before),
                None => self.entries.remove(&key),
            };
        }
        step("record: put done");
        written
    }

    /// Takes back what was said about `key`. Where that cannot be written, the file still names something that has ended,
    /// which the next daemon will find out; it is tried again with the next entry.
    pub fn remove(&mut self, key: Key) {
        if self.entries.remove(&key).is_none() {
            return;
        }
        step("record: drop");
        let line = sealed(&format!("drop {key}"));
        if self.stale || self.append(&line).is_err() {
            self.stale = true;
        }
        step("record: drop done");
    }

    fn is_to_be_rewritten(&self) -> bool {
        let live = || {
            self.entries
                .values()
                .map(|value| value.len() as u64 + 40)
                .sum::<u64>()
        };
        self.stale || (self.end > WORTH_REWRITING && self.end > 4 * live())
    }

    fn append(&mut self, line: &str) -> Result<(), RecordError> {
        if let Err(error) = self.file.write_all_at(line.as_bytes(), self.end) {
            // Half a line is no line; without it the next one begins where it should.
            self.stale |= self.file.set_len(self.end).is_err();
            return Err(self.failed(error));
        }
        self.end += line.len() as u64;
        Ok(())
    }

    /// Writes the file anew, with what counts alone, in one step.
    pub fn rewrite(&mut self) -> Result<(), RecordError> {
        let mut text = sealed(&format!("stint.state {VERSION} {}", self.boot));
        for (key, json) in &self.entries {
            text += &sealed(&format!("put {key} {json}"));
        }
        let fresh = self.path.with_extension("new");
        let write = || {
            let file = open(&fresh, true)?;
            file.write_all_at(text.as_bytes(), 0)?;
            step("record: written anew");
            fs::rename(&fresh, &self.path)?;
            Ok(file)
        };
        self.file = write().map_err(|error| self.failed(error))?;
        step("record: renamed");
        self.end = text.len() as u64;
        self.stale = false;
        Ok(())
    }

    /// Whether the file is still the one in the directory.
    pub fn is_in_place(&self) -> bool {
        let ours = self.file.metadata().map(|file| (file.dev(), file.ino()));
        let there = fs::metadata(&self.path).map(|file| (file.dev(), file.ino()));
        matches!((ours, there), (Ok(ours), Ok(there)) if ours == there)
    }

    fn failed(&self, error: io::Error) -> RecordError {
        RecordError {
            path: self.path.clone(),
            error,
        }
    }
}

fn open(path: &Path, empty: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(empty);
    options.mode(0o600).open(path)
}

/// A line: checksum in eight digits, a blank, the text, an end of line.
fn sealed(text: &str) -> String {
    format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes()))
}

/// The text of a line whose checksum is right.
fn unsealed(line: &[u8]) -> Option<&str> {
    let (sum, text) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    (u32::from_str_radix(sum, 16) == Ok(crc32fast::hash(text.as_bytes()))).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(pid: u32) -> Key {
        Key::Launch(Identity { pid, start_time: 5 })
    }

    fn path(dir: &tempfile::TempDir) -> PathBuf {
        dir.path().join("state")
    }

    fn launches(record: &Record) -> Vec<(u32, String)> {
        record.all(|key| match key {
            Key::Launch(head) => Some(head.pid),
            _ => None,
        })
    }

    /// A record with three entries, two of which count.
    fn written(dir: &tempfile::TempDir) -> Vec<u8> {
        let (mut record, condition) = Record::take_over(&path(dir)).unwrap();
        assert_eq!(condition, Condition::Fresh);
        let slot = SlotIndex::client(9).unwrap();
        record.put(Key::Client(3, slot), &"c\nd e").unwrap();
        record.put(head(1), &"one").unwrap();
        record.put(head(2), &"two").unwrap();
        record.remove(head(1));
        fs::read(path(dir)).unwrap()
    }

    #[test]
    fn what_was_said_last_counts_for_the_next_daemon() {
        let dir = tempfile::tempdir().unwrap();
        written(&dir);
        let (record, condition) = Record::take_over(&path(&dir)).unwrap();
        assert_eq!(condition, Condition::Whole);
        assert_eq!(launches(&record), [(2, "two".into())]);
        let clients: Vec<((u32, usize), String)> = record.all(|key| match key {
            Key::Client(account, slot) => Some((account, slot.get())),
            _ => None,
        });
        assert_eq!(clients, [((3, 9), "c\nd e".into())]);
        assert_eq!(fs::metadata(path(&dir)).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn cut_off_anywhere_the_whole_lines_before_count() {
        let dir = tempfile::tempdir().unwrap();
        let whole = written(&dir);
        for length in 0..whole.len() {
            fs::write(path(&dir), &whole[..length]).unwrap();
            let (mut record, condition) = Record::take_over(&path(&dir)).unwrap();
            let before = launches(&record);
            assert!(
                before.iter().all(|(pid, _)| [1, 2].contains(pid)),
                "{length}: {before:?}"
            );
            let at_an_end = length > 0 && whole[length - 1] == b'\n';
            assert_eq!(condition == Condition::Whole, at_an_end, "{length}");
            // What is written next is read again, whatever was left of the line before.
            record.put(head(7), &"seven").unwrap();
            let (record, condition) = Record::take_over(&path(&dir)).unwrap();
            assert_eq!(condition, Condition::Whole, "{length}");
            assert_eq!(launches(&record).len(), before.len() + 1, "{length}");
        }
    }

    #[test]
    fn a_flipped_bit_costs_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let whole = written(&dir);
        for byte in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[byte] ^= 0x04;
            fs::write(path(&dir), &damaged).unwrap();
            let (record, condition) = Record::take_over(&path(&dir)).unwrap();
            assert!(
                matches!(condition, Condition::Damaged(1..=2)),
                "{byte}: {condition:?}"
            );
            assert!(launches(&record).len() <= 2, "{byte}");
        }
    }

    #[test]
    fn another_boot_and_a_later_version_say_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let whole = String::from_utf8(written(&dir)).unwrap();
        let (_, rest) = whole.split_once('\n').unwrap();
        let (record, _) = Record::take_over(&path(&dir)).unwrap();
        for (version, boot, expected) in [
            (VERSION, "another", Condition::Fresh),
            (VERSION + 1, &*record.boot, Condition::Newer(VERSION + 1)),
        ] {
            let head = sealed(&format!("stint.state {version} {boot}"));
            fs::write(path(&dir), head + rest).unwrap();
            let (record, condition) = Record::take_over(&path(&dir)).unwrap();
            assert_eq!(condition, expected);
            assert!(launches(&record).is_empty());
        }
    }

    #[test]
    fn a_full_disk_is_an_error_and_leaves_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        written(&dir);
        let (mut record, _) = Record::take_over(&path(&dir)).unwrap();
        record.file = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/full")
            .unwrap();
        let failure = record.put(head(4), &"four").unwrap_err().to_string();
        assert!(failure.contains("No space left"), "{failure}");
        assert_eq!(launches(&record), [(2, "two".into())]);
        let (record, _) = Record::take_over(&path(&dir)).unwrap();
        assert_eq!(launches(&record), [(2, "two".into())]);
    }

    #[test]
    fn a_record_does_not_grow_with_what_came_and_went() {
        let dir = tempfile::tempdir().unwrap();
        let (mut record, _) = Record::take_over(&path(&dir)).unwrap();
        for pid in 1..5000 {
            record.put(head(pid), &"x".repeat(100)).unwrap();
            record.remove(head(pid));
        }
        assert!(fs::metadata(path(&dir)).unwrap().len() < 2 * WORTH_REWRITING);
    }
}
