//! `stint drain`: closes the node or a device to newcomers. Whoever is there goes on. On a closed device an account that
//! holds nothing there is granted nothing any more (`daemon/regrant.rs`).

use std::time::SystemTime;

use super::callers::Caller;
use super::core::{Core, Seat};
use super::record::Key;
use crate::admission::admin::Admin;
use crate::admission::identity::Peer;
use crate::admission::process::Identity;
use crate::events::timestamp;
use crate::exit::Failure;
use crate::protocol::drain::{Action, Closed, Device, Drain, Drained, Left, SCHEMA};
use crate::state::{Event, Granted, Mark};

impl Core {
    /// Answers `drain`.
    pub fn drain(&mut self, admin: &Admin, asked: &Drain) -> Result<Drained, Failure> {
        self.reap();
        let place = asked
            .gpu
            .as_deref()
            .map(|gpu| self.device_named(gpu))
            .transpose()?;
        let uuid = place.map(|place| self.inventory.devices[place].uuid.clone());
        if asked.action != Action::Show {
            let Caller { billed, acting, .. } = self.caller(admin)?;
            if !self.authority.over(&acting) {
                return Err(Failure::not_permitted(
                    "only root, the daemon's user and group stint may drain a node",
                ));
            }
            let by = billed.user;
            let changed = match asked.action {
                Action::Close => {
                    let at = SystemTime::now();
                    self.state
                        .drains
                        .close(uuid.as_deref(), Mark { by: by.clone(), at })
                }
                _ => self.state.drains.open(uuid.as_deref()),
            };
            if changed {
                // What cannot be recorded holds until the next daemon.
                if let Err(error) = self.record.put(Key::Drains, &self.state.drains) {
                    self.apply(Event::Fault {
                        what: error.to_string(),
                    });
                }
                let (device, closed) = (place, asked.action == Action::Close);
                self.apply(Event::Drained { device, closed, by });
            }
            self.read_ledgers();
            self.regrant();
        }
        self.read_ledgers();
        Ok(self.drained(place))
    }

    /// Closed devices lose the accounts that hold nothing there any more. Called once a second.
    pub fn close_devices(&mut self) {
        if self.state.drains.any_device() {
            self.regrant();
        }
    }

    /// Why `peer` is turned away as a newcomer; `None`: it is let in. Part of what runs already: the descendants of a client
    /// or of a launch.
    pub fn closed_to(&self, peer: &Peer, image: Option<[u64; 3]>) -> Option<String> {
        let Mark { by, at } = self.state.drains.node()?;
        let seat = |of: &Identity| self.seats.values().find(|seat| seat.identity() == *of);
        // A client that became another program is a newcomer, whether that was noticed already or not.
        let same = |of: &Identity, seat: &Seat| *of != peer.identity || image == Some(seat.image);
        let runs = |of: &Identity| self.launches.contains(of) || seat(of).is_some_and(|seat| same(of, seat));
        if peer.chain.iter().any(runs) {
            return None;
        }
        Some(format!(
            "the node is drained by {by} since {}: nothing new is let in until `stint drain --undo`",
            timestamp(*at)
        ))
    }

    /// `granted`, less what closed devices do not give: an account that holds nothing there gets nothing.
    pub fn without_closed(&self, account: &str, mut granted: Vec<Granted>) -> Vec<Granted> {
        if !self.state.drains.any_device() {
            return granted;
        }
        for (place, granted) in granted.iter_mut().enumerate() {
            let closed = self
                .state
                .drains
                .device(&self.inventory.devices[place].uuid)
                .is_some();
            if closed && !self.holds(account, place) {
                *granted = Granted {
                    cap_bytes: 0,
                    guaranteed_bytes: 0,
                };
            }
        }
        granted
    }

    /// Whether an account or a part of it holds memory of a device.
    fn holds(&self, account: &str, place: usize) -> bool {
        let parts = self
            .places
            .values()
            .filter(|part| part.carved_from.as_deref() == Some(account));
        let mut family = parts.map(|part| part.account.as_str()).chain([account]);
        family.any(|account| {
            self.ledgers
                .read(account)
                .get(place)
                .is_some_and(|reading| reading.used_bytes > 0)
        })
    }

    /// The place of a device named by index or UUID.
    pub fn device_named(&self, name: &str) -> Result<usize, Failure> {
        let devices = &self.inventory.devices;
        let is = |device: &crate::device::Device| {
            name.parse() == Ok(device.index) || (name.len() > 4 && device.uuid.starts_with(name))
        };
        devices.iter().position(is).ok_or_else(|| {
            let known: Vec<String> = devices
                .iter()
                .map(|device| format!("{} ({})", device.index, device.uuid))
                .collect();
            Failure::usage(format!(
                "there is no device `{name}` (known: {})",
                known.join(", ")
            ))
        })
    }

    fn drained(&self, place: Option<usize>) -> Drained {
        let closed = |mark: &Mark| Closed {
            since: timestamp(mark.at),
            by: mark.by.clone(),
        };
        let asked = |(at, _): &(usize, &crate::device::Device)| place.is_none_or(|place| place == *at);
        let devices = self.inventory.devices.iter().enumerate().filter(asked);
        let devices = devices.map(|(_, device)| Device {
            index: device.index,
            uuid: device.uuid.clone(),
            closed: self.state.drains.device(&device.uuid).map(closed),
        });
        let index = place.map(|place| self.inventory.devices[place].index);
        let node = self.state.document(&self.about, SystemTime::now());
        let clients = node.tenants.iter().flat_map(|tenant| {
            let account = &tenant.account;
            tenant.clients.iter().filter_map(move |client| {
                let on_device = |index| client.devices.iter().find(|held| held.index == index);
                let used = match index {
                    Some(index) => on_device(index)?.used_bytes,
                    None => client.used_bytes,
                };
                Some(Left {
                    pid: client.pid,
                    user: Some(client.user.clone()),
                    command: Some(client.command.clone()),
                    account: Some(account.clone()),
                    used_bytes: Some(used),
                })
            })
        });
        let strange = node
            .unattached
            .iter()
            .filter(|other| index.is_none_or(|index| other.device == index));
        let strange = strange.map(|other| Left {
            pid: other.pid,
            user: other.user.clone(),
            command: other.command.clone(),
            account: None,
            used_bytes: other.used_bytes,
        });
        Drained {
            schema: SCHEMA.into(),
            node: self.state.drains.node().map(closed),
            devices: devices.collect(),
            left: clients.chain(strange).collect(),
        }
    }
}
