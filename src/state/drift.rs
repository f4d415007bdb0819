//! Where ledger and device disagree: clients that use a device without the shim having charged it. The ledger cannot see
//! what a program does behind the shim's back (its own copy of the driver, a debugger); the looks at the devices can.

use std::collections::BTreeMap;

use super::{Account, NodeState};
use crate::config::Mode;
use crate::device::Look;
use crate::events::{Event, Kind};

/// What drifts: an account, or one process that is charged nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Drifting {
    Account(String),
    Process(u32),
}

/// Bytes a driver may need for one process beyond what its context was measured to cost.
const SLACK: u64 = 64 << 20;

/// Bytes of the device by process, where they could be read.
fn used(look: &Look) -> BTreeMap<u32, u64> {
    let mut sums = BTreeMap::new();
    for process in look.processes.iter().flatten() {
        let sum: &mut u64 = sums.entry(process.pid).or_default();
        *sum = sum.saturating_add(process.used_bytes.unwrap_or(0));
    }
    sums
}

impl NodeState {
    /// One line for each disagreement that `looks` show and the looks before did not.
    pub(super) fn drift(&mut self, looks: &[Look]) -> Vec<Event> {
        if self.mode == Mode::Observe {
            return Vec::new();
        }
        let mut found = BTreeMap::new();
        for look in looks {
            let of_look = |device: &crate::device::Device| device.index == look.index;
            let Some(place) = self.inventory.devices.iter().position(of_look) else {
                continue;
            };
            let now = used(look);
            let before = self.looks.iter().find(|before| before.index == look.index);
            let before = before.map(used).unwrap_or_default();
            for (name, account) in &self.accounts {
                if let Some(line) = self.above_cap(name, account, place, &now) {
                    found.insert((place, Drifting::Account(name.clone())), line);
                }
                for (pid, line) in self.uncharged(name, account, place, &before, &now) {
                    found.insert((place, Drifting::Process(pid)), line);
                }
            }
        }
        let (mut rounds, mut lines) = (BTreeMap::new(), Vec::new());
        for (what, line) in found {
            let round = self
                .drifting
                .get(&what)
                .map_or(1, |before| before.saturating_add(1));
            // A process may give back all it has between two looks; hardly ever at the very moments the ledger is read.
            let certain = if matches!(what.1, Drifting::Account(_)) {
                1
            } else {
                2
            };
            if round == certain {
                lines.push(line);
            }
            rounds.insert(what, round);
        }
        self.drifting = rounds;
        lines
    }

    /// An account that uses more than its cap: the ledger lets it charge no more than that at any moment, so that the
    /// rest was never charged, whenever ledger and device were read.
    fn above_cap(
        &self,
        name: &str,
        account: &Account,
        place: usize,
        now: &BTreeMap<u32, u64>,
    ) -> Option<Event> {
        let reading = &account.devices.get(place)?.reading;
        let own = self.clients.values().filter(|client| client.account == name);
        let own: Vec<u64> = own
            .filter_map(|client| now.get(&client.identity.pid).copied())
            .collect();
        let sum = own.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        // A cap lowered below what was charged before is no drift; what the account says is used may be anything.
        let most = account.devices.get(place)?.most_bytes;
        let slack = SLACK.saturating_mul(own.len() as u64);
        (sum > most.saturating_add(slack)).then(|| {
            self.about(name, Event::new(Kind::Drift))
                .device(self.index(place))
                .detail("what", "its processes use more of the device than its cap")
                .detail("used_bytes", sum)
                .detail("charged_bytes", reading.used_bytes)
                .detail("cap_bytes", reading.cap_bytes)
        })
    }

    /// Clients that used the device at the look before, were charged nothing when the ledger was read after it, and use
    /// the device still: none of their calls comes through the shim.
    fn uncharged(
        &self,
        name: &str,
        account: &Account,
        place: usize,
        before: &BTreeMap<u32, u64>,
        now: &BTreeMap<u32, u64>,
    ) -> Vec<(u32, Event)> {
        let Some(device) = account.devices.get(place) else {
            return Vec::new();
        };
        let clients = self.clients.values().filter(|client| client.account == name);
        let held = |client: &&super::Client| {
            let pid = client.identity.pid;
            let at_both = before.get(&pid).is_some_and(|bytes| *bytes > 0);
            let charge = device.reading.slots.get(&client.slot);
            at_both
                && now.get(&pid).is_some_and(|bytes| *bytes > SLACK)
                && charge.is_some_and(|(bytes, _)| *bytes == 0)
        };
        let line = |client: &super::Client| {
            let pid = client.identity.pid;
            let line = self.about(name, Event::new(Kind::Drift)).pid(pid);
            let line = line
                .device(self.index(place))
                .detail("what", "it uses the device and is charged nothing")
                .detail("used_bytes", now.get(&pid).copied().unwrap_or(0));
            (pid, line)
        };
        clients.filter(held).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::admission::identity::Place;
    use crate::admission::process::Identity;
    use crate::config::{MemoryRule, Overcommit};
    use crate::device::{Device, Inventory, Process};
    use crate::enforce::Reading;
    use crate::state::{Client, ClientId, Event as Happened, Granted};

    const GIB: u64 = 1 << 30;

    /// A node of `mode` with one device, and account `a`, capped at 4 GiB, with clients 7 and 8.
    fn node(mode: Mode) -> NodeState {
        let device = Device {
            index: 0,
            uuid: format!("GPU-{:032x}", 1),
            name: "x".into(),
            total_bytes: 10 * GIB,
            pci_bus_id: None,
            numa_node: None,
            sm_count: None,
        };
        let inventory = Inventory {
            devices: vec![device],
            ..Inventory::default()
        };
        let mut node = NodeState::new(mode, Overcommit::Allow, inventory, vec![0]);
        let granted = vec![Granted {
            cap_bytes: 4 * GIB,
            guaranteed_bytes: 0,
        }];
        let place = Place {
            tenant: "t".into(),
            account: "a".into(),
            memory: MemoryRule::ALL,
            asked: false,
            carved_from: None,
            passing: false,
            lives_in: None,
        };
        node.apply(Happened::Opened { place, granted }, SystemTime::UNIX_EPOCH);
        for (n, pid) in [(1, 7), (2, 8)] {
            let slot = ledger::SlotIndex::client(n).unwrap();
            let identity = Identity { pid, start_time: 1 };
            let client = Client::new(identity, "a", slot, "prog".into(), "alice".into());
            let id = ClientId(u64::from(n));
            node.apply(Happened::Admitted { id, client }, SystemTime::UNIX_EPOCH);
        }
        node
    }

    /// The ledger is read, then the device: what clients 7 and 8 are charged, and what they use.
    fn round(node: &mut NodeState, charged: [u64; 2], used: [u64; 2]) -> Vec<Event> {
        let slot = |n| ledger::SlotIndex::client(n).unwrap();
        let reading = Reading {
            cap_bytes: 4 * GIB,
            used_bytes: charged[0] + charged[1],
            slots: [(slot(1), (charged[0], 0)), (slot(2), (charged[1], 0))].into(),
            ..Reading::default()
        };
        let account = "a".to_string();
        let readings = vec![reading];
        node.apply(Happened::Read { account, readings }, SystemTime::UNIX_EPOCH);
        let process = |(pid, bytes)| Process {
            pid,
            used_bytes: Some(bytes),
        };
        let looks = vec![Look {
            index: 0,
            processes: Some([(7, used[0]), (8, used[1])].map(process).into()),
            ..Look::default()
        }];
        let (holders, own) = (BTreeMap::new(), Vec::new());
        let looked = Happened::Looked { looks, holders, own };
        node.apply(looked, SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn use_above_the_cap_is_told_once_until_it_ends() {
        let mut node = node(Mode::Enforce);
        assert!(round(&mut node, [2 * GIB, GIB], [2 * GIB, GIB]).is_empty());
        let lines = round(&mut node, [2 * GIB, GIB], [2 * GIB, 3 * GIB]);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!(
            (lines[0].kind, lines[0].account.as_deref()),
            (Kind::Drift, Some("a"))
        );
        assert!(
            round(&mut node, [2 * GIB, GIB], [2 * GIB, 3 * GIB]).is_empty(),
            "told already"
        );
        assert!(round(&mut node, [2 * GIB, GIB], [2 * GIB, GIB]).is_empty());
        assert_eq!(
            round(&mut node, [2 * GIB, GIB], [2 * GIB, 3 * GIB]).len(),
            1,
            "again"
        );
    }

    #[test]
    fn what_lies_between_two_looks_is_no_drift() {
        let mut node = node(Mode::Enforce);
        assert!(
            round(&mut node, [GIB, GIB], [3 * GIB, GIB]).is_empty(),
            "it grew after it was read"
        );
        assert!(
            round(&mut node, [0, GIB], [3 * GIB, GIB]).is_empty(),
            "it gave back and took again"
        );
        let slack = round(&mut node, [3 * GIB, GIB], [3 * GIB + SLACK, GIB + SLACK]);
        assert!(slack.is_empty(), "a context may cost more than was measured");
        // A cap lowered under what is held.
        let granted = |gib| Happened::Granted {
            account: "a".into(),
            granted: vec![Granted {
                cap_bytes: gib * GIB,
                guaranteed_bytes: 0,
            }],
        };
        node.apply(granted(8), SystemTime::UNIX_EPOCH);
        node.apply(granted(4), SystemTime::UNIX_EPOCH);
        assert!(round(&mut node, [5 * GIB, GIB], [5 * GIB, GIB]).is_empty());
        let mut observed = super::tests::node(Mode::Observe);
        assert!(round(&mut observed, [GIB, GIB], [8 * GIB, GIB]).is_empty());
    }

    #[test]
    fn an_account_that_says_more_than_it_can_be_charged_is_a_fault_and_hides_no_drift() {
        let mut node = node(Mode::Enforce);
        let reading = |used_bytes| Happened::Read {
            account: "a".into(),
            readings: vec![Reading {
                cap_bytes: 4 * GIB,
                used_bytes,
                ..Reading::default()
            }],
        };
        assert!(node.apply(reading(4 * GIB), SystemTime::UNIX_EPOCH).is_empty());
        let lines = node.apply(reading(9 * GIB), SystemTime::UNIX_EPOCH);
        assert_eq!(
            lines.iter().map(|line| line.kind).collect::<Vec<_>>(),
            [Kind::Fault]
        );
        assert!(
            node.apply(reading(9 * GIB), SystemTime::UNIX_EPOCH).is_empty(),
            "told already"
        );
        let lines = round(&mut node, [5 * GIB, 4 * GIB], [5 * GIB, 4 * GIB]);
        assert_eq!(
            lines.iter().map(|line| line.kind).collect::<Vec<_>>(),
            [Kind::Drift]
        );
    }

    #[test]
    fn a_client_that_is_charged_nothing_is_told_at_the_third_look() {
        let mut node = node(Mode::Enforce);
        assert!(
            round(&mut node, [0, GIB], [GIB, GIB]).is_empty(),
            "it may have given back"
        );
        assert!(
            round(&mut node, [0, GIB], [GIB, GIB]).is_empty(),
            "it may be charged by now"
        );
        let lines = round(&mut node, [0, GIB], [GIB, GIB]);
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!((lines[0].kind, lines[0].pid), (Kind::Drift, Some(7)));
        assert!(round(&mut node, [0, GIB], [GIB, GIB]).is_empty());
        assert!(round(&mut node, [GIB, GIB], [GIB, GIB]).is_empty());
    }
}
