//! The node's life as a list of events.

mod subjects;

use super::*;
use crate::admission::identity::Place;
use crate::admission::process::Identity;
use crate::cli::Driver;
use crate::config::MemoryRule;
use crate::device::{Device, Process};
use crate::enforce::Reading;
use crate::protocol::node::Activity;

const GIB: u64 = 1 << 30;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn node() -> NodeState {
    let device = |index: u32| Device {
        index,
        uuid: format!("GPU-{index:032x}"),
        name: "x".into(),
        total_bytes: 10 * GIB,
        pci_bus_id: None,
        numa_node: None,
        sm_count: None,
    };
    let inventory = Inventory {
        devices: vec![device(3), device(5)],
        ..Inventory::default()
    };
    NodeState::new(Mode::Enforce, Overcommit::Refuse, inventory, vec![GIB, GIB])
}

fn place(account: &str) -> Place {
    Place {
        tenant: "t".into(),
        account: account.into(),
        memory: MemoryRule::ALL,
        asked: false,
        carved_from: None,
        passing: false,
        lives_in: None,
    }
}

fn granted(cap: u64, guaranteed: u64) -> Vec<Granted> {
    vec![
        Granted {
            cap_bytes: cap * GIB,
            guaranteed_bytes: guaranteed * GIB
        };
        2
    ]
}

fn slot(n: u32) -> SlotIndex {
    SlotIndex::client(n).unwrap()
}

fn client(pid: u32, n: u32) -> Client {
    Client::new(
        Identity { pid, start_time: 1 },
        "a",
        slot(n),
        "prog".into(),
        "alice".into(),
    )
}

fn document(node: &NodeState, now: SystemTime) -> crate::protocol::node::Node {
    let about = About {
        node: "host".into(),
        driver: Driver::Sim,
        started_at: at(0),
    };
    node.document(&about, now)
}

fn reading(used: u64, launches: u64) -> Reading {
    let slots = [(slot(1), (used, launches))].into();
    Reading {
        cap_bytes: 4 * GIB,
        used_bytes: used,
        peak_bytes: used,
        slots,
        ..Reading::default()
    }
}

#[test]
fn a_clients_life_is_four_lines_and_leaves_nothing_behind() {
    let mut node = node();
    assert!(
        node.apply(
            Event::Opened {
                place: place("a"),
                granted: granted(4, 0)
            },
            at(1)
        )
        .is_empty()
    );
    let lines = node.apply(
        Event::Admitted {
            id: ClientId(1),
            client: client(77, 1),
        },
        at(2),
    );
    assert_eq!(lines[0].kind, Kind::Admitted);
    assert_eq!((lines[0].account.as_deref(), lines[0].pid), (Some("a"), Some(77)));
    node.apply(
        Event::Read {
            account: "a".into(),
            readings: vec![reading(0, 0), reading(GIB, 9)],
        },
        at(3),
    );
    let now = document(&node, at(3));
    assert_eq!(now.tenants[0].state, Activity::Running);
    assert_eq!(now.tenants[0].clients[0].used_bytes, GIB);
    assert_eq!(now.tenants[0].devices[1].compute.launches_total, 9);
    assert_eq!(now.tenants[0].devices[1].index, 5);
    assert_eq!(document(&node, at(60)).tenants[0].state, Activity::Idle);

    let left = Event::Left {
        id: ClientId(1),
        why: "ended",
        released: vec![0, GIB],
        corrupt: false,
    };
    let lines = node.apply(left, at(61));
    let kinds: Vec<Kind> = lines.iter().map(|line| line.kind).collect();
    assert_eq!(kinds, [Kind::Left, Kind::Reclaimed]);
    assert_eq!(
        (lines[1].device, lines[1].detail["bytes"].as_u64()),
        (Some(5), Some(GIB))
    );
    let now = document(&node, at(61));
    assert_eq!(
        now.tenants[0].devices[1].memory.used_bytes, 0,
        "without waiting for the next reading"
    );
    assert_eq!(now.tenants[0].devices[1].compute.launches_total, 9, "totals stay");
    assert!(now.tenants[0].clients.is_empty());
}

#[test]
fn refusals_are_counted_all_and_logged_at_a_pace() {
    let mut node = node();
    node.apply(
        Event::Opened {
            place: place("a"),
            granted: granted(4, 0),
        },
        at(1),
    );
    node.apply(
        Event::Admitted {
            id: ClientId(1),
            client: client(77, 1),
        },
        at(1),
    );
    let refusal = Refusal {
        at: at(2),
        pid: 0,
        device: 0,
        asked_bytes: 3,
        used_bytes: 2,
        cap_bytes: 1,
        reason: "cap",
        function: Some("cuMemAlloc_v2"),
    };
    let refused = |refusal: &Refusal| Event::Refused {
        account: "a".into(),
        slot: slot(1),
        device: 1,
        refusal: refusal.clone(),
    };
    let first = node.apply(refused(&refusal), at(2));
    assert_eq!((first[0].pid, first[0].device), (Some(77), Some(5)));
    for _ in 0..5 {
        assert!(node.apply(refused(&refusal), at(2)).is_empty());
    }
    node.apply(
        Event::Lost {
            account: "a".into(),
            device: 1,
            count: 4,
        },
        at(2),
    );
    let next = node.apply(refused(&refusal), at(3));
    assert_eq!(next[0].detail["unlogged_before"].as_u64(), Some(9));
    let now = document(&node, at(3));
    assert_eq!(now.tenants[0].devices[1].memory.refusals_total, 11);
    let last = now.tenants[0].last_refusal.clone().unwrap();
    assert_eq!(
        (last.pid, last.device, last.asked_bytes, last.reason.as_str()),
        (77, 5, 3, "cap")
    );
}

#[test]
fn no_more_is_guaranteed_than_there_is() {
    let mut node = node();
    node.apply(
        Event::Opened {
            place: place("a"),
            granted: granted(4, 4),
        },
        at(1),
    );
    assert_eq!(
        node.room_for(&granted(9, 9)),
        Ok(()),
        "an account that nobody uses takes nothing from others"
    );
    node.apply(
        Event::Launches {
            account: "a".into(),
            count: 1,
        },
        at(1),
    );
    assert_eq!(node.room_for(&granted(9, 5)), Ok(()));
    let refused = Overcommitted {
        device: 0,
        asked_bytes: 6 * GIB,
        left_bytes: 5 * GIB,
    };
    assert_eq!(
        node.room_for(&granted(9, 6)),
        Err(refused),
        "10 GiB less 1 kept back less 4"
    );
    assert_eq!(
        document(&node, at(1)).devices[0]
            .schedulable
            .as_ref()
            .unwrap()
            .memory_bytes,
        5 * GIB
    );
    node.apply(Event::Closed { account: "a".into() }, at(2));
    assert_eq!(node.room_for(&granted(9, 9)), Ok(()));
}

#[test]
fn who_holds_a_device_without_being_a_client_is_shown_and_reported_once() {
    let mut node = node();
    node.apply(
        Event::Opened {
            place: place("a"),
            granted: granted(4, 0),
        },
        at(1),
    );
    node.apply(
        Event::Admitted {
            id: ClientId(1),
            client: client(77, 1),
        },
        at(1),
    );
    let holder = |pid, used_bytes| Process { pid, used_bytes };
    let looked = |processes: Option<Vec<Process>>| Event::Looked {
        looks: vec![Look {
            index: 5,
            used_bytes: Some(7),
            processes,
            ..Look::default()
        }],
        holders: [(88, of_bob(1))].into(),
        own: vec![99],
    };
    let all = vec![holder(77, Some(1)), holder(88, Some(2)), holder(99, Some(4))];
    let lines = node.apply(looked(Some(all.clone())), at(2));
    assert_eq!(lines.len(), 1);
    assert_eq!(
        (lines[0].kind, lines[0].pid, lines[0].device),
        (Kind::Unattached, Some(88), Some(5))
    );
    assert!(node.apply(looked(Some(all)), at(3)).is_empty());
    assert!(
        node.apply(looked(None), at(4)).is_empty(),
        "a list that cannot be read clears nobody"
    );
    let now = document(&node, at(4));
    assert_eq!(now.unattached.len(), 1);
    assert_eq!(
        (
            now.unattached[0].since.as_str(),
            now.unattached[0].user.as_deref()
        ),
        ("1970-01-01T00:00:02.000Z", Some("bob"))
    );
    assert_eq!(
        now.devices[1].memory.unattributed_bytes, None,
        "as of a look that could not be had"
    );
    node.apply(looked(Some(vec![holder(88, Some(2)), holder(66, None)])), at(5));
    assert_eq!(
        document(&node, at(5)).devices[1].memory.unattributed_bytes,
        None,
        "one of them is unknown"
    );
    node.apply(looked(Some(vec![holder(88, Some(2))])), at(6));
    let now = document(&node, at(6));
    assert_eq!(now.devices[1].memory.unattributed_bytes, Some(2));
    assert_eq!(now.devices[0].memory.used_bytes, None, "nobody looked there");
    let text = serde_json::to_string(&now.devices[0]).unwrap();
    assert!(
        !text.contains("used_bytes") && !text.contains("busy_ratio"),
        "{text}"
    );
    node.apply(
        Event::Admitted {
            id: ClientId(2),
            client: client(88, 2),
        },
        at(7),
    );
    assert!(document(&node, at(7)).unattached.is_empty(), "it attached");
}

fn of_bob(start_time: u64) -> Holder {
    Holder {
        start_time,
        user: "bob".into(),
        command: "train".into(),
    }
}

#[test]
fn a_devices_fault_is_reported_when_it_appears() {
    let mut node = node();
    let looked = |fault: Option<&str>| Event::Looked {
        looks: vec![Look {
            index: 3,
            fault: fault.map(Into::into),
            ..Look::default()
        }],
        holders: BTreeMap::new(),
        own: Vec::new(),
    };
    assert!(node.apply(looked(None), at(1)).is_empty());
    assert_eq!(node.apply(looked(Some("lost")), at(2)).len(), 1);
    assert!(node.apply(looked(Some("lost")), at(3)).is_empty());
    assert_eq!(document(&node, at(3)).devices[0].health, "lost");
}
