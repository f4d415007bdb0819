//! The steps an honest account never comes to: its tenant wrote nonsense into the word, a client died holding a charge,
//! and the recoverer is killed at every step on the way to writing the charge off.

use crate::arena::{Arena, HIGH, slot};
use ledger::operation::{Hook, Point};
use ledger::{Client, Mode, Owner, mapping};

/// Where the recoverers of such an account are killed.
const STEPS: [Point; 4] = [Point::ReadState, Point::Withdraw, Point::WriteOff, Point::Vacate];
/// Place of the word in the account, in words.
const WORD: usize = 8;

struct StopAt(Point);

/// Ends the recovery as a kill would: nothing after this step runs.
impl Hook for StopAt {
    fn before(&mut self, point: Point) {
        if point == self.0 {
            // SAFETY: ends this process, a child that holds nothing.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
    }
}

/// Recovers `each` falsified accounts for each step; returns how many recoveries ended.
pub fn run(each: u64) -> u64 {
    let mut ended = 0;
    for step in STEPS {
        for _ in 0..each.max(1) {
            recover_falsified(step);
            ended += 1;
        }
    }
    ended
}

fn recover_falsified(step: Point) {
    let (fd, account) = mapping::create(c"falsified").expect("a memfd");
    let arena = Arena {
        account,
        ..Arena::new()
    };
    let mut daemon = arena.daemon();
    daemon.set_cap(HIGH, Mode::Enforce).expect("nobody else is here");
    daemon
        .claim(
            slot(1),
            &Owner {
                pid: 1,
                start_time: 1,
                nonce: 1,
            },
        )
        .expect("a vacant slot");
    Client::new(&arena.policy, &arena.account, slot(1))
        .reserve(4096)
        .expect("it fits");
    falsify(&fd);

    let arena_of_child = &arena;
    let pid = crate::player::fork(|| {
        let _ = arena_of_child.daemon().recover_with(slot(1), &mut StopAt(step));
        unreachable!("the recoverer did not come to {step:?}");
    });
    assert!(
        crate::referee::was_killed(pid),
        "the recoverer was to be killed at {step:?}"
    );

    let recovered = daemon.recover(slot(1)).expect("nobody else is here");
    assert_eq!(recovered.released, 0, "there was nothing to give back");
    assert!(
        recovered.corrupt || step == Point::Vacate,
        "it should have been noticed"
    );
    assert_eq!(arena.account.slot(slot(1)).charge(), 0);
    assert_eq!(arena.account.used(), 0);
}

/// Zeroes the word, as a tenant can.
fn falsify(fd: &impl rustix::fd::AsRawFd) {
    let zeroes = [0u8; 8];
    // SAFETY: writes eight bytes of ours into the file.
    let written = unsafe { libc::pwrite(fd.as_raw_fd(), zeroes.as_ptr().cast(), 8, 8 * WORD as libc::off_t) };
    assert_eq!(written, 8);
}
