//! Work pending on a piece of memory, and work that begins while other is (`cuda/uses.rs`).
//!
//! Next file of the walk: `client/ring.rs`.

use super::{Client, StreamId};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Mutex, PoisonError};

/// The work that named a piece of memory: stream and place there.
pub type Uses = Mutex<Vec<(StreamId, u64)>>;

impl Client {
    /// Whether the node was started to count overlaps.
    pub fn checks_uses(&self) -> bool {
        self.shared.facts.check_uses != 0 && !self.shared.null
    }

    /// The next operation of `stream` names the memory of `uses`. Counted where work of another stream is pending on it.
    pub fn note_use(&self, stream: StreamId, uses: &Uses) {
        let next = match self.shared.producer().stream(stream) {
            Ok(state) => state.seq + 1,
            Err(_) => return,
        };
        let mut uses = uses.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = &self.shared.segment.streams;
        uses.retain(|(of, seq)| slots[of.index as usize].completed.load(Acquire) < *seq);
        let own = &self.shared.segment.own[stream.device as usize];
        if uses.iter().any(|(of, _)| *of != stream) {
            own.overlaps.fetch_add(1, Relaxed);
        }
        uses.push((stream, next));
    }
}
