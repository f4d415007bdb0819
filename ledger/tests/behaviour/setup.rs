//! An account with its policy, made as the daemon makes them, and processes that work on it.

use ledger::{Account, Client, Daemon, Mapping, Mode, Owner, Policy, SlotIndex, mapping};
use rustix::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub struct Pair {
    pub policy_fd: OwnedFd,
    pub policy: Mapping<Policy>,
    pub account_fd: OwnedFd,
    pub account: Mapping<Account>,
}

impl Pair {
    /// A pair with `cap` bytes in force and nobody attached.
    pub fn new(cap: u64) -> Self {
        let (policy_fd, policy) = mapping::create::<Policy>(c"stint-policy").expect("a memfd");
        let (account_fd, account) = mapping::create::<Account>(c"stint-account").expect("a memfd");
        let pair = Pair {
            policy_fd,
            policy,
            account_fd,
            account,
        };
        pair.daemon()
            .set_cap(cap, Mode::Enforce)
            .expect("nobody else is here");
        pair
    }

    pub fn daemon(&self) -> Daemon<'_> {
        Daemon::new(&self.policy, &self.account)
    }

    /// Gives slot `index` to a client.
    pub fn claim(&self, index: u32) {
        self.daemon()
            .claim(slot(index), &owner(index))
            .expect("a vacant slot");
    }

    /// A client in slot `index`, which it claims.
    pub fn client(&self, index: u32) -> Client<'_> {
        self.claim(index);
        Client::new(&self.policy, &self.account, slot(index))
    }
}

pub fn slot(index: u32) -> SlotIndex {
    SlotIndex::client(index).expect("a client's slot")
}

pub fn owner(index: u32) -> Owner {
    Owner {
        pid: 10_000 + index,
        start_time: 77,
        nonce: u64::from(index),
    }
}

/// Children made by `fork` that wait at a gate. What they run may not allocate: the parent has threads.
///
/// One crowd at a time: the children of another would inherit this one's gate and keep it shut.
pub struct Crowd {
    _alone: MutexGuard<'static, ()>,
    pids: Vec<libc::pid_t>,
    gate: Option<std::io::PipeWriter>,
}

impl Crowd {
    /// `count` children; each runs `work` with its number, from 1, once the gate opens, and exits with its result.
    pub fn gather(count: u32, work: impl Fn(u32) -> u8) -> Self {
        use std::io::Read;
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut wait, gate) = std::io::pipe().expect("a pipe");
        let mut pids = Vec::new();
        for number in 1..=count {
            // SAFETY: the child calls only `read`, `close`, `work`, which does not allocate, and `_exit`.
            let pid = unsafe { libc::fork() };
            assert_ne!(pid, -1, "no process left");
            if pid == 0 {
                // SAFETY: closes the child's copy of the gate, so that it opens when the parent closes its own; and has
                // the child killed by SIGALRM should it hang.
                unsafe {
                    libc::close(std::os::fd::AsRawFd::as_raw_fd(&gate));
                    libc::alarm(120);
                }
                let _ = wait.read(&mut [0]);
                let result = work(number);
                // SAFETY: does not return.
                unsafe { libc::_exit(i32::from(result)) };
            }
            pids.push(pid);
        }
        Crowd {
            _alone: alone,
            pids,
            gate: Some(gate),
        }
    }

    /// Opens the gate and returns the children's results, in order.
    pub fn results(mut self) -> Vec<u8> {
        self.gate = None;
        let pids = std::mem::take(&mut self.pids);
        pids.into_iter()
            .map(|pid| {
                let mut status = 0;
                // SAFETY: a child of ours; `status` is ours to write.
                assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
                assert!(libc::WIFEXITED(status), "a child died by a signal");
                libc::WEXITSTATUS(status) as u8
            })
            .collect()
    }
}
