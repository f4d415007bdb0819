//! What the state knows of one account or one process, for `stint why`.

use std::collections::VecDeque;
use std::time::SystemTime;

use super::{NodeState, Refusal};
use crate::protocol::node;

/// Denials remembered; the oldest goes first.
const REMEMBERED: usize = 256;

/// A process that was turned away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub pid: u32,
    pub at: SystemTime,
    pub user: String,
    pub reason: &'static str,
    pub message: String,
}

/// The last [`REMEMBERED`] of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Denials(VecDeque<Denial>);

impl Denials {
    pub fn add(&mut self, denial: Denial) {
        self.0.retain(|old| old.pid != denial.pid);
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(denial);
    }

    /// Its number has a client now: whoever had it before is gone.
    pub fn forget(&mut self, pid: u32) {
        self.0.retain(|old| old.pid != pid);
    }
}

/// How a process stands to the node. Devices by index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Client {
        account: String,
        user: String,
        command: String,
        since: SystemTime,
        devices: Vec<(u32, u64)>,
    },
    Stranger {
        user: Option<String>,
        command: Option<String>,
        since: SystemTime,
        devices: Vec<(u32, Option<u64>)>,
    },
    Denied(Denial),
}

impl NodeState {
    /// What is known of the process `pid`.
    pub fn subject(&self, pid: u32) -> Option<Subject> {
        if let Some(client) = self.clients.values().find(|client| client.identity.pid == pid) {
            return Some(Subject::Client {
                account: client.account.clone(),
                user: client.user.clone(),
                command: client.command.clone(),
                since: client.started_at,
                devices: self.held_by(client),
            });
        }
        let strange: Vec<_> = self.strangers.iter().filter(|((of, _), _)| *of == pid).collect();
        if let Some((_, first)) = strange.first() {
            let held = |((_, place), stranger): &(&(u32, usize), &super::Stranger)| {
                (self.index(*place), stranger.used_bytes)
            };
            return Some(Subject::Stranger {
                user: first.user.clone(),
                command: first.command.clone(),
                since: first.since,
                devices: strange.iter().map(held).collect(),
            });
        }
        let denied = self.denials.0.iter().find(|denial| denial.pid == pid);
        denied.cloned().map(Subject::Denied)
    }

    /// What a client holds of each device it holds anything of.
    pub(super) fn held_by(&self, client: &super::Client) -> Vec<(u32, u64)> {
        let Some(account) = self.accounts.get(&client.account) else {
            return Vec::new();
        };
        let held = |(place, device): (usize, &super::OnDevice)| {
            let (charge, _) = device.reading.slots.get(&client.slot)?;
            (*charge > 0).then(|| (self.index(place), *charge))
        };
        account.devices.iter().enumerate().filter_map(held).collect()
    }

    /// The account's last refusal, as the document shows it.
    pub fn last_refusal(&self, account: &str) -> Option<node::Refusal> {
        self.accounts.get(account)?.last_refusal.as_ref().map(shown)
    }
}

/// A refusal as the document shows it.
pub(super) fn shown(refusal: &Refusal) -> node::Refusal {
    node::Refusal {
        at: crate::events::timestamp(refusal.at),
        pid: refusal.pid,
        device: refusal.device,
        asked_bytes: refusal.asked_bytes,
        used_bytes: refusal.used_bytes,
        cap_bytes: refusal.cap_bytes,
        reason: refusal.reason.into(),
    }
}
