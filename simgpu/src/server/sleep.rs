//! When the server sleeps and until when: demand-driven.
//!
//! Nothing it computes is observable until somebody waits, queries, is called back or asks for the
//! truth, so it sleeps until a lower bound of the first completion somebody has registered interest in,
//! less a margin learnt from how late the kernel wakes it. Next file of the walk: `server/publish.rs`.

use super::Server;
use crate::model::{Lane, NEVER, Ns};
use crate::shm::clock::{host_now, timespec};
use crate::shm::segment::NO_TARGET;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{Ordering, fence};

/// Interests of one client that get their own bound; with more, every event of the model wakes.
const MAX_BOUNDS: usize = 256;
/// How often sockets are looked at while the server stays awake, in host ns.
const POLL_NS: u64 = 200_000;

/// How much earlier than needed the server wakes, in host ns: the decaying maximum of recent oversleep.
pub(super) struct Margin(u64);

impl Margin {
    pub const START: Margin = Margin(50_000);

    fn learn(&mut self, late: u64) {
        self.0 = late.max(self.0 - self.0 / 16).clamp(2_000, 300_000);
    }
}

impl Server {
    /// Serves until stopped or unused.
    pub fn run(&mut self) -> io::Result<()> {
        let mut polled = host_now();
        while !self.is_over() {
            self.turn(self.clock.now());
            let wake = self.wake_time();
            let now = self.clock.now();
            let span = match wake {
                NEVER => NEVER,
                wake => self.clock.host_span(wake.saturating_sub(now)),
            };
            if span <= self.margin.0 {
                // Sockets and pidfds now and then, or a dead client would stay.
                let host = host_now();
                if host - polled > POLL_NS {
                    polled = host;
                    self.poll(0)?;
                }
                // On few cores those we wait for need this one.
                std::thread::yield_now();
                continue;
            }
            // Announce the sleep, then look once more: a client either sees the announcement or is
            // seen here.
            self.board.sleep_until.0.store(wake, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let conns = self.conns.iter().flatten();
            let drained = conns.filter_map(|c| c.intake()).all(|intake| intake.is_drained());
            if !drained || self.wake_time() < wake {
                self.board.sleep_until.0.store(0, Ordering::SeqCst);
                continue;
            }
            let for_work = span.saturating_sub(self.margin.0);
            let for_duty = self.duty_in(host_now());
            let asleep = host_now();
            let served = self.poll(for_work.min(for_duty))?;
            self.board.sleep_until.0.store(0, Ordering::SeqCst);
            polled = host_now();
            if !served && for_work < for_duty {
                self.margin.learn((polled - asleep).saturating_sub(for_work));
            }
        }
        Ok(())
    }

    /// Device time of the first completion somebody waits for, or a little before it.
    fn wake_time(&self) -> Ns {
        let mut wake = self.pending.front().map_or(NEVER, |p| p.0);
        if self.model.host_ops() > 0 {
            wake = wake.min(self.model.next());
        }
        for (client, conn) in self.conns.iter().enumerate() {
            let Some(intake) = conn.as_ref().and_then(|c| c.intake()) else {
                continue;
            };
            let mut left = MAX_BOUNDS;
            for (word, bits) in intake.segment.interest[..intake.streams.div_ceil(64)]
                .iter()
                .enumerate()
            {
                let mut bits = bits.load(Ordering::SeqCst);
                while bits != 0 {
                    let stream = word * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    let lane = Lane { client, stream };
                    let target = intake.segment.target(stream);
                    if target == NO_TARGET || self.model.is_complete(lane, target) {
                        // Reached before it was set: its owner has seen that.
                        intake.segment.clear_target(stream, target);
                        continue;
                    }
                    left = left.saturating_sub(1);
                    wake = wake.min(match left {
                        0 => self.model.next(),
                        _ => self.model.bound(lane, target),
                    });
                }
            }
        }
        wake
    }

    /// Waits for descriptors at most `timeout` ns of host time and serves them. False: only time passed.
    fn poll(&mut self, timeout: u64) -> io::Result<bool> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let ts = timespec(timeout);
        let limit = if timeout == NEVER {
            std::ptr::null()
        } else {
            &raw const ts
        };
        // SAFETY: room for 64 events; `limit` is null or a live timespec; no signal mask.
        let n = unsafe {
            let (ep, to) = (self.epoll.as_raw_fd(), events.as_mut_ptr());
            libc::syscall(libc::SYS_epoll_pwait2, ep, to, events.len(), limit, 0, 8)
        };
        if n < 0 {
            let e = io::Error::last_os_error();
            return if e.kind() == io::ErrorKind::Interrupted {
                Ok(true)
            } else {
                Err(e)
            };
        }
        let events = &events[..n as usize];
        if !events.is_empty() {
            // Work stamped before a death or a question counts.
            self.board.sleep_until.0.store(0, Ordering::SeqCst);
            self.turn(self.clock.now());
        }
        for event in events {
            self.serve(event.u64);
        }
        Ok(!events.is_empty())
    }

    /// Host ns until something is due that has nothing to do with work.
    fn duty_in(&self, host: u64) -> u64 {
        let end = self.unused_since.map_or(NEVER, |since| since + self.linger_ns);
        let loss = match self.losses.iter().map(|l| l.1).min() {
            Some(at) => self.clock.host_span(at.saturating_sub(self.clock.now())),
            None => NEVER,
        };
        end.saturating_sub(host).min(loss)
    }
}
