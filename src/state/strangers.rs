//! Processes that hold a device and are nobody's clients, as the looks at the devices show them.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::NodeState;
use crate::device::Look;
use crate::events::{self, Kind};

/// A process that holds a device and is nobody's client.
#[derive(Debug, Clone)]
pub(super) struct Stranger {
    /// Ticks since boot at which it started, where it still lived: another one may have its number later.
    pub start_time: Option<u64>,
    pub user: Option<String>,
    pub command: Option<String>,
    pub used_bytes: Option<u64>,
    pub since: SystemTime,
}

/// What the kernel says of a process that holds a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub start_time: u64,
    pub user: String,
    pub command: String,
}

impl NodeState {
    /// Pids of processes that hold a device and are no clients, as of `looks`.
    pub fn strangers_in<'a>(&'a self, looks: &'a [Look]) -> impl Iterator<Item = u32> + 'a {
        let holders = looks
            .iter()
            .flat_map(|look| look.processes.iter().flatten())
            .map(|process| process.pid);
        holders.filter(|pid| !self.is_client(*pid))
    }

    pub(super) fn look(
        &mut self,
        looks: Vec<Look>,
        holders: &BTreeMap<u32, Holder>,
        own: &[u32],
        now: SystemTime,
    ) -> Vec<events::Event> {
        let mut seen = BTreeMap::new();
        let mut lines = Vec::new();
        for look in &looks {
            let Some(place) = self
                .inventory
                .devices
                .iter()
                .position(|device| device.index == look.index)
            else {
                continue;
            };
            let before = self.looks.iter().find(|before| before.index == look.index);
            let fault_before = before.and_then(|before| before.fault.as_ref());
            if let Some(fault) = look.fault.as_ref().filter(|fault| fault_before != Some(*fault)) {
                lines.push(
                    events::Event::new(Kind::Fault)
                        .device(look.index)
                        .detail("what", fault.as_str()),
                );
            }
            let Some(processes) = &look.processes else {
                // Not read this time: whoever was there before still may be.
                seen.extend(
                    self.strangers
                        .iter()
                        .filter(|((_, at), _)| *at == place)
                        .map(|(key, s)| (*key, s.clone())),
                );
                continue;
            };
            for process in processes
                .iter()
                .filter(|process| !own.contains(&process.pid) && !self.is_client(process.pid))
            {
                let key = (process.pid, place);
                let holder = holders.get(&process.pid);
                let same = |known: &&Stranger| match (known.start_time, holder) {
                    (Some(known), Some(holder)) => known == holder.start_time,
                    _ => true,
                };
                let since = self
                    .strangers
                    .get(&key)
                    .filter(same)
                    .map(|stranger| stranger.since);
                if since.is_none() {
                    let line = events::Event::new(Kind::Unattached)
                        .pid(process.pid)
                        .device(look.index);
                    let line = holder.into_iter().fold(line, |line, holder| {
                        let line = line.detail("user", holder.user.as_str());
                        line.detail("command", holder.command.as_str())
                    });
                    let bytes = process.used_bytes.into_iter();
                    lines.push(bytes.fold(line, |line, bytes| line.detail("used_bytes", bytes)));
                }
                let since = since.unwrap_or(now);
                seen.insert(
                    key,
                    Stranger {
                        start_time: holder.map(|holder| holder.start_time),
                        user: holder.map(|holder| holder.user.clone()),
                        command: holder.map(|holder| holder.command.clone()),
                        used_bytes: process.used_bytes,
                        since,
                    },
                );
            }
        }
        self.strangers = seen;
        lines.extend(self.drift(&looks));
        self.looks = looks;
        lines
    }
}
