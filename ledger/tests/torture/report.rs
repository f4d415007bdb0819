//! What a torture found: its figures, and what they must be.

use crate::arena::Role;
use ledger::operation::Point;

#[derive(Default)]
pub struct Report {
    pub client_kills: u64,
    pub blind_kills: u64,
    pub recoverer_kills: u64,
    pub cap_kills: u64,
    pub recoveries: u64,
    /// Recoveries in which at least one recoverer was killed.
    pub disturbed: u64,
    pub cap_changes: u64,
    pub operations: u64,
    pub refusals: u64,
    pub events: u64,
    pub unreadable: u64,
    pub overshoots: u64,
    pub negative: u64,
    /// Recoveries that gave back something else than the client held.
    pub wrong_amounts: u64,
    pub residual: u64,
    pub steps: Vec<(Role, Point, u64)>,
    /// Kills of each step that were planned.
    pub each: u64,
}

impl Report {
    pub fn kills(&self) -> u64 {
        self.client_kills + self.recoverer_kills + self.cap_kills
    }

    /// Nothing went wrong.
    pub fn is_clean(&self) -> bool {
        self.overshoots + self.negative + self.wrong_amounts + self.residual + self.unreadable == 0
    }

    pub fn print(&self) {
        println!(
            "kills {} (clients {}, of them at any instruction {}; recoverers {}; cap changes {}), operations {}, refusals {}",
            self.kills(),
            self.client_kills,
            self.blind_kills,
            self.recoverer_kills,
            self.cap_kills,
            self.operations,
            self.refusals,
        );
        println!(
            "recoveries {}, with a killed recoverer {} ({} %); cap changes {}; events {} read, {} unreadable",
            self.recoveries,
            self.disturbed,
            100 * self.disturbed / self.recoveries.max(1),
            self.cap_changes,
            self.events,
            self.unreadable,
        );
        for (role, point, kills) in &self.steps {
            println!("  {role:?} {point:?}: {kills}");
        }
        println!(
            "overshoots {}, negative {}, wrong amounts {}, residual {}",
            self.overshoots, self.negative, self.wrong_amounts, self.residual
        );
    }

    pub fn must_be_clean(&self) {
        assert_eq!(self.overshoots, 0, "overshoots");
        assert_eq!(self.negative, 0, "negative amounts");
        assert_eq!(self.wrong_amounts, 0, "wrong amounts");
        assert_eq!(self.residual, 0, "bytes left at the end");
        assert_eq!(self.unreadable, 0, "torn events");
        assert!(
            5 * self.disturbed >= self.recoveries,
            "too few recoverers were killed"
        );
        for (role, point, kills) in &self.steps {
            assert!(
                *kills >= self.each,
                "{role:?} was killed only {kills} times at {point:?}"
            );
        }
    }
}

/// Whether a player of `role` on an account nobody falsified comes to `point`.
pub fn reached(role: Role, point: Point) -> bool {
    use Point::{
        Announce, Commit, ConfirmFull, ConfirmWord, Drop, FindCommitted, FindPending, FindState, FindWord,
        Help, Keep, ReadCommitted, ReadLimit, ReadState, ReadWord, Record, Vacate, Withdraw, WriteOff,
    };
    match point {
        ReadState | Announce | ReadWord | ReadCommitted | ConfirmWord | Help | Commit | Record => true,
        ReadLimit | ConfirmFull | Withdraw => role == Role::Client,
        FindState | FindPending | FindWord | FindCommitted | Keep | Drop | Vacate => role != Role::Client,
        WriteOff => false,
    }
}
