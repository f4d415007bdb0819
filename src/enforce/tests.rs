//! The ledgers as the daemon uses them, with the client's side of the ledger beside.

use std::os::fd::AsFd;

use ledger::account::{Client, Refusal};
use ledger::ring::{Event, Kind, Reason};
use ledger::{Account, Mapping, View};

use super::*;

const MIB: u64 = 1 << 20;

fn grants() -> [Grant; 2] {
    [1, 2].map(|n| Grant {
        uuid: [n; 16],
        cap_bytes: u64::from(n) * MIB,
        context_bytes: 0,
    })
}

fn owner(pid: u32) -> Owner {
    Owner {
        pid,
        start_time: 1,
        nonce: 1,
    }
}

/// Maps what a client would be handed for device `n`.
fn mapped(ledgers: &Ledgers, slot: SlotIndex, n: usize) -> (View<ledger::Policy>, Mapping<Account>) {
    let (entries, fds) = ledgers.objects("a", Some(slot)).unwrap();
    assert_eq!(usize::from(entries[2 * n + 1].slot), slot.get());
    (
        View::open(fds[2 * n]).unwrap(),
        Mapping::open(fds[2 * n + 1]).unwrap(),
    )
}

#[test]
fn a_client_is_capped_per_device_and_its_charge_returns_when_it_goes() {
    let mut ledgers = Ledgers::new(false);
    ledgers.open("a", &grants()).unwrap();
    let slot = ledgers.claim("a", &owner(7)).unwrap();
    let (policy, account) = mapped(&ledgers, slot, 1);
    let mut client = Client::new(&policy, &account, slot);
    client.reserve(2 * MIB).unwrap();
    assert!(matches!(client.reserve(1), Err(Refusal::Full { limit, .. }) if limit == 2 * MIB));
    let readings = ledgers.read("a");
    assert_eq!((readings[0].used_bytes, readings[1].used_bytes), (0, 2 * MIB));
    assert_eq!(readings[1].slots[&slot].0, 2 * MIB);

    let vacated = ledgers.vacate("a", slot, &mut Vec::new()).unwrap();
    assert_eq!(
        vacated,
        Vacated {
            released: vec![0, 2 * MIB],
            corrupt: false
        }
    );
    assert_eq!(ledgers.read("a")[1].used_bytes, 0);
    assert_eq!(
        ledgers.claim("a", &owner(8)).unwrap(),
        slot,
        "the slot is free again"
    );
}

#[test]
fn what_a_client_gets_cannot_be_made_writable_where_it_must_not_be() {
    let mut ledgers = Ledgers::new(false);
    ledgers.open("a", &grants()).unwrap();
    let (_, fds) = ledgers.objects("a", None).unwrap();
    for fd in fds {
        let flags = rustix::fs::fcntl_getfl(fd.as_fd()).unwrap();
        assert!(!flags.intersects(rustix::fs::OFlags::RDWR | rustix::fs::OFlags::WRONLY));
    }
    let (_, fds) = ledgers.objects("a", SlotIndex::client(1)).unwrap();
    let mode = rustix::fs::fstat(fds[0]).unwrap().st_mode & 0o777;
    assert_eq!(
        mode, 0o600,
        "another user's client cannot open the policy again for writing"
    );
    assert!(Mapping::<ledger::Policy>::open(fds[0]).is_err());
}

#[test]
fn a_lowered_cap_binds_the_next_request() {
    let mut ledgers = Ledgers::new(false);
    ledgers.open("a", &grants()).unwrap();
    let slot = ledgers.claim("a", &owner(7)).unwrap();
    let (policy, account) = mapped(&ledgers, slot, 0);
    let mut client = Client::new(&policy, &account, slot);
    client.reserve(MIB / 2).unwrap();
    assert_eq!(ledgers.set_cap("a", 0, MIB / 2).unwrap(), MIB / 2);
    assert!(client.reserve(512).is_err());
}

#[test]
fn an_observing_node_refuses_nothing_and_shows_the_cap() {
    let mut ledgers = Ledgers::new(true);
    ledgers.open("a", &grants()).unwrap();
    let slot = ledgers.claim("a", &owner(7)).unwrap();
    let (policy, account) = mapped(&ledgers, slot, 0);
    Client::new(&policy, &account, slot).reserve(5 * MIB).unwrap();
    let reading = &ledgers.read("a")[0];
    assert_eq!((reading.cap_bytes, reading.used_bytes), (MIB, 5 * MIB));
}

#[test]
fn refusals_posted_by_clients_are_heard_and_drained_once() {
    let mut ledgers = Ledgers::new(false);
    ledgers.open("a", &grants()).unwrap();
    let listener = bell::Listener::start().unwrap();
    listener.listen_to(ledgers.bells());
    let slot = ledgers.claim("a", &owner(7)).unwrap();
    let (policy, account) = mapped(&ledgers, slot, 1);
    let mut client = Client::new(&policy, &account, slot);
    let event = Event {
        kind: Kind::Refused(Reason::Cap),
        function: 3,
        thread: 7,
        at: 1,
        asked: 9,
        used: 8,
        cap: 7,
        detail: 0,
    };
    let more = 10;
    for _ in 0..ledger::ring::CAPACITY + more {
        client.post(event);
    }
    while ledgers.rung().is_empty() {
        let ready = listener.ready();
        let mut fds = [rustix::event::PollFd::new(&ready, rustix::event::PollFlags::IN)];
        let watchdog = rustix::time::Timespec {
            tv_sec: 60,
            tv_nsec: 0,
        };
        assert_ne!(
            rustix::event::poll(&mut fds, Some(&watchdog)).unwrap(),
            0,
            "no ring was passed on"
        );
        listener.clear();
    }
    assert_eq!(ledgers.rung(), ["a"]);
    let mut posted = Vec::new();
    ledgers.drain("a", &mut posted);
    let (events, lost): (Vec<Posted>, Vec<Posted>) = posted
        .iter()
        .copied()
        .partition(|posted| matches!(posted.what, What::Event(_)));
    assert_eq!(events.len() as u32, ledger::ring::CAPACITY);
    assert_eq!((events[0].device, events[0].slot), (1, slot));
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].what, What::Lost(u64::from(more)));
    posted.clear();
    ledgers.drain("a", &mut posted);
    assert!(posted.is_empty() && ledgers.rung().is_empty());
}

#[test]
fn the_thousandth_client_finds_no_slot_and_is_told_so() {
    let mut ledgers = Ledgers::new(false);
    ledgers.open("a", &grants()[..1]).unwrap();
    for pid in 1..=1023 {
        ledgers.claim("a", &owner(pid)).unwrap();
    }
    assert!(matches!(
        ledgers.claim("a", &owner(2000)),
        Err(EnforceError::NoSlot { .. })
    ));
    ledgers
        .vacate("a", SlotIndex::client(500).unwrap(), &mut Vec::new())
        .unwrap();
    assert_eq!(ledgers.claim("a", &owner(2001)).unwrap().get(), 500);
}
