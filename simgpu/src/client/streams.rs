//! Streams: what is submitted to them and waiting for it.
//!
//! Next file of the walk: `client/ring.rs`.

use super::{Client, StreamId, Wait};
use crate::shm::segment::{STREAMS, kind};
use driver::{CuResult, CudaError};
use std::sync::atomic::Ordering;

impl Client {
    /// A new stream of the process's context number `context` on `device` (0: the primary context; each
    /// other CUcontext its own number). Contexts take turns on a device; streams of one context run side
    /// by side. `priority` as in CUDA: lower is more urgent. `OUT_OF_MEMORY` beyond 65,536 streams.
    pub fn stream(&self, device: usize, context: u16, priority: i8) -> Result<StreamId, CudaError> {
        self.shared.usable(device)?;
        if device >= self.devices().len() {
            return Err(CudaError::INVALID_DEVICE);
        }
        let mut p = self.shared.producer();
        // A dropped stream's number is free once its work is complete.
        let slots = &self.shared.segment.streams;
        let drained = |i: usize, seq| self.shared.null || slots[i].completed.load(Ordering::Acquire) >= seq;
        let free = p
            .streams
            .iter()
            .enumerate()
            .position(|(i, s)| !s.live && drained(i, s.seq));
        let index = free.unwrap_or(p.streams.len());
        if index >= STREAMS {
            return Err(CudaError::OUT_OF_MEMORY);
        }
        if index == p.streams.len() {
            p.streams.push(Default::default());
        }
        let s = &mut p.streams[index];
        (s.live, s.device, s.context, s.priority) = (true, device as u8, context, priority);
        Ok(StreamId {
            index: index as u16,
            device: device as u8,
        })
    }

    /// Gives the stream up. Its pending work still completes, as `cuStreamDestroy` has it.
    pub fn drop_stream(&self, stream: StreamId) {
        if self.alive().is_ok()
            && let Ok(s) = self.shared.producer().stream(stream)
        {
            s.live = false;
        }
    }

    /// Submits a kernel that takes `ns` of device time when it holds `sms` SMs (clamped to 1..=all; fewer
    /// free ones make it proportionally slower). No system call, unless 1,024 operations are pending on
    /// the stream: then it blocks until there is room, as a real launch does. `ns` is clamped to a day.
    #[inline]
    pub fn launch(&self, stream: StreamId, ns: u64, sms: u32) -> CuResult {
        if self.shared.null {
            self.shared.state.check()?;
            self.shared.count_null_launch(stream.device);
            return self.shared.intact_of(stream);
        }
        self.shared.push(stream, kind::KERNEL, ns, sms).map(drop)
    }

    /// As [`Client::launch`], of a kernel that begins with all its SMs at once, and keeps them.
    pub fn launch_cooperative(&self, stream: StreamId, ns: u64, sms: u32) -> CuResult {
        match self.shared.null {
            true => self.launch(stream, ns, sms),
            false => self.shared.push(stream, kind::COOPERATIVE, ns, sms).map(drop),
        }
    }

    /// As [`Client::launch`], of one of `parties` kernels that meet by `key`, on any devices and in any
    /// processes of the node: each holds its SMs, and they make progress while all are resident. Wakes
    /// the server. `INVALID_VALUE` for no parties.
    pub fn launch_party(&self, stream: StreamId, ns: u64, sms: u32, key: u64, parties: u32) -> CuResult {
        match (parties, self.shared.null) {
            (0, _) => Err(CudaError::INVALID_VALUE),
            (_, true) => self.launch(stream, ns, sms),
            (_, false) => self.shared.push_party(stream, ns, sms, key, parties),
        }
    }

    /// Submits a copy of `ns` (see `DeviceFacts::copy_ns`) on copy engine `engine` (modulo their number).
    pub fn copy(&self, stream: StreamId, engine: u32, ns: u64) -> CuResult {
        self.copy_with(stream, engine, ns, 0)
    }

    /// As [`Client::copy`], of a copy that takes `traffic`/1000 of the memory's bandwidth (see
    /// `DeviceFacts::traffic`).
    pub fn copy_with(&self, stream: StreamId, engine: u32, ns: u64, traffic: u32) -> CuResult {
        if self.shared.null {
            self.alive()?;
            return self.shared.intact_of(stream);
        }
        let number = (engine & 0xff) | traffic.min(1000) << 8;
        self.shared.push(stream, kind::COPY, ns, number).map(drop)
    }

    /// What `stream` does from now on comes after everything submitted to `leader` so far. No system
    /// call. (For the legacy default stream and its like.)
    pub fn follow(&self, stream: StreamId, leader: StreamId) -> CuResult {
        self.shared.usable(leader.device as usize)?;
        if self.shared.null || stream == leader {
            return Ok(());
        }
        let mut p = self.shared.producer();
        let s = p.stream(leader)?;
        let slot = &self.shared.segment.streams[leader.index as usize];
        if slot.completed.load(Ordering::Acquire) >= s.seq {
            return Ok(());
        }
        let event = match s.followed {
            Some(event) => event,
            None => {
                let event = self.shared.new_event(&mut p)?;
                p.stream(leader)?.followed = Some(event);
                event
            }
        };
        let (p, generation) = self.shared.record_locked(p, event, leader)?;
        drop(p);
        self.shared.push(stream, kind::AWAIT, generation, event).map(drop)
    }

    /// As [`Client::follow`] of all other streams of a context, dropped ones with pending work included.
    pub fn follow_context(&self, stream: StreamId, context: u16) -> CuResult {
        self.shared.usable(stream.device as usize)?;
        if self.shared.null {
            return Ok(());
        }
        let count = self.shared.producer().streams.len();
        for index in (0..count).filter(|&index| index != stream.index as usize) {
            let leader = StreamId {
                index: index as u16,
                device: stream.device,
            };
            let mut p = self.shared.producer();
            let s = &mut p.streams[index];
            let is_dropped = !s.live;
            let pending = self.shared.segment.streams[index]
                .completed
                .load(Ordering::Acquire)
                < s.seq;
            if (s.device, s.context) != (stream.device, context) || !pending {
                continue;
            }
            // Nobody else gets the number of a dropped stream while this is on its way.
            s.live = true;
            drop(p);
            let followed = self.follow(stream, leader);
            if is_dropped {
                self.shared.producer().streams[index].live = false;
            }
            followed?;
        }
        Ok(())
    }

    /// Waits for everything submitted to the stream.
    pub fn synchronize(&self, stream: StreamId, wait: Wait) -> CuResult {
        self.shared.usable(stream.device as usize)?;
        let seq = self.shared.producer().stream(stream)?.seq;
        if self.shared.null {
            self.shared.intact_of(stream)
        } else {
            self.shared.wait(stream, seq, wait)
        }
    }

    /// Waits for everything submitted to any stream of the context, dropped streams included.
    pub fn synchronize_context(&self, device: usize, context: u16, wait: Wait) -> CuResult {
        self.shared.usable(device)?;
        if self.shared.null {
            return Ok(());
        }
        let p = self.shared.producer();
        let streams = p.streams.iter().enumerate();
        let ours = streams.filter(|(_, s)| (s.device as usize, s.context) == (device, context));
        let targets: Vec<_> = ours
            .map(|(i, s)| {
                (
                    StreamId {
                        index: i as u16,
                        device: s.device,
                    },
                    s.seq,
                )
            })
            .collect();
        drop(p);
        targets
            .into_iter()
            .try_for_each(|(stream, seq)| self.shared.wait(stream, seq, wait))
    }

    /// True when everything submitted to the stream is complete. No system call but, once, a wake-up.
    pub fn query(&self, stream: StreamId) -> Result<bool, CudaError> {
        self.shared.usable(stream.device as usize)?;
        let seq = self.shared.producer().stream(stream)?.seq;
        if self.shared.null || self.shared.interest(stream, seq) {
            self.shared.intact_of(stream)?;
            return Ok(true);
        }
        // Who only ever queries must learn of a dead server too.
        self.shared.check_server()?;
        Ok(false)
    }
}
