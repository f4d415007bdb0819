//! Accounts as the node knows them: what each was granted per device, and what its words said last.

use std::time::SystemTime;

use super::{Granted, NodeState, Refusal};
use crate::admission::identity::Place;
use crate::config::Mode;
use crate::enforce::Reading;
use crate::events::{self, Kind};

/// What a tenant's process did that writes into the memory it shares with the daemon.
pub(super) const CORRUPT: &str = "the account holds values no client of ours writes";

/// An account on every device of the node.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub tenant: String,
    /// Launches whose clients will belong to it.
    pub launches: usize,
    pub devices: Vec<OnDevice>,
    pub last_refusal: Option<Refusal>,
    /// Refusals since the last logged one, and when that was.
    pub unlogged: u64,
    pub logged_at: Option<SystemTime>,
}

/// An account on one device.
#[derive(Debug, Clone, Default)]
pub(super) struct OnDevice {
    pub guaranteed: u64,
    pub refusals: u64,
    /// Launches of clients that have left.
    pub launches_before: u64,
    pub reading: Reading,
    /// The cap above which it was told to be while the node only observes.
    pub told_above: Option<u64>,
    /// Most bytes that can be charged: the cap, or a former one as long as more than the present one is charged.
    pub most_bytes: u64,
    /// The words said otherwise, and that was told.
    pub corrupt: bool,
}

impl NodeState {
    pub(super) fn open(&mut self, place: Place, granted: &[Granted]) {
        let on_device = |granted: &Granted| OnDevice {
            guaranteed: granted.guaranteed_bytes,
            most_bytes: granted.cap_bytes,
            reading: Reading {
                cap_bytes: granted.cap_bytes,
                ..Reading::default()
            },
            ..OnDevice::default()
        };
        let account = Account {
            tenant: place.tenant,
            launches: 0,
            devices: granted.iter().map(on_device).collect(),
            last_refusal: None,
            unlogged: 0,
            logged_at: None,
        };
        self.accounts.insert(place.account, account);
    }

    pub(super) fn grant(&mut self, name: &str, granted: &[Granted]) -> Vec<events::Event> {
        let Some(account) = self.accounts.get_mut(name) else {
            return Vec::new();
        };
        let mut changed = Vec::new();
        for (place, (device, granted)) in account.devices.iter_mut().zip(granted).enumerate() {
            device.guaranteed = granted.guaranteed_bytes;
            device.most_bytes = device.most_bytes.max(granted.cap_bytes);
            if device.reading.cap_bytes != granted.cap_bytes {
                device.reading.cap_bytes = granted.cap_bytes;
                changed.push((place, granted.cap_bytes));
            }
        }
        let line = |(place, cap)| {
            let event = self
                .about(name, events::Event::new(Kind::Config))
                .device(self.index(place));
            event.detail("cap_bytes", cap)
        };
        changed.into_iter().map(line).collect()
    }

    pub(super) fn read(&mut self, name: &str, readings: Vec<Reading>, now: SystemTime) -> Vec<events::Event> {
        let Some(account) = self.accounts.get_mut(name) else {
            return Vec::new();
        };
        for client in self.clients.values_mut().filter(|client| client.account == name) {
            let counts = readings
                .iter()
                .filter_map(|reading| reading.slots.get(&client.slot));
            let launches = counts.fold(0u64, |sum, (_, launches)| sum.saturating_add(*launches));
            if launches != client.launches {
                client.launches = launches;
                client.last_launch = Some(now);
            }
        }
        let mut corrupt = Vec::new();
        for (place, (device, reading)) in account.devices.iter_mut().zip(readings).enumerate() {
            // Only a tenant that writes into the account itself gets there.
            let impossible = self.mode == Mode::Enforce && reading.used_bytes > device.most_bytes;
            if impossible && !device.corrupt {
                corrupt.push((place, reading.used_bytes));
            }
            device.corrupt = impossible;
            if reading.used_bytes <= reading.cap_bytes {
                device.most_bytes = reading.cap_bytes;
            } else if self.mode == Mode::Observe {
                device.most_bytes = reading.used_bytes;
            }
            device.reading = reading;
        }
        if self.mode == Mode::Observe {
            return self.above_caps(name);
        }
        let line = |(place, used_bytes)| {
            let fault = self
                .about(name, events::Event::new(Kind::Fault))
                .device(self.index(place));
            let fault = fault.detail("what", CORRUPT);
            fault.detail("used_bytes", used_bytes)
        };
        corrupt.into_iter().map(line).collect()
    }
}
