//! An entry on its way to the server: depth, room, stamp, write.
//!
//! The lock is of this process, so a killed process cannot leave it held for others. Next file of the
//! walk: `shm/segment.rs`.

use super::{Shared, StreamId, Wait};
use crate::shm::segment::{DEPTH, Entry, RING, kind};
use driver::{CuResult, CudaError};
use std::os::fd::AsRawFd;
use std::sync::atomic::{Ordering, fence};
use std::sync::{MutexGuard, PoisonError};

/// The process's side of its ring, and what it knows of its streams and events.
#[derive(Default)]
pub(super) struct Producer {
    tail: u64,
    head_seen: u64,
    last_stamp: u64,
    pub streams: Vec<StreamState>,
    pub events: Vec<EventState>,
    pub free_events: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct StreamState {
    /// Sequence number of the newest operation.
    pub seq: u64,
    /// At least this many are complete.
    pub done_seen: u64,
    pub context: u16,
    pub priority: i8,
    pub device: u8,
    pub live: bool,
    /// The event by which other streams follow this one.
    pub followed: Option<u32>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct EventState {
    pub live: bool,
    /// Records so far, in all lives of the event's number.
    pub generation: u64,
    /// The latest record of this life: its generation, stream and place there.
    pub record: Option<(u64, StreamId, u64)>,
    /// Device time of the latest record in `null` timing.
    pub at: u64,
}

impl Producer {
    pub fn stream(&mut self, stream: StreamId) -> Result<&mut StreamState, CudaError> {
        let state = self.streams.get_mut(stream.index as usize);
        state
            .filter(|s| s.live && s.device == stream.device)
            .ok_or(CudaError::INVALID_HANDLE)
    }
}

impl Shared {
    pub(super) fn producer(&self) -> MutexGuard<'_, Producer> {
        // Nothing that panics leaves it half changed.
        self.producer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits an operation of the stream; gives its sequence number.
    #[inline]
    pub(super) fn push(&self, stream: StreamId, kind: u8, value: u64, number: u32) -> Result<u64, CudaError> {
        self.usable(stream.device as usize)?;
        self.intact_of(stream)?;
        let p = self.producer();
        self.push_locked(p, stream, kind, value, number)
            .map(|(_, seq)| seq)
    }

    /// Submits a party of a rendezvous.
    pub(super) fn push_party(&self, stream: StreamId, ns: u64, sms: u32, key: u64, parties: u32) -> CuResult {
        self.usable(stream.device as usize)?;
        self.intact_of(stream)?;
        let mut p = self.room(self.producer(), stream)?;
        let entry = Entry {
            value: ns,
            key,
            number: sms,
            parties,
            kind: kind::RENDEZVOUS,
            ..Entry::default()
        };
        self.write_next(&mut p, stream, entry).map(drop)
    }

    /// As `push`, under a lock that the caller holds and gets back.
    pub(super) fn push_locked<'a>(
        &'a self,
        p: MutexGuard<'a, Producer>,
        stream: StreamId,
        kind: u8,
        value: u64,
        number: u32,
    ) -> Result<(MutexGuard<'a, Producer>, u64), CudaError> {
        let mut p = self.room(p, stream)?;
        let entry = Entry {
            value,
            number,
            kind,
            ..Entry::default()
        };
        let seq = self.write_next(&mut p, stream, entry)?;
        Ok((p, seq))
    }

    /// Waits until the stream has room for another operation.
    #[inline]
    fn room<'a>(
        &'a self,
        mut p: MutexGuard<'a, Producer>,
        stream: StreamId,
    ) -> Result<MutexGuard<'a, Producer>, CudaError> {
        loop {
            let s = p.stream(stream)?;
            if s.seq - s.done_seen < DEPTH {
                return Ok(p);
            }
            let slot = &self.segment.streams[stream.index as usize];
            s.done_seen = slot.completed.load(Ordering::Acquire).clamp(s.done_seen, s.seq);
            if s.seq - s.done_seen < DEPTH {
                return Ok(p);
            }
            // Full: a launch blocks, and only this one.
            let room = s.seq + 1 - DEPTH;
            drop(p);
            self.wait(stream, room, Wait::Auto)?;
            p = self.producer();
        }
    }

    /// Writes the stream's next operation, for which there is room; gives its sequence number.
    #[inline]
    fn write_next(&self, p: &mut Producer, stream: StreamId, entry: Entry) -> Result<u64, CudaError> {
        self.make_room(p)?;
        let s = p.stream(stream)?;
        s.seq += 1;
        let entry = Entry {
            seq: s.seq,
            context: s.context,
            stream: stream.index,
            device: s.device,
            priority: s.priority,
            ..entry
        };
        self.write(p, entry);
        Ok(entry.seq)
    }

    /// Tells the server that the host function which blocks the stream has returned.
    pub(super) fn push_host_done(&self, stream: u16) -> Result<(), CudaError> {
        self.state.check()?;
        let mut p = self.producer();
        self.make_room(&mut p)?;
        self.write(
            &mut p,
            Entry {
                kind: kind::HOST_DONE,
                stream,
                ..Entry::default()
            },
        );
        Ok(())
    }

    /// Room in the ring: the server drains it whenever it is awake.
    #[inline]
    fn make_room(&self, p: &mut Producer) -> Result<(), CudaError> {
        if p.tail - p.head_seen < RING / 2 {
            return Ok(());
        }
        p.head_seen = self.segment.head.0.load(Ordering::Acquire);
        if p.tail - p.head_seen >= RING / 2 {
            self.kick();
        }
        while p.tail - p.head_seen >= RING {
            std::thread::yield_now();
            self.kick();
            self.check_server()?;
            p.head_seen = self.segment.head.0.load(Ordering::Acquire);
        }
        Ok(())
    }

    #[inline]
    fn write(&self, p: &mut Producer, entry: Entry) {
        p.last_stamp = self.clock.now().max(p.last_stamp);
        let entry = Entry {
            stamp: p.last_stamp,
            ..entry
        };
        // SAFETY: the entry at `tail` is ours alone: the server has taken it (`make_room`) and will not
        // look at it before the new tail.
        unsafe { self.segment.entry(p.tail).write(entry) };
        p.tail += 1;
        self.segment.tail.0.store(p.tail, Ordering::Release);
        if entry.kind >= kind::HOST {
            self.kick();
        }
    }

    /// Wakes the server if it sleeps: after publishing what it must see.
    pub(super) fn kick(&self) {
        fence(Ordering::SeqCst);
        if self.board.sleep_until.0.load(Ordering::SeqCst) != 0 {
            let one = 1u64;
            // SAFETY: eight bytes of a u64 into our eventfd.
            unsafe { libc::write(self.kick.as_raw_fd(), (&raw const one).cast(), 8) };
        }
    }
}
