//! Host functions: run by one thread of the client, in the order in which the timeline reaches them.
//!
//! The thread starts with the first function, blocks all signals and has a name.

use super::{Client, Shared, StreamId};
use crate::shm::clock::futex_wait;
use crate::shm::segment::{STREAMS, kind};
use driver::{CuResult, CudaError};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

type Function = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(super) struct HostFunctions {
    waiting: HashMap<u64, Function>,
    count: u64,
    started: bool,
}

/// The thread looks after its server this often, in host ns.
const LOOK_NS: u64 = 1_000_000_000;

impl Client {
    /// Calls `function` on a thread of the client once everything before it on the stream is complete;
    /// the stream goes on when it returns. A panic of it is swallowed. In `null` timing it is called
    /// right here.
    pub fn host_function(&self, stream: StreamId, function: Box<dyn FnOnce() + Send>) -> CuResult {
        self.alive()?;
        if self.shared.null {
            let _ = catch_unwind(AssertUnwindSafe(function));
            return Ok(());
        }
        let mut host = self.shared.host_functions();
        if !host.started {
            let shared = self.shared.clone();
            spawn(move || serve(&shared)).map_err(|_| CudaError::OPERATING_SYSTEM)?;
            host.started = true;
        }
        host.count += 1;
        let cookie = host.count;
        host.waiting.insert(cookie, function);
        drop(host);
        let pushed = self.shared.push(stream, kind::HOST, cookie, 0).map(drop);
        if pushed.is_err() {
            self.shared.host_functions().waiting.remove(&cookie);
        }
        pushed
    }
}

impl Shared {
    fn host_functions(&self) -> MutexGuard<'_, HostFunctions> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(shared: &Arc<Shared>) {
    let mut seen = 0;
    while shared.check_server().is_ok() {
        let turns = shared.segment.host_turns.load(Ordering::SeqCst);
        if shared.segment.host_tail.0.load(Ordering::SeqCst) == seen {
            futex_wait(&shared.segment.host_turns, turns, LOOK_NS);
        }
        while seen < shared.segment.host_tail.0.load(Ordering::Acquire) {
            let call = &shared.segment.host[(seen % STREAMS as u64) as usize];
            let (stream, cookie) = (
                call.stream.load(Ordering::Relaxed),
                call.cookie.load(Ordering::Relaxed),
            );
            seen += 1;
            let function = shared.host_functions().waiting.remove(&cookie);
            if let Some(function) = function {
                let _ = catch_unwind(AssertUnwindSafe(function));
            }
            if shared.push_host_done(stream as u16).is_err() {
                return;
            }
        }
    }
}

/// A thread that no signal of the program is delivered to.
fn spawn(body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    // SAFETY: the sets are filled before they are read; the mask of this thread is put back.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let spawned = std::thread::Builder::new()
            .name("stint-sim-host".into())
            .spawn(body);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        spawned.map(drop)
    }
}
