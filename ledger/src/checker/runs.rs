//! What is checked: the models explored, and the sabotage that must not go unnoticed.

use super::Checker;
use super::world::{Model, Sabotage};
use crate::operation::Point;

fn holds(model: Model) -> Checker {
    match Checker::explore(model) {
        Ok(checker) => {
            println!("{} states", checker.visited.len());
            checker
        }
        Err(violation) => panic!("{violation}"),
    }
}

fn is_caught(sabotage: Sabotage, model: Model) {
    let violation = Checker::explore(Model { sabotage, ..model }).err();
    assert!(violation.is_some(), "{sabotage:?} went unnoticed");
    println!("{sabotage:?}: {}", violation.unwrap_or_default());
}

fn long() -> bool {
    std::env::var_os("STINT_TEST_LONG").is_some()
}

#[test]
fn two_clients_two_kills_and_two_killed_recoverers() {
    let sizes: &[u64] = if long() { &[2, 1] } else { &[2] };
    let checker = holds(Model {
        sizes,
        kills: 2,
        recoverer_kills: 2,
        ..Model::default()
    });
    for point in Point::ALL {
        let reached = checker.points.contains(&(false, point)) || checker.points.contains(&(true, point));
        assert_eq!(reached, point != Point::WriteOff, "{point:?}");
    }
}

#[test]
fn numbers_that_wrap() {
    for operations in [(1 << 21) - 2, (1 << 21) - 3, (5 << 21) - 2, (1 << 16) - 2] {
        holds(Model {
            operations,
            ..Model::default()
        });
    }
}

#[test]
fn a_cap_that_is_lowered_and_raised_again() {
    // Lowered so that one still fits, and then none: a refusal must be true of one instant.
    let model = |caps| Model {
        caps,
        cap: 5,
        kills: 0,
        ..Model::default()
    };
    holds(model(&[3, 1]));
    if long() {
        holds(model(&[1, 3]));
        holds(Model {
            caps: &[1, 3],
            ..Model::default()
        });
    }
}

#[test]
fn three_clients_one_of_them_killed() {
    let extra = u8::from(long());
    holds(Model {
        clients: 3,
        kills: 1 + extra,
        recoverer_kills: extra,
        ..Model::default()
    });
}

#[test]
fn an_impatient_daemon_loses_nothing() {
    holds(Model {
        retries: 0,
        ..Model::default()
    });
}

#[test]
fn every_precaution_is_needed() {
    let many = || Model {
        sizes: &[1, 2],
        kills: 2,
        ..Model::default()
    };
    for sabotage in [
        Sabotage::NoHelp,
        Sabotage::IgnoreWord,
        Sabotage::IgnoreCommitted,
        Sabotage::CommittedFirst,
    ] {
        is_caught(sabotage, many());
    }
    is_caught(Sabotage::NoRelease, many());
    is_caught(Sabotage::ThroughDaemon, many());
    is_caught(
        Sabotage::NoFence,
        Model {
            caps: &[1],
            kills: 0,
            ..Model::default()
        },
    );
    is_caught(
        Sabotage::HastyRefusal,
        Model {
            caps: &[3, 1],
            clients: 2,
            kills: 0,
            cap: 5,
            ..Model::default()
        },
    );
}
