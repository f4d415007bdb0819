//! Charges, caps, slots and events of one account.

use crate::setup::{Crowd, Pair, owner, slot};
use ledger::account::{Recovered, Refusal, ReleaseError};
use ledger::layout::{GRANULE, MAX_GRANULES};
use ledger::operation::Operation;
use ledger::ring::{CAPACITY, Event, Kind, Reason};
use ledger::slot::{Class, SlotSet};
use ledger::{Client, Mode, SlotIndex};

const MIB: u64 = 1 << 20;

fn event(at: u64) -> Event {
    let kind = Kind::Refused(Reason::Cap);
    Event {
        kind,
        function: 7,
        thread: 8,
        at,
        asked: 1,
        used: 2,
        cap: 3,
        detail: 4,
    }
}

#[test]
fn a_request_that_does_not_fit_is_refused_and_changes_nothing() {
    let pair = Pair::new(10 * MIB);
    let mut client = pair.client(1);
    assert_eq!(client.reserve(6 * MIB), Ok(()));
    let refusal = Refusal::Full {
        asked: 5 * MIB,
        used: 6 * MIB,
        limit: 10 * MIB,
    };
    assert_eq!(client.reserve(5 * MIB), Err(refusal));
    assert_eq!((pair.account.used(), client.charge()), (6 * MIB, 6 * MIB));
    assert_eq!(client.reserve(4 * MIB), Ok(()), "exactly the cap fits");
    assert_eq!(client.release(10 * MIB), Ok(()));
    assert_eq!((pair.account.used(), pair.account.peak()), (0, 10 * MIB));
}

#[test]
fn an_account_without_a_cap_in_force_grants_nothing() {
    let (_, policy) = ledger::mapping::create(c"policy").expect("a memfd");
    let (_, account) = ledger::mapping::create(c"account").expect("a memfd");
    assert!(Client::new(&policy, &account, slot(1)).reserve(1).is_err());
}

#[test]
fn amounts_round_up_to_a_granule_and_caps_down() {
    let pair = Pair::new(3 * GRANULE - 1);
    let mut client = pair.client(1);
    assert_eq!(pair.policy.cap(), 3 * GRANULE - 1);
    assert_eq!(pair.policy.limit(), 2 * GRANULE);
    assert_eq!(client.reserve(1), Ok(()));
    assert_eq!(pair.account.used(), GRANULE);
    assert!(client.reserve(GRANULE + 1).is_err());
    assert_eq!(client.release(GRANULE), Ok(()));
}

#[test]
fn nothing_asked_for_is_granted_and_charges_nothing() {
    let pair = Pair::new(0);
    let mut client = pair.client(1);
    assert_eq!(client.reserve(0), Ok(()));
    assert_eq!(client.release(0), Ok(()));
    assert!(client.reserve(1).is_err());
}

#[test]
fn sizes_near_the_end_of_the_number_range_are_refused() {
    let pair = Pair::new(u64::MAX);
    let mut client = pair.client(1);
    let most = MAX_GRANULES * GRANULE;
    assert_eq!(pair.policy.limit(), most);
    for bytes in [u64::MAX, u64::MAX - 511, u64::MAX - 512, 1 << 63, most + 1] {
        assert!(
            matches!(client.reserve(bytes), Err(Refusal::Full { used: 0, .. })),
            "{bytes}"
        );
        assert_eq!(client.release(bytes), Err(ReleaseError::Short), "{bytes}");
    }
    assert_eq!(client.reserve(most), Ok(()));
    for bytes in [1, most, u64::MAX] {
        assert!(
            matches!(client.reserve(bytes), Err(Refusal::Full { .. })),
            "{bytes} on top"
        );
    }
    assert_eq!(client.release(most), Ok(()));
    assert_eq!(pair.account.used(), 0);
}

#[test]
fn more_than_is_held_cannot_be_given_back() {
    let pair = Pair::new(10 * MIB);
    let (mut one, mut other) = (pair.client(1), pair.client(2));
    assert_eq!((one.reserve(MIB), other.reserve(MIB)), (Ok(()), Ok(())));
    assert_eq!(one.release(2 * MIB), Err(ReleaseError::Short));
    assert_eq!(one.release(MIB), Ok(()));
    assert_eq!(
        one.release(MIB),
        Err(ReleaseError::Short),
        "not a second time either"
    );
    assert_eq!((pair.account.used(), other.charge()), (MIB, MIB));
}

#[test]
fn numbers_wrap_without_a_trace() {
    let pair = Pair::new(MIB);
    let (mut one, mut other) = (pair.client(1), pair.client(2));
    assert_eq!(other.reserve(GRANULE), Ok(()));
    for turn in 0..(1 << 21) + 10 {
        assert_eq!(one.reserve(MIB - GRANULE), Ok(()), "{turn}");
        if turn % 4096 == 0 {
            assert!(other.reserve(GRANULE).is_err(), "{turn}");
        }
        assert_eq!(one.release(MIB - GRANULE), Ok(()), "{turn}");
    }
    assert_eq!(pair.account.used(), GRANULE);
    assert_eq!(
        pair.daemon().recover(slot(2)).map(|recovered| recovered.released),
        Ok(GRANULE)
    );
    assert_eq!(pair.account.used(), 0);
}

#[test]
fn an_operation_is_not_taken_for_the_one_of_the_same_number_a_lap_before() {
    // Nobody else works here, so that nobody remembers for this client what it committed: its own refresh has to.
    let pair = Pair::new(MIB);
    let mut client = pair.client(1);
    for _ in 0..(1 << 20) - 1 {
        assert_eq!((client.reserve(MIB), client.release(MIB)), (Ok(()), Ok(())));
    }
    assert_eq!(client.reserve(MIB), Ok(()));
    // Killed before taking effect, under the number that the slot was claimed with.
    let table = pair.daemon().table();
    let mut operation = Operation::new(slot(1), -1, 0);
    assert_eq!((operation.step(&table), operation.step(&table)), (None, None));
    assert_eq!(
        pair.daemon().recover(slot(1)),
        Ok(Recovered {
            released: MIB,
            corrupt: false
        })
    );
    assert_eq!(pair.account.used(), 0);
}

#[test]
fn a_lowered_cap_refuses_from_then_on_and_takes_nothing_away() {
    let pair = Pair::new(10 * MIB);
    let mut client = pair.client(1);
    assert_eq!(client.reserve(8 * MIB), Ok(()));
    assert_eq!(pair.daemon().set_cap(4 * MIB, Mode::Enforce), Ok(8 * MIB));
    assert!(client.reserve(1).is_err());
    assert_eq!(client.release(5 * MIB), Ok(()));
    assert_eq!(client.reserve(MIB), Ok(()));
    assert!(client.reserve(1).is_err());
    assert_eq!(pair.daemon().set_cap(5 * MIB, Mode::Enforce), Ok(4 * MIB));
    assert_eq!(client.reserve(MIB), Ok(()));
}

#[test]
fn observing_charges_everything_and_refuses_nothing() {
    let pair = Pair::new(MIB);
    let mut client = pair.client(1);
    assert_eq!(pair.daemon().set_cap(MIB, Mode::Observe), Ok(0));
    assert_eq!(client.reserve(5 * MIB), Ok(()));
    assert_eq!(
        (pair.policy.cap(), pair.policy.mode(), pair.account.used()),
        (MIB, Mode::Observe, 5 * MIB)
    );
    assert_eq!(pair.daemon().set_cap(MIB, Mode::Enforce), Ok(5 * MIB));
    assert!(client.reserve(1).is_err());
}

#[test]
fn the_cap_is_for_all_clients_together() {
    for count in [1, 2, 17, 300] {
        let pair = Pair::new(100 * MIB);
        for index in 1..=count {
            pair.claim(index);
        }
        let crowd = Crowd::gather(count, |number| {
            let mut client = Client::new(&pair.policy, &pair.account, slot(number));
            (0..100).filter(|_| client.reserve(MIB).is_ok()).count() as u8
        });
        let granted: u64 = crowd.results().into_iter().map(u64::from).sum();
        assert_eq!(granted, 100, "{count} clients");
        assert_eq!((pair.account.used(), pair.account.peak()), (100 * MIB, 100 * MIB));
        // All dead now.
        for index in 1..=count {
            assert!(pair.daemon().recover(slot(index)).is_ok());
        }
        assert_eq!(pair.account.used(), 0);
    }
}

#[test]
fn of_many_that_want_the_last_block_exactly_one_gets_it() {
    for _ in 0..20 {
        let pair = Pair::new(10 * MIB);
        for index in 1..=65 {
            pair.claim(index);
        }
        assert_eq!(
            Client::new(&pair.policy, &pair.account, slot(65)).reserve(9 * MIB),
            Ok(())
        );
        let crowd = Crowd::gather(64, |number| {
            u8::from(
                Client::new(&pair.policy, &pair.account, slot(number))
                    .reserve(MIB)
                    .is_ok(),
            )
        });
        assert_eq!(crowd.results().into_iter().filter(|won| *won == 1).count(), 1);
        assert_eq!(pair.account.peak(), 10 * MIB);
    }
}

#[test]
fn the_charges_of_others_survive_a_recovery() {
    let pair = Pair::new(10 * MIB);
    let (mut first, mut middle, mut last) = (pair.client(1), pair.client(2), pair.client(3));
    assert_eq!(
        (first.reserve(MIB), middle.reserve(2 * MIB), last.reserve(3 * MIB)),
        (Ok(()), Ok(()), Ok(()))
    );
    let recovered = pair.daemon().recover(slot(2)).expect("nobody else is here");
    assert_eq!((recovered.released, recovered.corrupt), (2 * MIB, false));
    for _ in 0..10_000 {
        assert_eq!((first.reserve(MIB), last.reserve(MIB)), (Ok(()), Ok(())));
        assert_eq!((first.release(MIB), last.release(MIB)), (Ok(()), Ok(())));
    }
    assert_eq!(
        (first.charge(), last.charge(), pair.account.used()),
        (MIB, 3 * MIB, 4 * MIB)
    );
}

#[test]
fn a_recovered_slot_is_vacant_and_recovering_it_again_changes_nothing() {
    let pair = Pair::new(10 * MIB);
    let mut client = pair.client(5);
    client.reserve(MIB).expect("it fits");
    client.note(Class::Pool, 4096);
    assert_eq!(pair.account.slot(slot(5)).owner(), Some(owner(5)));
    assert_eq!(pair.account.occupied().collect::<Vec<_>>(), [slot(5)]);
    for released in [MIB, 0] {
        assert_eq!(
            pair.daemon().recover(slot(5)).map(|recovered| recovered.released),
            Ok(released)
        );
        assert_eq!(pair.account.slot(slot(5)).owner(), None);
        assert_eq!(pair.account.occupied().count(), 0);
    }
    pair.claim(5);
    assert_eq!(
        pair.account.slot(slot(5)).class_bytes(Class::Pool),
        0,
        "a new owner begins at zero"
    );
}

#[test]
fn five_thousand_short_lives_use_one_slot() {
    let pair = Pair::new(MIB);
    let mut taken = SlotSet::new();
    for _ in 0..5000 {
        let slot = taken.take().expect("a free slot");
        assert_eq!(slot, SlotIndex::client(1).expect("the first"));
        let mut client = pair.client(1);
        assert_eq!(client.reserve(MIB), Ok(()));
        assert_eq!(
            pair.daemon().recover(slot).map(|recovered| recovered.released),
            Ok(MIB)
        );
        assert!(taken.remove(slot));
    }
}

#[test]
fn slots_run_out_after_1023() {
    let mut taken = SlotSet::new();
    for expected in 1..=1023 {
        assert_eq!(taken.take(), SlotIndex::client(expected));
    }
    assert_eq!(taken.take(), None);
    assert!(taken.remove(slot(500)) && !taken.remove(slot(500)));
    assert_eq!(taken.take(), SlotIndex::client(500));
    for number in [0, 1024, u32::MAX] {
        assert_eq!(SlotIndex::client(number), None);
    }
}

#[test]
fn counters_say_what_a_charge_is_for_and_stop_at_zero() {
    let pair = Pair::new(10 * MIB);
    let mut client = pair.client(1);
    client.note(Class::Device, 4096);
    client.note(Class::Host, 512);
    client.note(Class::Device, -1096);
    client.note(Class::Host, -1000);
    client.launches().fetch_add(3, ledger::sync::Ordering::Relaxed);
    let page = pair.account.slot(slot(1));
    assert_eq!(
        (page.class_bytes(Class::Device), page.class_bytes(Class::Host)),
        (3000, 0)
    );
    assert_eq!((page.launches(), pair.account.used()), (3, 0));
}

#[test]
fn events_arrive_in_order_and_a_full_ring_counts_what_it_drops() {
    let pair = Pair::new(MIB);
    let mut cursor = pair.daemon().claim(slot(1), &owner(1)).expect("a vacant slot");
    let mut client = Client::new(&pair.policy, &pair.account, slot(1));
    for round in 0..5 {
        let numbers: Vec<u64> = (100 * round..100 * round + u64::from(CAPACITY)).collect();
        for at in &numbers {
            assert!(client.post(event(*at)));
        }
        assert!(!client.post(event(0)) && !client.post(event(0)));
        let mut seen = Vec::new();
        let drained = pair
            .daemon()
            .drain(slot(1), &mut cursor, |event| seen.push(event));
        assert_eq!((drained.events, drained.unreadable), (CAPACITY, 0));
        assert_eq!(seen, numbers.into_iter().map(event).collect::<Vec<_>>());
        assert_eq!(pair.account.slot(slot(1)).dropped_events(), 2 * (round + 1));
    }
    assert_eq!(
        pair.daemon().cursor(slot(1)),
        cursor,
        "a new daemon goes on where the old one stopped"
    );
    assert_eq!(pair.daemon().drain(slot(1), &mut cursor, |_| ()).events, 0);
}
