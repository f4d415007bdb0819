//! The referee: starts players, waits for their deaths, has the dead recovered, changes the cap, and counts.

use crate::arena::{Arena, HIGH, LOW, PLAYERS, ROLES, Random, Role, slot};
use crate::player::{self, Order};
use crate::report::{Report, reached};
use ledger::operation::Point;
use ledger::recovery::{Ended, Recovery};
use ledger::ring::Cursor;
use ledger::{Mode, Owner};
use std::sync::atomic::Ordering::SeqCst;

/// How long a torture goes on: until both are reached.
pub struct Plan {
    pub kills: u64,
    /// Kills of each step, in each role that comes to it.
    pub each: u64,
}

/// Who empties the dead clients' slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recoverer {
    /// The crate, killed itself every other time.
    Honest,
    /// One that does not look at the word.
    IgnoresWord,
    /// One that does not look at the dead slot's `committed`.
    IgnoresCommitted,
}

#[derive(Clone, Copy)]
struct Player {
    pid: libc::pid_t,
    /// It has an order to kill itself.
    ordered: bool,
    cursor: Cursor,
}

struct Referee {
    arena: Arena,
    random: Random,
    players: Vec<Player>,
    report: Report,
    recoverer: Recoverer,
    deaths: Deaths,
    /// The number each slot's next event must carry, while its owner lives.
    next_event: [u64; PLAYERS + 1],
}

pub fn run(plan: &Plan, recoverer: Recoverer) -> Report {
    let arena = Arena::new();
    arena
        .daemon()
        .set_cap(HIGH, Mode::Enforce)
        .expect("nobody else is here");
    arena.board.cap.store(HIGH, SeqCst);
    let report = Report {
        each: plan.each,
        ..Report::default()
    };
    let mut referee = Referee {
        arena,
        random: Random::new(20_260_101),
        players: Vec::new(),
        report,
        recoverer,
        deaths: Deaths::listen(),
        next_event: [0; PLAYERS + 1],
    };
    for index in 1..=PLAYERS {
        let player = referee.start(index);
        referee.players.push(player);
    }
    while referee.report.kills() < plan.kills || referee.rarest_kills() < plan.each {
        referee.round();
    }
    referee.finish()
}

impl Referee {
    fn round(&mut self) {
        let index = self.next_death();
        self.bury(index);
        self.players[index - 1] = self.start(index);
        if self.random.below(3) == 0 {
            self.change_cap();
        }
    }

    /// Waits for a client to kill itself, or kills one wherever it is: now and then, and when nobody comes to the step
    /// it is to die at. (Where a sabotaged recovery has leaked the whole cap, nothing is ever granted again.)
    fn next_death(&mut self) -> usize {
        let ordered = self.players.iter().any(|player| player.ordered);
        let mut patient = ordered && self.random.below(4) != 0;
        while patient {
            if let Some((pid, _)) = wait(-1, libc::WNOHANG) {
                self.report.client_kills += 1;
                let place = self.players.iter().position(|player| player.pid == pid);
                return 1 + place.expect("only clients run now");
            }
            patient = self.deaths.next();
        }
        let index = 1 + self.random.below(PLAYERS as u64) as usize;
        self.kill(index);
        index
    }

    fn kill(&mut self, index: usize) {
        let pid = self.players[index - 1].pid;
        // SAFETY: a child of ours that was not waited for, so the pid is its own.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        wait(pid, 0);
        self.report.client_kills += 1;
        self.report.blind_kills += 1;
    }

    fn start(&mut self, index: usize) -> Player {
        let owner = Owner {
            pid: index as u32,
            start_time: 1,
            nonce: 1,
        };
        let cursor = self
            .arena
            .daemon()
            .claim(slot(index), &owner)
            .expect("an honest account");
        let truth = &self.arena.board.truth[index];
        truth.held.store(0, SeqCst);
        truth.delta.store(0, SeqCst);
        truth.died_at.store(0, SeqCst);
        self.next_event[index] = 0;
        let order = (self.random.below(4) != 0).then(|| self.order(Role::Client));
        let seed = self.random.below(u64::MAX);
        let arena = &self.arena;
        let pid = player::fork(|| player::client(arena, index, order, seed));
        Player {
            pid,
            ordered: order.is_some(),
            cursor,
        }
    }

    /// An order for the step killed least so far, or for any.
    fn order(&mut self, role: Role) -> Order {
        let points: Vec<Point> = Point::ALL
            .into_iter()
            .filter(|point| reached(role, *point))
            .collect();
        let point = if self.random.below(2) == 0 {
            points[self.random.below(points.len() as u64) as usize]
        } else {
            let kills = |point: &Point| self.arena.board.kills(role, *point).load(SeqCst);
            points
                .into_iter()
                .min_by_key(kills)
                .expect("every role has steps")
        };
        let rare =
            role != Role::Client || matches!(point, Point::Help | Point::ConfirmFull | Point::Withdraw);
        let countdown = if rare { 1 } else { 1 + self.random.below(40) };
        Order { point, countdown }
    }

    /// Has a dead client recovered, and checks that what it gave back is what it held.
    fn bury(&mut self, index: usize) {
        self.drain(index);
        let mut disturbed = false;
        if self.recoverer == Recoverer::Honest {
            while self.random.below(3) != 0 {
                let (order, seed) = (self.order(Role::Recoverer), self.random.below(u64::MAX));
                let arena = &self.arena;
                let pid = player::fork(|| player::recoverer(arena, index, order, seed));
                if !was_killed(pid) {
                    break;
                }
                self.report.recoverer_kills += 1;
                disturbed = true;
            }
        }
        self.report.recoveries += 1;
        self.report.disturbed += u64::from(disturbed);
        let before = self.arena.account.slot(slot(index)).owner();
        let released = match self.recoverer {
            Recoverer::Honest => {
                self.arena
                    .daemon()
                    .recover(slot(index))
                    .expect("an honest account")
                    .released
            }
            wrong => self.recover_wrongly(index, wrong),
        };
        // Only a recovery that did all of the work itself knows the whole amount.
        if before.is_some() && !disturbed && !self.may_have_held(index, released) {
            self.report.wrong_amounts += 1;
        }
    }

    fn may_have_held(&self, index: usize, released: u64) -> bool {
        let truth = &self.arena.board.truth[index];
        let held = truth.held.load(SeqCst);
        let with = held.wrapping_add(truth.delta.load(SeqCst));
        match truth.died_at.load(SeqCst) {
            // From outside, at any instruction.
            0 => released == held || released == with,
            step if step == Point::Record as u64 + 1 => released == with,
            _ => released == held,
        }
    }

    fn recover_wrongly(&self, index: usize, wrong: Recoverer) -> u64 {
        let other = Arena::new();
        let (blind, table) = (other.daemon().table(), self.arena.daemon().table());
        // A number no operation here comes near, so that nothing is found by it.
        let mut recovery = Recovery::new(slot(index), u32::MAX);
        loop {
            let ended = match (wrong, recovery.point()) {
                (Recoverer::IgnoresWord, Point::FindWord)
                | (Recoverer::IgnoresCommitted, Point::FindCommitted) => recovery.step(&blind),
                _ => recovery.step(&table),
            };
            if let Some(Ended::Vacant { released, .. }) = ended {
                return 512 * released;
            }
        }
    }

    /// Reads the events of a dead client: numbered without a gap, each whole.
    fn drain(&mut self, index: usize) {
        let mut cursor = self.players[index - 1].cursor;
        let (next, mut wrong) = (&mut self.next_event[index], 0);
        let drained = self.arena.daemon().drain(slot(index), &mut cursor, |event| {
            wrong += u64::from(event.at != *next || event.detail != !*next);
            *next += 1;
        });
        self.report.events += u64::from(drained.events);
        self.report.unreadable += u64::from(drained.unreadable) + wrong;
    }

    /// Changes the cap, with changers killed on the way; then watches that nothing is granted above a lower one.
    fn change_cap(&mut self) {
        let cap = if self.arena.policy.cap() == HIGH {
            LOW
        } else {
            HIGH
        };
        let board = &self.arena.board;
        board.epoch.fetch_add(1, SeqCst);
        let mut killed = 0;
        while self.random.below(3) != 0 {
            let (order, seed) = (self.order(Role::CapChange), self.random.below(u64::MAX));
            let arena = &self.arena;
            if was_killed(player::fork(|| player::cap_changer(arena, cap, order, seed))) {
                killed += 1;
            }
        }
        self.report.cap_kills += killed;
        let mut ceiling = self
            .arena
            .daemon()
            .set_cap(cap, Mode::Enforce)
            .expect("an honest account")
            .max(cap);
        let board = &self.arena.board;
        board.cap.store(ceiling, SeqCst);
        board.epoch.fetch_add(1, SeqCst);
        for _ in 0..200 {
            let used = self.arena.account.used();
            if used > ceiling {
                board.overshoots.fetch_add(1, SeqCst);
            }
            ceiling = ceiling.min(used).max(cap);
        }
        self.report.cap_changes += 1;
    }

    fn rarest_kills(&self) -> u64 {
        self.steps().map(|(_, _, kills)| kills).min().unwrap_or(0)
    }

    fn steps(&self) -> impl Iterator<Item = (Role, Point, u64)> + '_ {
        let board = &self.arena.board;
        ROLES.into_iter().flat_map(move |role| {
            let points = Point::ALL.into_iter().filter(move |point| reached(role, *point));
            points.map(move |point| (role, point, board.kills(role, point).load(SeqCst)))
        })
    }

    fn finish(mut self) -> Report {
        for index in 1..=PLAYERS {
            self.kill(index);
            self.bury(index);
        }
        let board = &self.arena.board;
        if self.arena.account.peak() > HIGH {
            board.overshoots.fetch_add(1, SeqCst);
        }
        let steps = self.steps().collect();
        Report {
            operations: board.operations.load(SeqCst),
            refusals: board.refusals.load(SeqCst),
            overshoots: board.overshoots.load(SeqCst),
            negative: board.negative.load(SeqCst),
            residual: self.arena.account.used(),
            steps,
            ..self.report
        }
    }
}

/// The signal that a child ended, kept back so that it can be waited for.
struct Deaths(libc::sigset_t);

impl Deaths {
    fn listen() -> Self {
        let mut set = std::mem::MaybeUninit::uninit();
        // SAFETY: `sigemptyset` initialises the set; the rest works on it and on this thread's mask.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
            libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
            Deaths(set.assume_init())
        }
    }

    /// Waits for a child to end; false when for a fifth of a second none does.
    fn next(&self) -> bool {
        let fifth = libc::timespec {
            tv_sec: 0,
            tv_nsec: 200_000_000,
        };
        // SAFETY: reads the set and the time; no information on the signal is asked for.
        unsafe {
            libc::sigtimedwait(&raw const self.0, std::ptr::null_mut(), &raw const fifth) == libc::SIGCHLD
        }
    }
}

/// Waits for a child to end; true when a signal ended it.
pub fn was_killed(pid: libc::pid_t) -> bool {
    wait(pid, 0).is_some_and(|(_, status)| libc::WIFSIGNALED(status))
}

/// The pid and status of a child that ended; -1 stands for any child. `None` when `flags` say not to wait.
fn wait(pid: libc::pid_t, flags: libc::c_int) -> Option<(libc::pid_t, libc::c_int)> {
    let mut status = 0;
    // SAFETY: `status` is ours to write.
    let ended = unsafe { libc::waitpid(pid, &raw mut status, flags) };
    assert_ne!(ended, -1, "a child went missing");
    (ended != 0).then_some((ended, status))
}
