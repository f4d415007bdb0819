//! A tenant that writes nonsense into its account: the daemon ends every call, panics on none, and believes no index.

use crate::setup::{Pair, owner, slot};
use ledger::layout::{GRANULE, MAX_GRANULES};
use ledger::slot::Class;
use ledger::{Account, Client, Mode};
use proptest::prelude::*;
use rustix::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Everything the daemon ever does with an account.
pub fn exercise(pair: &Pair) {
    let mut daemon = pair.daemon();
    for cap in [0, 4096, u64::MAX] {
        let _ = daemon.set_cap(cap, Mode::Enforce);
    }
    assert!(pair.account.used() <= MAX_GRANULES * GRANULE);
    assert!(pair.account.peak() <= MAX_GRANULES * GRANULE);
    assert!(pair.account.occupied().count() <= 1023);
    for index in [1, 2, 1023] {
        let page = pair.account.slot(slot(index));
        let _ = (
            page.owner(),
            page.charge(),
            page.launches(),
            page.class_bytes(Class::Device),
            page.dropped_events(),
        );
        let mut cursor = daemon.cursor(slot(index));
        for _ in 0..3 {
            let mut count = 0;
            let drained = daemon.drain(slot(index), &mut cursor, |_| count += 1);
            assert_eq!(count, drained.events);
            assert!(drained.events + drained.unreadable <= 1 + ledger::ring::CAPACITY);
        }
        if daemon.recover(slot(index)).is_ok() && daemon.claim(slot(index), &owner(index)).is_ok() {
            let mut client = Client::new(&pair.policy, &pair.account, slot(index));
            let _ = (
                client.reserve(4096),
                client.release(4096),
                client.release(u64::MAX),
            );
        }
    }
}

pub fn overwrite(fd: impl AsFd, place: u64, bytes: &[u8]) {
    assert_eq!(rustix::io::pwrite(fd, bytes, place), Ok(bytes.len()));
}

/// Places worth lying at: the word, the bell, the peak, the bits, and all of a slot's page.
fn place() -> impl Strategy<Value = u64> {
    let header = (8u64..48).prop_map(|word| 8 * word);
    let page = (prop_oneof![Just(0u64), Just(1), Just(2), Just(1023)], 0u64..512);
    prop_oneof![header, page.prop_map(|(slot, word)| 4096 * (1 + slot) + 8 * word)]
}

/// Values worth lying with: small, huge, and honest-looking words.
fn value() -> impl Strategy<Value = u64> {
    let word = (0u64..1 << 33, 0u64..1024, 0u64..1 << 21)
        .prop_map(|(used, slot, number)| used << 31 | slot << 21 | number);
    prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0u64..100, word]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_lie_is_survived(lies in prop::collection::vec((place(), value()), 1..40)) {
        let pair = Pair::new(1 << 20);
        pair.client(1).reserve(4096).expect("it fits");
        for (place, value) in lies {
            overwrite(&pair.account_fd, place, &value.to_le_bytes());
        }
        exercise(&pair);
    }
}

#[test]
fn noise_over_the_whole_account_is_survived() {
    let mut state = 1u64;
    for _ in 0..8 {
        let pair = Pair::new(1 << 20);
        let noise: Vec<u8> = (0..size_of::<Account>() / 8)
            .flat_map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state ^ state >> 29).to_le_bytes()
            })
            .collect();
        overwrite(&pair.account_fd, 0, &noise);
        exercise(&pair);
    }
}

#[test]
fn a_tenant_that_never_stops_writing_cannot_hold_the_daemon_up() {
    let pair = Pair::new(1 << 20);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 1..3u64 {
            let (pair, stop) = (&pair, &stop);
            scope.spawn(move || {
                let mut turn = seed;
                while !stop.load(Ordering::Relaxed) {
                    turn = turn.wrapping_add(0x9e37_79b9_7f4a_7c15);
                    for place in [
                        64,
                        4096 + 4096,
                        4096 + 4096 + 8,
                        4096 + 4096 + 64,
                        2 * 4096 + 2048 - 128,
                    ] {
                        overwrite(&pair.account_fd, place, &turn.to_le_bytes());
                    }
                }
            });
        }
        for _ in 0..200 {
            exercise(&pair);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_falsified_charge_is_written_off_and_said_so() {
    let pair = Pair::new(1 << 20);
    pair.client(1).reserve(4096).expect("it fits");
    // The slot claims to hold far more than the account uses.
    overwrite(
        &pair.account_fd,
        2 * 4096,
        &((1u64 << 32) << 21 | 1).to_le_bytes(),
    );
    let recovered = pair.daemon().recover(slot(1)).expect("nobody else is here");
    assert!(recovered.corrupt);
    assert_eq!((recovered.released, pair.account.slot(slot(1)).charge()), (0, 0));
    assert!(pair.account.used() <= 4096, "nothing went below zero");
}

#[test]
fn a_falsified_operation_in_progress_is_noticed() {
    let pair = Pair::new(1 << 20);
    pair.client(1).reserve(4096).expect("it fits");
    // "Giving back a hundred granules", of eight, under the number after the last; and the word says it took effect.
    overwrite(
        &pair.account_fd,
        2 * 4096 + 8,
        &((-100i64 << 21).cast_unsigned() | 2).to_le_bytes(),
    );
    overwrite(&pair.account_fd, 64, &(8u64 << 31 | 1 << 21 | 2).to_le_bytes());
    let recovered = pair.daemon().recover(slot(1)).expect("nobody else is here");
    assert!(recovered.corrupt);
    assert_eq!(recovered.released, 0);
}
