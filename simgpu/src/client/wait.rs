//! Waiting for the server's word that an operation is complete.
//!
//! Next file of the walk: `server/publish.rs`.

use super::{Shared, StreamId, Wait};
use crate::proto::socket::hung_up;
use crate::shm::clock::{futex_wait, host_now};
use driver::{CuResult, CudaError};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

/// Host time for which `Wait::Auto` stays awake.
const AUTO_SPIN_NS: u64 = 100_000;
/// A sleeper looks after its server this often, in host ns.
const LOOK_NS: u64 = 100_000_000;

impl Shared {
    /// Tells the server that the operation matters to somebody. True if it is complete.
    pub(super) fn interest(&self, stream: StreamId, seq: u64) -> bool {
        let index = stream.index as usize;
        let slot = &self.segment.streams[index];
        if slot.completed.load(Ordering::Acquire) >= seq {
            return true;
        }
        if self.segment.set_target(index, seq) {
            self.kick();
        }
        if slot.completed.load(Ordering::SeqCst) < seq {
            return false;
        }
        // Never leave a target behind that is already reached: the next waiter would trust it.
        self.segment.withdraw_target(index, seq);
        true
    }

    /// Waits for the operation; then the error of its context, if that is broken.
    pub(super) fn wait(&self, stream: StreamId, seq: u64, wait: Wait) -> CuResult {
        self.wait_for(stream, seq, wait)?;
        self.intact_of(stream)
    }

    fn wait_for(&self, stream: StreamId, seq: u64, wait: Wait) -> CuResult {
        let slot = &self.segment.streams[stream.index as usize];
        let awake = match wait {
            Wait::Block => 0,
            Wait::Auto => AUTO_SPIN_NS,
            Wait::Spin | Wait::Yield => u64::MAX,
        };
        let yields = wait != Wait::Spin || self.few_cores;
        let mut awake_until = None;
        loop {
            let turns = slot.turns.load(Ordering::SeqCst);
            if self.interest(stream, seq) {
                return Ok(());
            }
            let until = match awake {
                0 => 0,
                _ => *awake_until.get_or_insert_with(|| host_now().saturating_add(awake)),
            };
            let mut looks = 0u32;
            while awake != 0 && slot.completed.load(Ordering::Acquire) < seq {
                looks += 1;
                if looks.is_multiple_of(64) {
                    // Somebody's earlier target was reached and ours wiped with it: set it again.
                    if slot.turns.load(Ordering::SeqCst) != turns || host_now() >= until {
                        break;
                    }
                    if yields {
                        std::thread::yield_now();
                    }
                }
                if looks.is_multiple_of(1 << 14) {
                    self.check_server()?;
                    self.usable(stream.device as usize)?;
                }
                std::hint::spin_loop();
            }
            if slot.completed.load(Ordering::Acquire) >= seq {
                return Ok(());
            }
            if awake != 0 && host_now() < until {
                continue;
            }
            slot.sleepers.fetch_add(1, Ordering::SeqCst);
            // `turns` was read before the target was set: a wake-up in between is not lost.
            if slot.completed.load(Ordering::SeqCst) < seq {
                futex_wait(&slot.turns, turns, LOOK_NS);
            }
            slot.sleepers.fetch_sub(1, Ordering::SeqCst);
            self.check_server()?;
            self.usable(stream.device as usize)?;
        }
    }

    pub(super) fn check_server(&self) -> CuResult {
        self.state.check()?;
        if hung_up(self.socket.as_fd()) {
            return Err(self.state.lose());
        }
        Ok(())
    }

    /// `Ok` while the connection and the device are there.
    #[inline]
    pub(super) fn usable(&self, device: usize) -> CuResult {
        self.state.check()?;
        match self.board.devices.get(device) {
            Some(board) if board.lost.load(Ordering::Relaxed) == 0 => Ok(()),
            Some(_) => Err(CudaError::DEVICE_UNAVAILABLE),
            None => Err(CudaError::INVALID_DEVICE),
        }
    }
}
