//! Ordinary blocks that the program freed with `cuMemFreeAsync`: the driver gives the memory back when their stream is next
//! synchronised, and so is the charge.
//!
//! Next: `hooks/sync.rs`.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use driver::StreamApi;
use driver::abi::{CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUstream};

use crate::books::Books;
use crate::live::Allocation;
use crate::lock::{Lock, Rank};

/// A stream, told apart from others that share its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// By its handle.
    Made(usize),
    /// A context's legacy default stream.
    Legacy { context: usize },
    /// A thread's default stream in a context.
    PerThread { context: usize, thread: u32 },
    /// One that was destroyed: only its context can still be synchronised.
    Gone,
}

impl Stream {
    /// The stream a handle means, used by the calling thread in `context`.
    pub fn of(handle: CUstream, stream_api: StreamApi, context: usize) -> Stream {
        let legacy = handle == CU_STREAM_LEGACY || (handle.is_null() && stream_api == StreamApi::Legacy);
        if legacy {
            Stream::Legacy { context }
        } else if handle.is_null() || handle == CU_STREAM_PER_THREAD {
            let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
            Stream::PerThread { context, thread }
        } else {
            Stream::Made(handle as usize)
        }
    }
}

/// One block waiting.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    pub pointer: u64,
    pub allocation: Allocation,
    pub stream: Stream,
    /// The context the stream belongs to.
    pub context: usize,
    turn: u64,
}

/// The blocks waiting.
pub struct Deferred {
    /// How many, so that a program without any pays one load per synchronisation.
    count: AtomicUsize,
    blocks: Lock<(u64, Vec<Waiting>)>,
}

impl Deferred {
    pub const fn new() -> Deferred {
        Deferred {
            count: AtomicUsize::new(0),
            blocks: Lock::new(Rank::Deferred, (0, Vec::new())),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    /// An instant: what is added later is not settled by a synchronisation that began before.
    pub fn now(&self) -> u64 {
        self.blocks.lock().0
    }

    pub fn add(&self, pointer: u64, allocation: Allocation, stream: Stream, context: usize) {
        let mut blocks = self.blocks.lock();
        blocks.0 += 1;
        let turn = blocks.0;
        blocks.1.push(Waiting {
            pointer,
            allocation,
            stream,
            context,
            turn,
        });
        self.count.store(blocks.1.len(), Relaxed);
    }

    /// Gives back the charges of the blocks for which `done` holds.
    pub fn settle(&self, books: &Books, done: impl Fn(&Waiting) -> bool) {
        if self.is_empty() {
            return;
        }
        let settled: Vec<Waiting> = {
            let mut blocks = self.blocks.lock();
            let settled = blocks.1.extract_if(.., |waiting| done(waiting)).collect();
            self.count.store(blocks.1.len(), Relaxed);
            settled
        };
        for waiting in settled {
            books.settle(waiting.pointer, waiting.allocation);
        }
    }

    /// As [`Deferred::settle`], for what waited at the instant `until`.
    pub fn settle_until(&self, books: &Books, until: u64, done: impl Fn(&Waiting) -> bool) {
        self.settle(books, |waiting| waiting.turn <= until && done(waiting));
    }

    /// A stream was destroyed: its blocks wait for their context.
    pub fn lose(&self, stream: Stream) {
        if self.is_empty() {
            return;
        }
        for waiting in &mut self.blocks.lock().1 {
            if waiting.stream == stream {
                waiting.stream = Stream::Gone;
            }
        }
    }
}
