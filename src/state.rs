//! The node as a value: `apply` takes what happened and returns what to log. No file, socket, thread or clock in here;
//! `daemon/core.rs` tells it, `state/document.rs` shows it.

mod account;
mod document;
mod drains;
mod drift;
mod event;
mod observed;
mod orphans;
mod overrides;
mod refused;
mod room;
mod rules;
mod samples;
mod strangers;
mod subject;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use ledger::SlotIndex;

use crate::admission::orphan::Orphan;
use crate::admission::process::Identity;
use crate::config::{Mode, Overcommit};
use crate::device::{Inventory, Look};
use crate::events::{self, Kind};

use account::{Account, CORRUPT, OnDevice};
pub use document::About;
pub use drains::{Drains, Mark};
use drift::Drifting;
pub use event::{Client, ClientId, Event, Granted, Refusal};
pub use overrides::{Ended, Key, Overrides, Setting};
pub use room::Overcommitted;
pub use strangers::Holder;
use strangers::Stranger;
pub use subject::Subject;
use subject::{Denial, Denials};

/// A tenant is idle when none of its clients launched anything for so long.
const IDLE_AFTER: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug, Clone)]
pub struct NodeState {
    mode: Mode,
    overcommit: Overcommit,
    inventory: Inventory,
    /// Bytes kept back, per device.
    reserved: Vec<u64>,
    looks: Vec<Look>,
    accounts: BTreeMap<String, Account>,
    clients: BTreeMap<ClientId, Client>,
    /// By pid and place of the device.
    strangers: BTreeMap<(u32, usize), Stranger>,
    orphans: BTreeMap<Identity, Orphan>,
    /// Disagreements by place of the device, and at how many looks in a row.
    drifting: BTreeMap<(usize, Drifting), u32>,
    denials: Denials,
    /// What is closed to newcomers.
    pub drains: Drains,
}

impl NodeState {
    pub fn new(mode: Mode, overcommit: Overcommit, inventory: Inventory, reserved: Vec<u64>) -> NodeState {
        NodeState {
            mode,
            overcommit,
            inventory,
            reserved,
            looks: Vec::new(),
            accounts: BTreeMap::new(),
            clients: BTreeMap::new(),
            strangers: BTreeMap::new(),
            orphans: BTreeMap::new(),
            drifting: BTreeMap::new(),
            denials: Denials::default(),
            drains: Drains::default(),
        }
    }

    /// Whether an account has a client or a launch: only then its guarantee counts.
    pub fn is_active(&self, account: &str) -> bool {
        let has_launch = self.accounts.get(account).is_some_and(|known| known.launches > 0);
        has_launch || self.clients.values().any(|client| client.account == account)
    }

    /// Account names, for those who read their words.
    pub fn accounts(&self) -> impl Iterator<Item = &str> {
        self.accounts.keys().map(String::as_str)
    }

    fn is_client(&self, pid: u32) -> bool {
        self.clients.values().any(|client| client.identity.pid == pid)
    }

    /// Takes in what happened at `now`; returns what is worth a line in the log.
    pub fn apply(&mut self, event: Event, now: SystemTime) -> Vec<events::Event> {
        match event {
            Event::Opened { place, granted } => {
                self.open(place, &granted);
                Vec::new()
            }
            Event::Launches { account, count } => {
                if let Some(account) = self.accounts.get_mut(&account) {
                    account.launches = count;
                }
                Vec::new()
            }
            Event::Granted { account, granted } => self.grant(&account, &granted),
            Event::Closed { account } => {
                self.accounts.remove(&account);
                Vec::new()
            }
            Event::Admitted { id, client } => self.admit(id, client, now),
            Event::Adopted { id, client } => {
                self.clients.insert(id, client);
                Vec::new()
            }
            Event::Denied {
                pid,
                user,
                reason,
                message,
            } => {
                self.denials.add(Denial {
                    pid,
                    at: now,
                    user: user.clone(),
                    reason,
                    message: message.clone(),
                });
                let denied = events::Event::new(Kind::Refused).pid(pid);
                vec![
                    denied
                        .detail("reason", reason)
                        .detail("user", user)
                        .detail("message", message),
                ]
            }
            Event::Left {
                id,
                why,
                released,
                corrupt,
            } => self.leave(id, why, &released, corrupt),
            Event::Refused {
                account,
                slot,
                device,
                refusal,
            } => self.refuse(&account, slot, device, refusal, now),
            Event::Lost {
                account,
                device,
                count,
            } => {
                if let Some(account) = self.accounts.get_mut(&account) {
                    account.unlogged += count;
                    if let Some(device) = account.devices.get_mut(device) {
                        device.refusals += count;
                    }
                }
                Vec::new()
            }
            Event::ClientFault {
                account,
                slot,
                device,
                what,
                detail,
            } => {
                let fault = self
                    .about(&account, events::Event::new(Kind::Fault))
                    .detail("what", what);
                let pid = self.client_in(&account, slot).map(|client| client.identity.pid);
                let fault = pid.into_iter().fold(fault, events::Event::pid);
                vec![fault.device(self.index(device)).detail("detail", detail)]
            }
            Event::Read { account, readings } => self.read(&account, readings, now),
            Event::Looked { looks, holders, own } => self.look(looks, &holders, &own, now),
            Event::Fault { what } => vec![events::Event::new(Kind::Fault).detail("what", what)],
            Event::Set {
                target,
                key,
                text,
                by,
                until,
            } => {
                let line = self.about_target(&target, events::Event::new(Kind::Config));
                let line = line.detail("set", key).detail("value", text).detail("by", by);
                let until = until.map(events::timestamp);
                vec![
                    until
                        .into_iter()
                        .fold(line, |line, until| line.detail("until", until)),
                ]
            }
            Event::Drained { device, closed, by } => {
                let what = if closed {
                    "closed to newcomers"
                } else {
                    "open again"
                };
                let line = events::Event::new(Kind::State)
                    .detail("what", what)
                    .detail("by", by);
                vec![
                    device
                        .into_iter()
                        .fold(line, |line, place| line.device(self.index(place))),
                ]
            }
            Event::SetEnded {
                target,
                key,
                text,
                by,
            } => {
                let line = self.about_target(&target, events::Event::new(Kind::Config));
                vec![line.detail("ended", key).detail("value", text).detail("by", by)]
            }
            Event::Reloaded {
                cause,
                changed,
                mode,
                overcommit,
                reserved,
            } => vec![self.reloaded(cause, changed, (mode, overcommit, reserved))],
            Event::NotReloaded { cause, problems } => vec![NodeState::not_reloaded(cause, &problems)],
            Event::ConfigNote { message } => {
                vec![events::Event::new(Kind::Config).detail("message", message)]
            }
            Event::Orphans(found) => self.orphaned(found),
            Event::State { what } => vec![events::Event::new(Kind::State).detail("what", what)],
        }
    }

    /// NVML's index of the device at `place`.
    fn index(&self, place: usize) -> u32 {
        self.inventory
            .devices
            .get(place)
            .map_or(place as u32, |device| device.index)
    }

    fn about(&self, account: &str, event: events::Event) -> events::Event {
        match self.accounts.get(account) {
            Some(known) => event.account(&known.tenant, account),
            None => event,
        }
    }

    /// About a tenant, or one account of it.
    fn about_target(&self, target: &str, event: events::Event) -> events::Event {
        if self.accounts.contains_key(target) {
            return self.about(target, event);
        }
        events::Event {
            tenant: Some(target.into()),
            ..event
        }
    }

    fn client_in(&self, account: &str, slot: SlotIndex) -> Option<&Client> {
        self.clients
            .values()
            .find(|client| client.slot == slot && client.account == account)
    }

    fn admit(&mut self, id: ClientId, mut client: Client, now: SystemTime) -> Vec<events::Event> {
        client.started_at = now;
        // It may have been seen on a device before it attached.
        self.strangers.retain(|(pid, _), _| *pid != client.identity.pid);
        self.denials.forget(client.identity.pid);
        let admitted = self
            .about(&client.account, events::Event::new(Kind::Admitted))
            .pid(client.identity.pid);
        let line = admitted
            .detail("command", client.command.as_str())
            .detail("user", client.user.as_str());
        self.clients.insert(id, client);
        vec![line]
    }

    fn leave(&mut self, id: ClientId, why: &str, released: &[u64], corrupt: bool) -> Vec<events::Event> {
        let Some(client) = self.clients.remove(&id) else {
            return Vec::new();
        };
        let pid = client.identity.pid;
        let event = |kind| self.about(&client.account, events::Event::new(kind)).pid(pid);
        let mut lines = vec![event(Kind::Left).detail("why", why)];
        for (place, bytes) in released.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
            lines.push(
                event(Kind::Reclaimed)
                    .device(self.index(place))
                    .detail("bytes", *bytes),
            );
        }
        if corrupt {
            lines.push(event(Kind::Fault).detail("what", CORRUPT));
        }
        if let Some(account) = self.accounts.get_mut(&client.account) {
            for (device, bytes) in account.devices.iter_mut().zip(released) {
                device.reading.used_bytes = device.reading.used_bytes.saturating_sub(*bytes);
                if let Some((_, launches)) = device.reading.slots.remove(&client.slot) {
                    device.launches_before += launches;
                }
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests;
