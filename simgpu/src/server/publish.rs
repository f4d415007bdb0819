//! What is complete goes where clients look, and those asleep for it are woken.

use super::Server;
use crate::model::{Lane, Ns, Sink};
use crate::shm::clock::futex_wake;
use crate::shm::segment::STREAMS;
use std::sync::atomic::{Ordering, fence};

/// What the model reported since the last publication; of completions only the newest per stream.
#[derive(Default)]
pub(super) struct Outbox {
    done: Vec<(Lane, u64, Ns)>,
    recorded: Vec<(usize, u32, u64, Ns)>,
    host: Vec<(Lane, u64)>,
}

impl Sink for Outbox {
    fn completed(&mut self, lane: Lane, seq: u64, at: Ns) {
        match self.done.iter_mut().rev().take(8).find(|d| d.0 == lane) {
            Some(d) => (d.1, d.2) = (seq, at),
            None => self.done.push((lane, seq, at)),
        }
    }

    fn recorded(&mut self, client: usize, event: u32, generation: u64, at: Ns) {
        self.recorded.push((client, event, generation, at));
    }

    fn host(&mut self, lane: Lane, cookie: u64, _at: Ns) {
        self.host.push((lane, cookie));
    }
}

impl Server {
    pub(super) fn publish(&mut self) {
        for (client, event, generation, at) in self.out.recorded.drain(..) {
            if let Some(intake) = self.conns.get(client).and_then(|c| c.as_ref()?.intake()) {
                let slot = &intake.segment.events[event as usize];
                slot.at.store(at, Ordering::Relaxed);
                slot.done.store(generation, Ordering::Release);
            }
        }
        for &(lane, seq, at) in &self.out.done {
            if let Some(intake) = self.conns.get(lane.client).and_then(|c| c.as_ref()?.intake()) {
                let slot = &intake.segment.streams[lane.stream];
                slot.completed_at.store(at, Ordering::Relaxed);
                slot.completed.store(seq, Ordering::Release);
            }
        }
        // After what they stand behind: a function may ask whether that is complete, or has broken its context.
        for (lane, cookie) in self.out.host.drain(..) {
            let conn = self.conns.get_mut(lane.client).and_then(Option::as_mut);
            let Some(intake) = conn.and_then(|c| c.intake_mut()) else {
                continue;
            };
            let call = &intake.segment.host[(intake.host_calls % STREAMS as u64) as usize];
            call.stream.store(lane.stream as u64, Ordering::Relaxed);
            call.cookie.store(cookie, Ordering::Relaxed);
            intake.host_calls += 1;
            intake
                .segment
                .host_tail
                .0
                .store(intake.host_calls, Ordering::Release);
            intake.segment.host_turns.fetch_add(1, Ordering::SeqCst);
            futex_wake(&intake.segment.host_turns);
        }
        if self.out.done.is_empty() {
            return;
        }
        let now = self.clock.now();
        // One fence per batch pairs with the waiter's "set target, then look".
        fence(Ordering::SeqCst);
        for (lane, seq, at) in self.out.done.drain(..) {
            let Some(intake) = self.conns.get(lane.client).and_then(|c| c.as_ref()?.intake()) else {
                continue;
            };
            let target = intake.segment.target(lane.stream);
            if target <= seq {
                intake.segment.clear_target(lane.stream, target);
                if target == seq {
                    self.lateness.add(now.saturating_sub(at));
                }
                // Others with later targets see the turn and set theirs again.
                let slot = &intake.segment.streams[lane.stream];
                slot.turns.fetch_add(1, Ordering::SeqCst);
                if slot.sleepers.load(Ordering::SeqCst) > 0 {
                    futex_wake(&slot.turns);
                }
            }
        }
    }
}
