//! Listens to the doorbells of all accounts in a thread of its own, since a futex cannot be waited for beside sockets, and
//! passes each ring on to the event loop (`daemon/core.rs`).

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ledger::doorbell::{Doorbell, Woken, wait};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};

use super::Objects;

/// Rings are passed on at most this often: a client refused in a tight loop costs the daemon a look a millisecond.
const PACE: Duration = Duration::from_millis(1);
/// The listener looks up at least this often, so that a lost wake-up costs time and no more.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

struct Shared {
    accounts: Mutex<Vec<Arc<Objects>>>,
    /// Rung when the list changes or the listener is to end.
    own: Doorbell,
    stop: AtomicBool,
    out: OwnedFd,
}

/// The listening thread. Ends when dropped.
pub struct Listener {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    pub fn start() -> std::io::Result<Listener> {
        let out = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared {
            accounts: Mutex::new(Vec::new()),
            own: Doorbell::new(),
            stop: AtomicBool::new(false),
            out,
        });
        let listening = shared.clone();
        let thread = std::thread::Builder::new()
            .name("stint-bell".into())
            .spawn(move || listen(&listening))?;
        Ok(Listener {
            shared,
            thread: Some(thread),
        })
    }

    /// Replaces the accounts listened to.
    pub fn listen_to(&self, accounts: Vec<Arc<Objects>>) {
        *self.shared.accounts.lock() = accounts;
        self.shared.own.ring();
    }

    /// Readable after a ring.
    pub fn ready(&self) -> impl AsFd + '_ {
        self.shared.out.as_fd()
    }

    /// Takes the rings passed on so far. Call before looking at the accounts.
    pub fn clear(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.shared.out, &mut count); // nothing there: nothing to clear
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.own.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(shared: &Shared) {
    let mut accounts = Vec::new();
    let mut heard = Vec::new();
    let mut own = shared.own.seen();
    while !shared.stop.load(Ordering::Acquire) {
        let list = shared.accounts.lock().clone();
        if !same(&list, &accounts) {
            // A bell that is new here may have rung before: its first state counts as a ring.
            heard = list.iter().map(|account| account.doorbell().seen()).collect();
            accounts = list;
            pass_on(shared);
        }
        let bells: Vec<_> = std::iter::once((&shared.own, own))
            .chain(
                accounts
                    .iter()
                    .zip(&heard)
                    .map(|(account, heard)| (account.doorbell(), *heard)),
            )
            .collect();
        if wait(&bells, LONGEST_SLEEP) == Woken::TimedOut {
            continue;
        }
        own = shared.own.seen();
        let mut rung = false;
        for (account, heard) in accounts.iter().zip(&mut heard) {
            let now = account.doorbell().seen();
            rung |= now != *heard;
            *heard = now;
        }
        if rung {
            pass_on(shared);
            std::thread::sleep(PACE);
        }
    }
}

fn same(a: &[Arc<Objects>], b: &[Arc<Objects>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}

fn pass_on(shared: &Shared) {
    // Full means the loop has been told and has not looked yet.
    let _ = rustix::io::write(&shared.out, &1u64.to_ne_bytes());
}
