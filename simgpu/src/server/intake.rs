//! From the rings into the model: entries of all clients, checked, in order of their stamps.
//!
//! A client writes what it likes; each entry is copied once, then checked, and whoever does not follow
//! the protocol is cut off. Next file of the walk: `model/mod.rs`.

use super::Server;
use crate::model::{Home, Kind, Lane, Ns, Op};
use crate::shm::map::Map;
use crate::shm::segment::{EVENTS, Entry, RING, Segment, kind};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

/// Longest operation: keeps the sums of full queues far from overflow.
const MAX_NS: Ns = 24 * 3600 * 1_000_000_000;
/// How far ahead of the server's clock a stamp may be.
const AHEAD_NS: Ns = 1_000_000;
/// Operations a client may have queued: as many as 1,024 full streams.
const MAX_QUEUED: usize = 1 << 20;

/// The server's side of a client's segment.
pub(super) struct Intake {
    pub segment: Map<Segment>,
    pub kick: OwnedFd,
    /// Next entry to take. The shared copy is only for the client to read.
    pub head: u64,
    pub last_stamp: Ns,
    /// Streams seen so far: one more than the highest number.
    pub streams: usize,
    pub host_calls: u64,
    /// Kicks taken in the host second `kicks_second`.
    pub kicks: u32,
    pub kicks_second: u64,
}

impl Intake {
    pub fn is_drained(&self) -> bool {
        self.segment.tail.0.load(Ordering::SeqCst) == self.head
    }
}

impl Server {
    /// One turn of the timeline up to `now`.
    pub(super) fn turn(&mut self, now: Ns) {
        self.drain(now);
        while let Some(&(at, client, entry)) = self.pending.front()
            && at <= now
        {
            self.pending.pop_front();
            self.model.advance(at, &mut self.out);
            if !self.apply(client, at, entry) {
                self.drop_conn(client);
            }
        }
        self.model.advance(now, &mut self.out);
        self.publish();
    }

    /// Takes everything out of the rings, in order of time.
    fn drain(&mut self, now: Ns) {
        let mut hostile = Vec::new();
        let before = self.pending.len();
        for (i, conn) in self.conns.iter_mut().enumerate() {
            let Some(intake) = conn.as_mut().and_then(|c| c.intake_mut()) else {
                continue;
            };
            let tail = intake.segment.tail.0.load(Ordering::Acquire);
            let count = tail.wrapping_sub(intake.head);
            if count > RING {
                hostile.push(i);
                continue;
            }
            for _ in 0..count {
                // SAFETY: inside the ring of a live mapping; any bytes are a valid Entry. The client may
                // scribble over it meanwhile, so it is copied once and only the copy is looked at.
                let mut entry = unsafe { intake.segment.entry(intake.head).read_volatile() };
                intake.head = intake.head.wrapping_add(1);
                // Stamps are the client's word: never behind its own last one, never far ahead. (`now`
                // was read before the ring: honest stamps may be a little newer and must stay.)
                let newest = intake.last_stamp.max(now.saturating_add(AHEAD_NS));
                entry.stamp = entry.stamp.clamp(intake.last_stamp, newest);
                intake.last_stamp = entry.stamp;
                self.pending.push_back((entry.stamp, i, entry));
            }
            if count > 0 {
                intake.segment.head.0.store(intake.head, Ordering::Release);
            }
        }
        if self.pending.len() > before {
            // Stable: equal stamps keep the order of their ring.
            self.pending.make_contiguous().sort_by_key(|p| p.0);
        }
        for i in hostile {
            self.drop_conn(i);
        }
    }

    /// False: the client does not follow the protocol.
    fn apply(&mut self, client: usize, at: Ns, entry: Entry) -> bool {
        let Some(intake) = self.conns[client].as_mut().and_then(|c| c.intake_mut()) else {
            return true;
        };
        let lane = Lane {
            client,
            stream: entry.stream as usize,
        };
        intake.streams = intake.streams.max(lane.stream + 1);
        let ns = entry.value.min(MAX_NS);
        let event_exists = (entry.number as usize) < EVENTS;
        let kind = match entry.kind {
            kind::KERNEL => Kind::Kernel {
                ns,
                sms: entry.number,
            },
            kind::COOPERATIVE => Kind::Cooperative {
                ns,
                sms: entry.number,
            },
            kind::RENDEZVOUS if entry.parties > 0 => Kind::Rendezvous {
                key: entry.key,
                parties: entry.parties,
                ns,
                sms: entry.number,
            },
            kind::FAULT => Kind::Fault {
                ns,
                sms: entry.number,
            },
            kind::COPY => Kind::Copy {
                ns,
                engine: entry.number & 0xff,
                traffic: entry.number >> 8,
            },
            kind::RECORD if event_exists => Kind::Record {
                event: entry.number,
                generation: entry.value,
            },
            kind::AWAIT if event_exists => Kind::Await {
                event: entry.number,
                generation: entry.value,
            },
            kind::HOST => Kind::Host { cookie: entry.value },
            kind::HOST_DONE => {
                self.model.host_done(lane, at, &mut self.out);
                return true;
            }
            _ => return false,
        };
        let home = Home {
            device: entry.device as usize,
            context: entry.context,
            priority: entry.priority,
        };
        let op = Op { seq: entry.seq, kind };
        self.model.submit(lane, home, at, op, &mut self.out).is_ok()
            && self.model.queued(client) <= MAX_QUEUED
    }
}
