//! Loom models: what the operations do under the memory orders they ask for, in every execution loom can find.
//!
//! Run by `RUSTFLAGS="--cfg loom" cargo test -p stint-ledger --lib`. A process "dies" by returning from its thread after
//! a number of steps; the join is the kernel's word that it is dead. Whoever takes part has a thread of its own: loom
//! leaves out interleavings with what the first thread does before it waits.

use crate::doorbell::Doorbell;
use crate::operation::{Operation, Outcome, Table, charge_in, used_in};
use crate::recovery::{Ended, Recovery};
use crate::ring::{Event, Kind, Ring};
use crate::small::{Small, slot};
use crate::sync::Ordering::{Relaxed, Release};
use loom::sync::Arc;
use loom::thread;

/// Steps of an operation that meets nobody; the models kill after each number of them.
const STEPS: usize = 9;

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(if std::env::var_os("STINT_TEST_LONG").is_some() {
        3
    } else {
        2
    });
    builder.check(check);
}

fn operate(table: &Small, index: u32, delta: i64) -> Outcome {
    Operation::new(slot(index), delta, u32::MAX).run(table, &mut ())
}

fn operate_and_die(table: &Small, index: u32, delta: i64, steps: usize) {
    let mut operation = Operation::new(slot(index), delta, u32::MAX);
    for _ in 0..steps {
        if operation.step(table).is_some() {
            return;
        }
    }
}

fn used(table: &Small) -> u64 {
    used_in(table.word.load(Relaxed))
}

fn charge(table: &Small, index: u32) -> u64 {
    charge_in(table.cells(slot(index)).state.load(Relaxed))
}

fn applied(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Applied { .. })
}

#[test]
fn of_two_reservations_that_fit_only_singly_exactly_one_is_granted() {
    model(|| {
        let table = Arc::new(Small::new(3, 3, 7));
        let [one, other] = [1, 2].map(|index| {
            let table = table.clone();
            thread::spawn(move || {
                let granted = applied(operate(&table, index, 2));
                assert!(used(&table) <= 3);
                granted
            })
        });
        let (mine, others) = (one.join().unwrap(), other.join().unwrap());
        assert!(mine != others);
        assert_eq!(used(&table), 2);
        assert_eq!(charge(&table, 1), 2 * u64::from(mine));
        assert_eq!(charge(&table, 2), 2 * u64::from(others));
    });
}

#[test]
fn a_reserver_killed_at_any_step_leaves_nothing_while_another_works() {
    for steps in 0..=STEPS {
        model(move || {
            let table = Arc::new(Small::new(3, 3, (1 << 21) - 2));
            let victim = {
                let table = table.clone();
                thread::spawn(move || operate_and_die(&table, 1, 2, steps))
            };
            let other = {
                let table = table.clone();
                thread::spawn(move || {
                    let granted = applied(operate(&table, 2, 1));
                    assert!(granted, "1 fits beside 2");
                    assert!(applied(operate(&table, 2, -1)));
                })
            };
            let recoverer = {
                let table = table.clone();
                thread::spawn(move || {
                    victim.join().unwrap();
                    Recovery::new(slot(1), u32::MAX).run(&*table, &mut ())
                })
            };
            let ended = recoverer.join().unwrap();
            assert!(matches!(ended, Ended::Vacant { corrupt: false, .. }), "{ended:?}");
            other.join().unwrap();
            assert_eq!(used(&table), 0);
            assert_eq!(charge(&table, 1), 0);
        });
    }
}

#[test]
fn a_recoverer_killed_at_any_step_is_replaced_by_another() {
    for steps in 0..=STEPS + 4 {
        model(move || {
            let table = Arc::new(Small::new(3, 3, 7));
            // Dead between taking effect and recording it.
            operate_and_die(&table, 1, 2, STEPS - 2);
            let other = {
                let table = table.clone();
                thread::spawn(move || applied(operate(&table, 2, 1)))
            };
            let first = {
                let table = table.clone();
                thread::spawn(move || {
                    let mut recovery = Recovery::new(slot(1), u32::MAX);
                    for _ in 0..steps {
                        if recovery.step(&*table).is_some() {
                            return;
                        }
                    }
                })
            };
            let second = {
                let table = table.clone();
                thread::spawn(move || {
                    first.join().unwrap();
                    Recovery::new(slot(1), u32::MAX).run(&*table, &mut ())
                })
            };
            let ended = second.join().unwrap();
            assert!(matches!(ended, Ended::Vacant { corrupt: false, .. }), "{ended:?}");
            assert!(other.join().unwrap());
            assert_eq!(used(&table), 1);
        });
    }
}

#[test]
fn nothing_is_granted_above_a_cap_once_it_is_in_force() {
    model(|| {
        let table = Arc::new(Small::new(2, 3, 7));
        let client = {
            let table = table.clone();
            thread::spawn(move || applied(operate(&table, 1, 2)))
        };
        let daemon = {
            let table = table.clone();
            thread::spawn(move || {
                table.limit.store(1, Release);
                operate(&table, 0, 0)
            })
        };
        let Outcome::Applied { used } = daemon.join().unwrap() else {
            panic!("nothing refuses a fence")
        };
        let granted = client.join().unwrap();
        assert_eq!(granted, used == 2, "granted after the fence, or lost");
    });
}

#[test]
fn an_event_is_read_whole_or_not_yet() {
    let event = |at| Event {
        kind: Kind::Fault,
        function: 3,
        thread: 5,
        at,
        asked: at + 1,
        used: at + 2,
        cap: at + 3,
        detail: at + 4,
    };
    model(move || {
        let ring = Arc::new(Ring::new());
        let producer = {
            let ring = ring.clone();
            thread::spawn(move || assert!(ring.post(event(10)) && ring.post(event(20))))
        };
        let consumer = {
            let ring = ring.clone();
            thread::spawn(move || {
                let mut cursor = ring.cursor();
                let mut read = Vec::new();
                ring.drain(&mut cursor, |event| read.push(event));
                (cursor, read)
            })
        };
        producer.join().unwrap();
        let (mut cursor, mut read) = consumer.join().unwrap();
        ring.drain(&mut cursor, |event| read.push(event));
        assert_eq!(read, [event(10), event(20)]);
    });
}

#[test]
fn a_ring_is_seen_or_wakes_the_sleeper() {
    model(|| {
        let bell = Arc::new(Doorbell::default());
        let ringer = {
            let bell = bell.clone();
            thread::spawn(move || bell.ring())
        };
        let sleeper = {
            let bell = bell.clone();
            thread::spawn(move || {
                let seen = bell.seen();
                (seen, bell.announce(seen))
            })
        };
        ringer.join().unwrap();
        let (seen, sleeps) = sleeper.join().unwrap();
        let rung_since = bell.seen() != seen;
        assert!(
            !(sleeps && rung_since) || bell.nobody_sleeps(),
            "slept through a ring"
        );
    });
}
