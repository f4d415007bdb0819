//! The ledgers as the daemon uses them, with the client's side of the ledger beside.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

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

fn claim(ledgers: &mut Ledgers, pid: u32) -> SlotIndex {
    let slot = ledgers.free_slot("a").unwrap();
    ledgers.claim("a", slot, &owner(pid)).unwrap();
    slot
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
    let slot = claim(&mut ledgers, 7);
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
    assert_eq!(claim(&mut ledgers, 8), slot, "the slot is free again");
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
    let slot = claim(&mut ledgers, 7);
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
    let slot = claim(&mut ledgers, 7);
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
    let slot = claim(&mut ledgers, 7);
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
        claim(&mut ledgers, pid);
    }
    assert!(matches!(ledgers.free_slot("a"), Err(EnforceError::NoSlot { .. })));
    ledgers
        .vacate("a", SlotIndex::client(500).unwrap(), &mut Vec::new())
        .unwrap();
    assert_eq!(claim(&mut ledgers, 2001).get(), 500);
}

/// What an earlier daemon's descriptors are once it has gone.
fn left_behind(ledgers: &Ledgers) -> BTreeMap<Uuid, Held> {
    let mut kept = ledgers
        .keepsakes("a")
        .into_iter()
        .map(|(_, fd)| fd.try_clone_to_owned().unwrap());
    let mut held = BTreeMap::new();
    for grant in grants() {
        let (policy, account) = (kept.next().unwrap(), kept.next().unwrap());
        held.insert(grant.uuid, Held { policy, account });
    }
    held
}

#[test]
fn a_later_daemon_takes_over_words_and_slots_as_they_are() {
    let mut first = Ledgers::new(false);
    first.open("a", &grants()).unwrap();
    let slot = claim(&mut first, 7);
    let (policy, account) = mapped(&first, slot, 0);
    let mut client = Client::new(&policy, &account, slot);
    client.reserve(MIB).unwrap();
    let held = left_behind(&first);
    drop(first);

    let mut second = Ledgers::new(false);
    second.adopt("a", 5, &grants(), held).unwrap();
    assert_eq!(second.in_words("a"), [(slot, Some(owner(7)))]);
    second.take_over("a", slot, &owner(7)).unwrap();
    assert_ne!(second.free_slot("a").unwrap(), slot);
    assert_eq!(second.read("a")[0].used_bytes, MIB);
    assert!(client.reserve(512).is_err(), "the cap is the same word");
    second.set_cap("a", 0, 2 * MIB).unwrap();
    client.reserve(MIB).unwrap();
    assert_eq!(
        second.vacate("a", slot, &mut Vec::new()).unwrap().released,
        [2 * MIB, 0]
    );
    second.open("b", &grants()).unwrap();
    assert_eq!(second.number("b"), Some(6), "numbers are not used again");
}

#[test]
fn a_device_that_came_since_gets_objects_and_slots_like_the_others() {
    let mut first = Ledgers::new(false);
    first.open("a", &grants()).unwrap();
    let slot = claim(&mut first, 7);
    let mut held = left_behind(&first);
    held.remove(&grants()[1].uuid);
    let mut second = Ledgers::new(false);
    second.adopt("a", 1, &grants(), held).unwrap();
    second.take_over("a", slot, &owner(7)).unwrap();
    let (policy, account) = mapped(&second, slot, 1);
    assert_eq!(account.slot(slot).owner(), Some(owner(7)));
    assert!(Client::new(&policy, &account, slot).reserve(2 * MIB).is_ok());
}

#[test]
fn objects_of_an_unknown_layout_are_not_taken_over() {
    let mut first = Ledgers::new(false);
    first.open("a", &grants()).unwrap();
    let mut held = left_behind(&first);
    let account = &held[&grants()[0].uuid].account;
    // The version is the first word after the magic number.
    rustix::io::pwrite(account, &9u32.to_le_bytes(), 8).unwrap();
    let mut second = Ledgers::new(false);
    assert!(matches!(
        second.adopt("a", 1, &grants(), std::mem::take(&mut held)),
        Err(EnforceError::Create { .. })
    ));
    let closed = Closed {
        why: "because".into(),
        inodes: vec![(1, 2)],
    };
    second.open_closed("a", 1, closed);
    assert_eq!(second.inodes("a"), [(1, 2)]);
    assert!(matches!(second.free_slot("a"), Err(EnforceError::Closed { .. })));
    assert!(
        second
            .vacate("a", SlotIndex::client(1).unwrap(), &mut Vec::new())
            .is_ok()
    );
}

#[test]
fn who_is_refused_asks_others_for_what_they_keep_at_most_once_a_second() {
    let mut ledgers = Ledgers::new(false);
    for account in ["a", "b"] {
        ledgers.open(account, &grants()).unwrap();
    }
    let pressure = |ledgers: &Ledgers, account: &str| {
        let (_, fds) = ledgers.objects(account, None).unwrap();
        View::<ledger::Policy>::open(fds[0]).unwrap().pressure()
    };
    let start = Instant::now();
    let mut press = |full: bool, millis: u64| {
        ledgers.press("a", 0, full, start + Duration::from_millis(millis));
        [pressure(&ledgers, "a"), pressure(&ledgers, "b")]
    };
    assert_eq!(press(false, 0), [1, 0], "a cap is the account's own");
    assert_eq!(press(true, 1), [2, 1]);
    assert_eq!(press(true, 1000), [3, 1]);
    assert_eq!(press(true, 1001), [4, 2]);
}
