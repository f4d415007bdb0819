//! Events: a place in a stream, and the device time it was reached.

use super::ring::Producer;
use super::{Client, EventId, Shared, StreamId, Wait};
use crate::shm::segment::{EVENTS, kind};
use driver::{CuResult, CudaError};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

impl Client {
    /// A new event, not recorded. `OUT_OF_MEMORY` beyond 1,048,576.
    pub fn event(&self) -> Result<EventId, CudaError> {
        self.alive()?;
        self.shared.new_event(&mut self.shared.producer()).map(EventId)
    }

    /// Gives the event up; waits already submitted on it keep their meaning.
    pub fn drop_event(&self, event: EventId) {
        if self.alive().is_err() {
            return;
        }
        let mut p = self.shared.producer();
        if let Some(e) = p.events.get_mut(event.0 as usize).filter(|e| e.live) {
            (e.live, e.record) = (false, None);
            p.free_events.push(event.0);
        }
    }

    /// The event stands for everything submitted to the stream so far.
    pub fn record(&self, event: EventId, stream: StreamId) -> CuResult {
        self.shared.usable(stream.device as usize)?;
        let mut p = self.shared.producer();
        let e = p
            .events
            .get_mut(event.0 as usize)
            .filter(|e| e.live)
            .ok_or(CudaError::INVALID_HANDLE)?;
        if self.shared.null {
            e.generation += 1;
            (e.at, e.record) = (self.shared.clock.now(), Some((e.generation, stream, 0)));
            return Ok(());
        }
        self.shared.record_locked(p, event.0, stream).map(drop)
    }

    /// What the stream does from now on comes after the event's latest record; nothing if there is none.
    /// Across contexts and devices too.
    pub fn wait_event(&self, stream: StreamId, event: EventId) -> CuResult {
        match self.latest(event)? {
            Some((generation, ..)) if !self.shared.null => self
                .shared
                .push(stream, kind::AWAIT, generation, event.0)
                .map(drop),
            _ => Ok(()),
        }
    }

    /// True when the event's latest record is complete, or there is none.
    pub fn event_query(&self, event: EventId) -> Result<bool, CudaError> {
        let Some((generation, stream, seq)) = self.latest(event)? else {
            return Ok(true);
        };
        if self.shared.null || self.is_done(event, generation) {
            self.shared.intact_of(stream)?;
            return Ok(true);
        }
        self.shared.usable(stream.device as usize)?;
        self.shared.interest(stream, seq);
        self.shared.check_server()?;
        Ok(self.is_done(event, generation))
    }

    /// Waits for the event's latest record; returns at once if there is none.
    pub fn event_synchronize(&self, event: EventId, wait: Wait) -> CuResult {
        match self.latest(event)? {
            Some((generation, stream, seq)) if !self.shared.null && !self.is_done(event, generation) => {
                self.shared.wait(stream, seq, wait)
            }
            Some((_, stream, _)) => self.shared.intact_of(stream),
            None => Ok(()),
        }
    }

    /// Nanoseconds from `start` to `end` (negative if they are the other way round) by the clocks of their
    /// devices, which drift against the host's ([`DeviceFacts::stamp`](crate::facts::DeviceFacts::stamp)):
    /// `INVALID_HANDLE` if one was never recorded, `NOT_READY` while one is not complete.
    pub fn event_elapsed(&self, start: EventId, end: EventId) -> Result<i64, CudaError> {
        let start = self.event_stamp(start)?;
        let end = self.event_stamp(end)?;
        Ok(end.wrapping_sub(start) as i64)
    }

    /// The event's time by its device's own clock.
    fn event_stamp(&self, event: EventId) -> Result<u64, CudaError> {
        let at = self.event_time(event)?;
        let (_, stream, _) = self.latest(event)?.ok_or(CudaError::INVALID_HANDLE)?;
        Ok(self
            .devices()
            .get(stream.device as usize)
            .map_or(at, |d| d.stamp(at)))
    }

    /// Device time of the event's latest record; errors as [`Client::event_elapsed`].
    pub fn event_time(&self, event: EventId) -> Result<u64, CudaError> {
        let (generation, ..) = self.latest(event)?.ok_or(CudaError::INVALID_HANDLE)?;
        if self.shared.null {
            return Ok(self.shared.producer().events[event.0 as usize].at);
        }
        if !self.event_query(event)? {
            return Err(CudaError::NOT_READY);
        }
        debug_assert!(self.is_done(event, generation));
        Ok(self.shared.segment.events[event.0 as usize]
            .at
            .load(Ordering::Relaxed))
    }

    fn is_done(&self, event: EventId, generation: u64) -> bool {
        self.shared.segment.events[event.0 as usize]
            .done
            .load(Ordering::Acquire)
            >= generation
    }

    fn latest(&self, event: EventId) -> Result<Option<(u64, StreamId, u64)>, CudaError> {
        self.alive()?;
        let p = self.shared.producer();
        let e = p.events.get(event.0 as usize).filter(|e| e.live);
        e.map(|e| e.record).ok_or(CudaError::INVALID_HANDLE)
    }
}

impl Shared {
    pub(super) fn new_event(&self, p: &mut Producer) -> Result<u32, CudaError> {
        let id = match p.free_events.pop() {
            Some(id) => id,
            None if p.events.len() < EVENTS => {
                p.events.push(Default::default());
                (p.events.len() - 1) as u32
            }
            None => return Err(CudaError::OUT_OF_MEMORY),
        };
        p.events[id as usize].live = true;
        Ok(id)
    }

    /// Submits a record; gives its generation.
    pub(super) fn record_locked<'a>(
        &'a self,
        mut p: MutexGuard<'a, Producer>,
        event: u32,
        stream: StreamId,
    ) -> Result<(MutexGuard<'a, Producer>, u64), CudaError> {
        let e = &mut p.events[event as usize];
        e.generation += 1;
        let generation = e.generation;
        let (mut p, seq) = self.push_locked(p, stream, kind::RECORD, generation, event)?;
        let e = &mut p.events[event as usize];
        // Another thread may have recorded it again while this one waited for room.
        if e.live && e.record.is_none_or(|(latest, ..)| latest < generation) {
            e.record = Some((generation, stream, seq));
        }
        Ok((p, generation))
    }
}
