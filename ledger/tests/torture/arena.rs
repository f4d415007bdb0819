//! What the processes of the torture share beside the account: who is to die where, and what each knows to be true.

use ledger::operation::Point;
use ledger::{Account, Daemon, Mapping, Policy, SlotIndex, mapping};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Clients working at the same time; more than there are processors, so that they are also preempted mid-step.
pub const PLAYERS: usize = 4;
/// The two caps, in bytes.
pub const HIGH: u64 = 1_000_000 * 512;
pub const LOW: u64 = 600_000 * 512;

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Client,
    Recoverer,
    CapChange,
}

pub const ROLES: [Role; 3] = [Role::Client, Role::Recoverer, Role::CapChange];

/// What one client knows of itself.
#[derive(Default)]
pub struct Truth {
    /// Bytes held before the operation in progress.
    pub held: AtomicU64,
    /// Change by the operation in progress, as an i64.
    pub delta: AtomicU64,
    /// Step at which it killed itself, plus 1; 0 when it was killed from outside.
    pub died_at: AtomicU64,
}

/// Shared by all processes of one torture. All zeroes at first.
#[derive(Default)]
pub struct Board {
    /// Odd while the cap is being changed; every value twice a change.
    pub epoch: AtomicU64,
    /// The cap in force when `epoch` is even.
    pub cap: AtomicU64,
    pub overshoots: AtomicU64,
    pub negative: AtomicU64,
    pub operations: AtomicU64,
    pub refusals: AtomicU64,
    pub kills: [[AtomicU64; Point::ALL.len()]; ROLES.len()],
    pub truth: [Truth; PLAYERS + 1],
}

impl Board {
    pub fn kills(&self, role: Role, point: Point) -> &AtomicU64 {
        &self.kills[role as usize][point as usize]
    }

    /// Checks that `used` is what an account of these caps can show.
    pub fn check(&self, used: u64) {
        if used > 2 * HIGH {
            // Wrapped below zero.
            self.negative.fetch_add(1, SeqCst);
        } else if used > HIGH {
            self.overshoots.fetch_add(1, SeqCst);
        }
    }
}

/// The board, in memory that children made by `fork` share.
pub struct SharedBoard(*mut Board);

impl SharedBoard {
    pub fn new() -> Self {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh anonymous mapping; overlaps nothing.
        let start = unsafe {
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), size_of::<Board>(), access, flags, -1, 0)
        };
        assert_ne!(start, libc::MAP_FAILED, "no memory for the board");
        SharedBoard(start.cast())
    }
}

impl Deref for SharedBoard {
    type Target = Board;
    fn deref(&self) -> &Board {
        // SAFETY: mapped as long as `self` lives, page-aligned, and all zeroes is a valid `Board` of atomics.
        unsafe { &*self.0 }
    }
}

impl Drop for SharedBoard {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, not used any more.
        unsafe { libc::munmap(self.0.cast(), size_of::<Board>()) };
    }
}

/// One account, its policy and the board.
pub struct Arena {
    pub policy: Mapping<Policy>,
    pub account: Mapping<Account>,
    pub board: SharedBoard,
}

impl Arena {
    pub fn new() -> Self {
        let (_, policy) = mapping::create::<Policy>(c"torture-policy").expect("a memfd");
        let (_, account) = mapping::create::<Account>(c"torture-account").expect("a memfd");
        Arena {
            policy,
            account,
            board: SharedBoard::new(),
        }
    }

    pub fn daemon(&self) -> Daemon<'_> {
        Daemon::new(&self.policy, &self.account)
    }
}

pub fn slot(index: usize) -> SlotIndex {
    SlotIndex::client(index as u32).expect("a client's slot")
}

/// Small, fast and good enough: xorshift.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
