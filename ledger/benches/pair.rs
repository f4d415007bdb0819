//! Criterion time of the pair that every allocation and its free make: reserve, release. Goal: at most 240 ns.
//!
//! `alone`: the only client that works. `beside another`: a second client works on the same account as fast as it can.

use criterion::{Criterion, criterion_group, criterion_main};
use ledger::{Account, Client, Daemon, Mapping, Mode, Owner, Policy, SlotIndex, mapping};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

const CAP: u64 = 1 << 33;
const SIZE: u64 = 2 << 20;

fn account() -> (Mapping<Policy>, Mapping<Account>) {
    let (_, policy) = mapping::create::<Policy>(c"policy").expect("a memfd for the policy");
    let (_, account) = mapping::create::<Account>(c"account").expect("a memfd for the account");
    let mut daemon = Daemon::new(&policy, &account);
    daemon.set_cap(CAP, Mode::Enforce).expect("nobody else is here");
    for index in 1..3 {
        daemon
            .claim(
                slot(index),
                &Owner {
                    pid: index,
                    start_time: 0,
                    nonce: 0,
                },
            )
            .expect("a vacant slot");
    }
    (policy, account)
}

fn slot(index: u32) -> SlotIndex {
    SlotIndex::client(index).expect("below 1024")
}

fn pair(client: &mut Client<'_>) {
    client.reserve(black_box(SIZE)).expect("it fits");
    client.release(black_box(SIZE)).expect("it was reserved");
}

fn benches(criterion: &mut Criterion) {
    let (policy, account) = account();
    let mut client = Client::new(&policy, &account, slot(1));
    criterion.bench_function("reserve and release, alone", |bencher| {
        bencher.iter(|| pair(&mut client))
    });

    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = Client::new(&policy, &account, slot(2));
            while !stop.load(Ordering::Relaxed) {
                pair(&mut other);
            }
        });
        criterion.bench_function("reserve and release, beside another", |bencher| {
            bencher.iter(|| pair(&mut client));
        });
        stop.store(true, Ordering::Relaxed);
    });
}

criterion_group!(group, benches);
criterion_main!(group);
