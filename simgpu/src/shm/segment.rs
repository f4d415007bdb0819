//! The layout of the shared objects: one segment per client, one board per node.
//!
//! The tables are reserved for more than any program uses and touched lazily, so their size costs
//! address space only: they grow by page faults. Next file of the walk: `server/intake.rs`.

use super::map::Shareable;
use crate::facts::{MAX_DEVICES, NodeFacts};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Entries of the ring.
pub(crate) const RING: u64 = 4096;
/// Streams of a client.
pub(crate) const STREAMS: usize = 1 << 16;
/// Events of a client.
pub(crate) const EVENTS: usize = 1 << 20;
/// Pending operations of a stream before a launch blocks.
pub(crate) const DEPTH: u64 = 1024;
/// Nobody waits for the stream.
pub(crate) const NO_TARGET: u64 = u64::MAX;

/// One operation on its way to the server.
#[repr(C, align(64))]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Device time at the client when it was submitted.
    pub stamp: u64,
    pub seq: u64,
    /// Duration, generation or cookie.
    pub value: u64,
    /// What the parties of a rendezvous meet by.
    pub key: u64,
    /// SMs, event, or engine and, from bit 8 on, 1/1000 of the memory bandwidth.
    pub number: u32,
    /// Of a rendezvous.
    pub parties: u32,
    pub context: u16,
    pub stream: u16,
    pub kind: u8,
    pub device: u8,
    pub priority: i8,
}

/// `Entry::kind`. Those from `HOST` on must reach the server at once: they act on the host, or may let
/// others end earlier than it knows.
pub(crate) mod kind {
    pub const KERNEL: u8 = 1;
    pub const COPY: u8 = 2;
    pub const RECORD: u8 = 3;
    pub const AWAIT: u8 = 4;
    pub const COOPERATIVE: u8 = 5;
    pub const HOST: u8 = 6;
    pub const HOST_DONE: u8 = 7;
    pub const RENDEZVOUS: u8 = 8;
    pub const FAULT: u8 = 9;
}

#[repr(C, align(64))]
pub(crate) struct Line(pub AtomicU64);

#[repr(C, align(64))]
pub(crate) struct StreamSlot {
    /// Last completed operation and its device time. Server writes.
    pub completed: AtomicU64,
    pub completed_at: AtomicU64,
    /// Smallest sequence number somebody waits for. Client lowers, server resets.
    pub wait_target: AtomicU64,
    /// Futex word: the server adds 1 when a target is reached.
    pub turns: AtomicU32,
    /// Threads asleep on `turns`: no futex call for those who only look.
    pub sleepers: AtomicU32,
}

#[repr(C)]
pub(crate) struct EventSlot {
    /// Newest record that has happened and its device time. Server writes.
    pub done: AtomicU64,
    pub at: AtomicU64,
}

#[repr(C)]
pub(crate) struct HostCall {
    pub stream: AtomicU64,
    pub cookie: AtomicU64,
}

/// What a client in `null` timing counts about itself.
#[repr(C)]
pub(crate) struct OwnCount {
    pub launches: AtomicU64,
    pub used_bytes: AtomicU64,
    pub high_water_bytes: AtomicU64,
    /// Work that began on memory while other was pending on it: see `cuda/uses.rs`. In every timing.
    pub overlaps: AtomicU64,
}

/// One per client, writable by both sides; nothing the server does depends on the client's good will.
#[repr(C)]
pub(crate) struct Segment {
    /// End of the ring. Client writes.
    pub tail: Line,
    /// Start of the ring. Server writes.
    pub head: Line,
    /// Host functions due so far: at most one per stream is outstanding, so `host` cannot overflow.
    pub host_tail: Line,
    pub host_turns: AtomicU32,
    pub own: [OwnCount; MAX_DEVICES],
    /// Allocations, and what all calls but launches cost, in device time. Client writes, in every timing.
    pub allocations: AtomicU64,
    pub driver_ns: AtomicU64,
    /// A bit per stream with a `wait_target`. Client sets, server clears.
    pub interest: [AtomicU64; STREAMS / 64],
    pub ring: [UnsafeCell<Entry>; RING as usize],
    pub streams: [StreamSlot; STREAMS],
    pub events: [EventSlot; EVENTS],
    pub host: [HostCall; STREAMS],
}

// SAFETY: atomics, and ring entries that are plain integers, written by the producer before `tail` and
// only copied out by the consumer.
unsafe impl Shareable for Segment {}

impl Segment {
    pub fn entry(&self, position: u64) -> *mut Entry {
        self.ring[(position % RING) as usize].get()
    }

    /// Lowers the target of a stream to `seq`; true if that is news.
    pub fn set_target(&self, stream: usize, seq: u64) -> bool {
        // Stored as distance from the top, so that untouched zero pages mean "nobody".
        let slot = &self.streams[stream].wait_target;
        let wish = NO_TARGET - seq;
        if slot.load(Ordering::SeqCst) >= wish || slot.fetch_max(wish, Ordering::SeqCst) >= wish {
            return false;
        }
        self.interest[stream / 64].fetch_or(1 << (stream % 64), Ordering::SeqCst);
        true
    }

    /// The stream's target, `NO_TARGET` if none.
    pub fn target(&self, stream: usize) -> u64 {
        NO_TARGET - self.streams[stream].wait_target.load(Ordering::SeqCst)
    }

    /// Takes the target away if it still is `seq`: by exchange, since a waiter may already be back with
    /// its next one. The bit stays for the server.
    pub fn withdraw_target(&self, stream: usize, seq: u64) {
        let slot = &self.streams[stream].wait_target;
        let _ = slot.compare_exchange(NO_TARGET - seq, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// The server's form of it: the bit goes too, and comes back if there is a target again.
    pub fn clear_target(&self, stream: usize, seq: u64) {
        self.withdraw_target(stream, seq);
        let slot = &self.streams[stream].wait_target;
        let bit = 1 << (stream % 64);
        self.interest[stream / 64].fetch_and(!bit, Ordering::SeqCst);
        if slot.load(Ordering::SeqCst) != 0 {
            self.interest[stream / 64].fetch_or(bit, Ordering::SeqCst);
        }
    }
}

/// What the server tells everybody, without being asked. Read-only for clients.
#[repr(C)]
pub(crate) struct Board {
    /// 0: the server is awake. Otherwise the device time it will wake by itself (`u64::MAX`: never).
    pub sleep_until: Line,
    pub devices: [DeviceBoard; MAX_DEVICES],
}

#[repr(C, align(64))]
pub(crate) struct DeviceBoard {
    /// Charged by all processes.
    pub used_bytes: AtomicU64,
    /// 1: lost.
    pub lost: AtomicU32,
}

// SAFETY: atomics only.
unsafe impl Shareable for Board {}
// SAFETY: plain integers and byte arrays, written before it is shared and never after.
unsafe impl Shareable for NodeFacts {}
