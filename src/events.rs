//! The node's event log, `stint.event/v1`: bounded, numbered without gaps. Filled by `daemon.rs`, read by `stint events`.

use std::collections::VecDeque;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// Value of `schema`.
pub const SCHEMA: &str = "stint.event/v1";

/// Events kept; the oldest goes first.
pub const KEPT: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A process became a client.
    Admitted,
    /// A client ended, or its image was replaced.
    Left,
    /// An allocation, or an attach, was turned down.
    Refused,
    Throttled,
    /// What a dead client held was given back.
    Reclaimed,
    /// A process holds a device without being a client.
    Unattached,
    /// Ledger and device disagree.
    Drift,
    Fault,
    Config,
    State,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub schema: String,
    /// 1 for the first event of this daemon, then one more each.
    pub seq: u64,
    /// RFC 3339.
    pub at: String,
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Index of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u32>,
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub detail: serde_json::Map<String, serde_json::Value>,
}

impl Event {
    /// An event of `kind` about nobody in particular; number and time are given by [`Log::add`].
    pub fn new(kind: Kind) -> Event {
        Event {
            schema: SCHEMA.into(),
            seq: 0,
            at: String::new(),
            kind,
            tenant: None,
            account: None,
            pid: None,
            device: None,
            detail: serde_json::Map::new(),
        }
    }

    pub fn account(mut self, tenant: &str, account: &str) -> Event {
        self.tenant = Some(tenant.into());
        self.account = Some(account.into());
        self
    }

    pub fn pid(mut self, pid: u32) -> Event {
        self.pid = Some(pid);
        self
    }

    pub fn device(mut self, index: u32) -> Event {
        self.device = Some(index);
        self
    }

    pub fn detail(mut self, key: &str, value: impl Into<serde_json::Value>) -> Event {
        self.detail.insert(key.into(), value.into());
        self
    }
}

/// The last [`KEPT`] events.
#[derive(Debug, Default)]
pub struct Log {
    kept: VecDeque<Event>,
    next: u64,
}

impl Log {
    /// Numbers and dates `event`, keeps it, and returns it as kept.
    pub fn add(&mut self, mut event: Event, now: SystemTime) -> &Event {
        self.next += 1;
        event.seq = self.next;
        event.at = timestamp(now);
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(event);
        &self.kept[self.kept.len() - 1]
    }

    /// Oldest first.
    pub fn kept(&self) -> impl Iterator<Item = &Event> {
        self.kept.iter()
    }
}

/// RFC 3339 in UTC with milliseconds.
pub fn timestamp(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_bounded_and_numbered_without_gaps() {
        let mut log = Log::default();
        for pid in 0..(KEPT as u32 + 10) {
            log.add(Event::new(Kind::Admitted).pid(pid), SystemTime::UNIX_EPOCH);
        }
        let kept: Vec<u64> = log.kept().map(|event| event.seq).collect();
        assert_eq!(kept.len(), KEPT);
        assert!(kept.windows(2).all(|two| two[1] == two[0] + 1));
        assert_eq!(kept.last(), Some(&(KEPT as u64 + 10)));
    }

    #[test]
    fn an_event_carries_only_what_is_known() {
        let mut log = Log::default();
        let event = Event::new(Kind::Refused)
            .account("a", "a/b")
            .pid(7)
            .device(1)
            .detail("reason", "cap");
        let text = serde_json::to_string(log.add(event, SystemTime::UNIX_EPOCH)).unwrap();
        assert_eq!(
            text,
            r#"{"schema":"stint.event/v1","seq":1,"at":"1970-01-01T00:00:00.000Z","kind":"refused","tenant":"a","account":"a/b","pid":7,"device":1,"detail":{"reason":"cap"}}"#
        );
        let bare = serde_json::to_string(log.add(Event::new(Kind::Fault), SystemTime::UNIX_EPOCH)).unwrap();
        assert!(!bare.contains("pid") && !bare.contains("detail"));
    }
}
