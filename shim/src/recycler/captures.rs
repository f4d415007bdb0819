//! Stream captures under way. A certificate may not be made during one: recording an event in a context one of whose streams is
//! capturing fails and spoils the capture. So certificates pass a gate that a beginning capture shuts.
//!
//! A capture counts from before the driver's call that begins it until the driver says that its stream captures no more, or
//! the stream or its context is gone.
//!
//! Next: `hooks/capture.rs`.

use crate::deferred::Stream;
use crate::lock::{Lock, Rank};
use crate::recycler::gate::{Gate, Inside};

/// Those of this process.
pub struct Captures {
    gate: Gate,
    /// Streams that capture, and their contexts.
    streams: Lock<Vec<(Stream, usize)>>,
}

impl Captures {
    pub const fn new() -> Captures {
        Captures {
            gate: Gate::new(),
            streams: Lock::new(Rank::Captures, Vec::new()),
        }
    }

    /// Whether there are any.
    pub fn any(&self) -> bool {
        self.gate.is_shut()
    }

    /// Keeps captures from beginning; `None` while there is one.
    pub fn hold_off(&self) -> Option<Inside<'_>> {
        self.gate.enter()
    }

    /// Before the call that begins one: waits for certificates being made.
    pub fn begin(&self) {
        self.gate.shut();
    }

    /// That call failed; or what [`Captures::take`] took has ended.
    pub fn failed(&self) {
        self.gate.open();
    }

    /// It succeeded: `stream` of `context` captures.
    pub fn begun(&self, stream: Stream, context: usize) {
        self.streams.lock().push((stream, context));
    }

    /// `stream` captures no more.
    pub fn ended(&self, stream: Stream) {
        self.end(|(of, _)| *of == stream);
    }

    /// Takes out what is known of `stream`: each is yet to be ended, by [`Captures::failed`], or put back, by
    /// [`Captures::begun`].
    pub fn take(&self, stream: Stream) -> Vec<(Stream, usize)> {
        if !self.any() {
            return Vec::new();
        }
        let of = |capture: &mut (Stream, usize)| capture.0 == stream;
        self.streams.lock().extract_if(.., of).collect()
    }

    /// `context` is gone.
    pub fn context_ended(&self, context: usize) {
        self.end(|(_, of)| *of == context);
    }

    fn end(&self, which: impl Fn(&(Stream, usize)) -> bool) {
        if !self.any() {
            return;
        }
        let ended = {
            let mut streams = self.streams.lock();
            let before = streams.len();
            streams.retain(|capture| !which(capture));
            before - streams.len()
        };
        for _ in 0..ended {
            self.gate.open();
        }
    }
}
