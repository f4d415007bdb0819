//! The event ring of a slot: the client posts, the daemon drains. A full ring drops and counts; nobody waits.
//!
//! Read next: `doorbell.rs`, which tells the daemon that there is something to drain.

use crate::layout::shareable;
use crate::sync::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Records in a ring.
pub const CAPACITY: u32 = 32;
const WORDS: usize = 8;

/// Why a reservation was refused. The daemon's JSON has the same words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// The account's cap.
    Cap = 1,
    /// The device itself had no memory left.
    Device = 2,
    /// What the node keeps back of the device.
    Reserve = 3,
    /// What is guaranteed to others.
    Guarantee = 4,
    /// A budget was used up.
    Budget = 5,
    /// The tenant is paused.
    Paused = 6,
}

impl Reason {
    fn from_bits(bits: u64) -> Option<Reason> {
        use Reason::{Budget, Cap, Device, Guarantee, Paused, Reserve};
        [Cap, Device, Reserve, Guarantee, Budget, Paused]
            .into_iter()
            .find(|reason| *reason as u64 == bits)
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request was refused.
    Refused(Reason),
    /// The shim failed inside a hook and passed the call through.
    Fault,
    /// The account holds values no client of ours writes.
    Corrupt,
}

impl Kind {
    fn to_bits(self) -> u64 {
        match self {
            Kind::Refused(reason) => 1 | (reason as u64) << 16,
            Kind::Fault => 2,
            Kind::Corrupt => 3,
        }
    }

    fn from_bits(bits: u64) -> Option<Kind> {
        match (bits & 0xffff, bits >> 16 & 0xffff) {
            (1, reason) => Reason::from_bits(reason).map(Kind::Refused),
            (2, 0) => Some(Kind::Fault),
            (3, 0) => Some(Kind::Corrupt),
            _ => None,
        }
    }
}

/// One event, 64 bytes in the ring. A field that does not apply is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: Kind,
    /// Row of the driver table whose hook posted it.
    pub function: u32,
    /// Thread that made the call, in the client's namespace.
    pub thread: u32,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub at: u64,
    /// Bytes asked for.
    pub asked: u64,
    /// Bytes the account used.
    pub used: u64,
    /// Bytes of the cap.
    pub cap: u64,
    /// Whatever the kind adds: a driver error code for `Refused(Device)`, a line number for `Fault`.
    pub detail: u64,
}

impl Event {
    fn to_words(self) -> [u64; WORDS] {
        let kind = self.kind.to_bits() | u64::from(self.function) << 32;
        [
            kind,
            u64::from(self.thread),
            self.at,
            self.asked,
            self.used,
            self.cap,
            self.detail,
            0,
        ]
    }

    fn from_words([kind, thread, at, asked, used, cap, detail, _]: [u64; WORDS]) -> Option<Event> {
        let function = (kind >> 32) as u32;
        let kind = Kind::from_bits(kind & 0xffff_ffff)?;
        Some(Event {
            kind,
            function,
            thread: thread as u32,
            at,
            asked,
            used,
            cap,
            detail,
        })
    }
}

shareable! {
    /// A ring of [`CAPACITY`] records, one producer and one consumer.
    #[repr(align(64))]
    pub struct Ring {
        /// Records drained, modulo 2^32. Written by the daemon.
        head: AtomicU32,
        head_line: [AtomicU32; 15],
        /// Records posted, modulo 2^32. Written by the client.
        tail: AtomicU32,
        tail_pad: AtomicU32,
        dropped: AtomicU64,
        tail_line: [AtomicU64; 6],
        records: [[AtomicU64; WORDS]; CAPACITY as usize],
    }
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Ring>() == 128 + 64 * CAPACITY as usize);

/// How far the daemon has read a ring. Its own: what the shared words say is only a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(u32);

/// What one drain found, beside the events it handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Events handed over.
    pub events: u32,
    /// Records that made no sense.
    pub unreadable: u32,
}

impl Ring {
    /// An empty ring, for the models.
    #[cfg(all(test, loom))]
    pub(crate) fn new() -> Self {
        let zero = |_| AtomicU32::new(0);
        Ring {
            head: zero(0),
            head_line: core::array::from_fn(zero),
            tail: zero(0),
            tail_pad: zero(0),
            dropped: AtomicU64::new(0),
            tail_line: core::array::from_fn(|_| AtomicU64::new(0)),
            records: core::array::from_fn(|_| core::array::from_fn(|_| AtomicU64::new(0))),
        }
    }

    /// Posts `event`; false when the ring was full, in which case the event is only counted. One producer at a time.
    pub(crate) fn post(&self, event: Event) -> bool {
        let tail = self.tail.load(Relaxed);
        if tail.wrapping_sub(self.head.load(Acquire)) >= CAPACITY {
            self.dropped
                .store(self.dropped.load(Relaxed).wrapping_add(1), Relaxed);
            return false;
        }
        let record = &self.records[(tail % CAPACITY) as usize];
        for (word, value) in record.iter().zip(event.to_words()) {
            word.store(value, Relaxed);
        }
        self.tail.store(tail.wrapping_add(1), Release);
        true
    }

    /// The consumer's place as the shared words have it: for a daemon that starts again.
    pub(crate) fn cursor(&self) -> Cursor {
        Cursor(self.head.load(Relaxed))
    }

    /// Hands over what was posted since `cursor`: never more than [`CAPACITY`] records, whatever the words say.
    pub(crate) fn drain(&self, cursor: &mut Cursor, mut each: impl FnMut(Event)) -> Drained {
        let tail = self.tail.load(Acquire);
        let waiting = tail.wrapping_sub(cursor.0);
        let mut drained = Drained::default();
        if waiting > CAPACITY {
            // No client of ours posts into a full ring. Skip what cannot be told apart.
            drained.unreadable = 1;
            cursor.0 = tail;
        }
        while cursor.0 != tail {
            let record = &self.records[(cursor.0 % CAPACITY) as usize];
            match Event::from_words(core::array::from_fn(|word| record[word].load(Relaxed))) {
                Some(event) => {
                    drained.events += 1;
                    each(event);
                }
                None => drained.unreadable += 1,
            }
            cursor.0 = cursor.0.wrapping_add(1);
        }
        self.head.store(tail, Release);
        drained
    }

    /// Events dropped because the ring was full.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Empties the ring for a new producer; the old one is dead.
    pub(crate) fn reset(&self) -> Cursor {
        self.head.store(0, Relaxed);
        self.dropped.store(0, Relaxed);
        self.tail.store(0, Release);
        Cursor(0)
    }
}
