//! A process of the torture: a client, a recoverer or a cap changer, with an order where to kill itself.

use crate::arena::{Arena, HIGH, LOW, Random, Role, slot};
use ledger::operation::{Hook, Point};
use ledger::ring::{Event, Kind, Reason};
use ledger::{Client, Mode};
use std::sync::atomic::Ordering::SeqCst;

/// "Kill yourself the `countdown`-th time you come to `point`."
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub point: Point,
    pub countdown: u64,
}

/// What a player does before each step: look at the account, and die if it is told to.
struct Fate<'a> {
    arena: &'a Arena,
    role: Role,
    order: Option<Order>,
    random: Random,
    /// The client's slot, for its truth; 0 otherwise.
    index: usize,
    /// A reservation began in this epoch.
    reserving_in: Option<u64>,
}

impl Hook for Fate<'_> {
    fn before(&mut self, point: Point) {
        let board = &self.arena.board;
        let used = self.arena.account.used();
        board.check(used);
        if let (Point::Record, Some(epoch)) = (point, self.reserving_in) {
            // Granted under a cap that has been in force since before: whatever was granted since kept below it too.
            let cap = board.cap.load(SeqCst);
            let used = self.arena.account.used();
            if epoch % 2 == 0 && used > cap && board.epoch.load(SeqCst) == epoch {
                board.overshoots.fetch_add(1, SeqCst);
            }
        }
        if self.random.below(16) == 0 {
            // SAFETY: gives up the processor, nothing else. Lets others in between any two steps.
            unsafe { libc::sched_yield() };
        }
        let Some(order) = &mut self.order else { return };
        if order.point == point {
            order.countdown -= 1;
            if order.countdown == 0 {
                board.kills(self.role, point).fetch_add(1, SeqCst);
                board.truth[self.index].died_at.store(point as u64 + 1, SeqCst);
                die();
            }
        }
    }
}

fn die() -> ! {
    // SAFETY: sends a signal to this process only; SIGKILL is not survived.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    unreachable!("SIGKILL was survived");
}

/// Runs `play` in a child that ends after it, or with the referee, and returns the child's pid.
pub fn fork(play: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the process has one thread, so the child may do whatever the parent may.
    let pid = unsafe { libc::fork() };
    assert_ne!(pid, -1, "no process left");
    if pid == 0 {
        // SAFETY: plain calls on this process.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            libc::alarm(0);
        }
        play();
        exit();
    }
    pid
}

/// Ends this process normally, without running anything of the parent's.
fn exit() -> ! {
    // SAFETY: does not return.
    unsafe { libc::_exit(0) }
}

/// Reserves and releases for ever, or until killed.
pub fn client(arena: &Arena, index: usize, order: Option<Order>, seed: u64) -> ! {
    // SAFETY: lowers this process's priority: the referee and the recoverers are to come first.
    unsafe { libc::nice(19) };
    let mut client = Client::new(&arena.policy, &arena.account, slot(index));
    let mut fate = Fate {
        arena,
        role: Role::Client,
        order,
        random: Random::new(seed),
        index,
        reserving_in: None,
    };
    let mut random = Random::new(seed ^ 0x5555);
    let truth = &arena.board.truth[index];
    let mut held: Vec<u64> = Vec::with_capacity(8);
    let mut posted = 0;
    loop {
        let reserve = held.is_empty() || held.len() < 8 && random.below(2) == 0;
        let bytes = match reserve {
            true => size(&mut random),
            false => held.swap_remove(random.below(held.len() as u64) as usize),
        };
        let before = truth.held.load(SeqCst);
        let after = if reserve { before + bytes } else { before - bytes };
        truth.delta.store(after.wrapping_sub(before), SeqCst);
        let done = if reserve {
            fate.reserving_in = Some(arena.board.epoch.load(SeqCst));
            let reserved = client.reserve_with(bytes, &mut fate);
            fate.reserving_in = None;
            if let Err(refusal) = &reserved {
                arena.board.refusals.fetch_add(1, SeqCst);
                posted += u64::from(client.post(event(posted, refusal)));
            }
            reserved.is_ok()
        } else {
            let released = client.release_with(bytes, &mut fate);
            if released.is_err() {
                arena.board.negative.fetch_add(1, SeqCst);
            }
            released.is_ok()
        };
        // Killed between these two stores, the client has either value: the referee allows both.
        if done {
            truth.held.store(after, SeqCst);
            if reserve {
                held.push(bytes);
            }
        }
        truth.delta.store(0, SeqCst);
        arena.board.operations.fetch_add(1, SeqCst);
    }
}

/// Sizes that often fill the account exactly, and now and then a single granule on top.
fn size(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => 512,
        1 => 512 * (1 + random.below(HIGH / 512 / 3)),
        _ => HIGH / 40 * (1 + random.below(13)),
    }
}

fn event(number: u64, refusal: &ledger::account::Refusal) -> Event {
    let (asked, used, cap) = match *refusal {
        ledger::account::Refusal::Full { asked, used, limit } => (asked, used, limit),
        ledger::account::Refusal::Contended => (0, 0, 0),
    };
    Event {
        kind: Kind::Refused(Reason::Cap),
        function: 1,
        thread: 2,
        at: number,
        asked,
        used,
        cap,
        detail: !number,
    }
}

/// Recovers a slot, or is killed on the way.
pub fn recoverer(arena: &Arena, index: usize, order: Order, seed: u64) {
    let mut fate = fate_of_daemon(arena, Role::Recoverer, order, seed);
    let _ = arena.daemon().recover_with(slot(index), &mut fate);
}

/// Puts a cap into force, or is killed on the way.
pub fn cap_changer(arena: &Arena, cap: u64, order: Order, seed: u64) {
    debug_assert!(cap == LOW || cap == HIGH);
    let mut fate = fate_of_daemon(arena, Role::CapChange, order, seed);
    let _ = arena.daemon().set_cap_with(cap, Mode::Enforce, &mut fate);
}

fn fate_of_daemon(arena: &Arena, role: Role, order: Order, seed: u64) -> Fate<'_> {
    Fate {
        arena,
        role,
        order: Some(order),
        random: Random::new(seed),
        index: 0,
        reserving_in: None,
    }
}
