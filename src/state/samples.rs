//! What accounts use, for the history (`history.rs`).

use std::time::SystemTime;

use super::{Account, IDLE_AFTER, NodeState};
use crate::history::Sample;

impl NodeState {
    /// Whether a client of `account` launched work a moment before `now`.
    pub(super) fn is_running(&self, account: &str, now: SystemTime) -> bool {
        let recent = |at: SystemTime| now.duration_since(at).is_ok_and(|since| since < IDLE_AFTER);
        let mut clients = self.clients.values().filter(|client| client.account == account);
        clients.any(|client| client.last_launch.is_some_and(recent))
    }

    /// Every open account as of its last reading. What a tenant wrote into its words counts up to what it may have.
    pub fn samples(&self, now: SystemTime) -> impl Iterator<Item = (&str, Sample)> {
        self.accounts.iter().map(move |(name, account)| {
            let most = |value: fn(&super::OnDevice) -> u64| most_of(account, value);
            let sample = Sample {
                used_bytes: most(|device| device.reading.used_bytes),
                peak_bytes: most(|device| device.reading.peak_bytes),
                idle: !self.is_running(name, now),
            };
            (name.as_str(), sample)
        })
    }
}

fn most_of(account: &Account, value: fn(&super::OnDevice) -> u64) -> u64 {
    let bounded = account
        .devices
        .iter()
        .map(|device| value(device).min(device.most_bytes));
    bounded.max().unwrap_or(0)
}
