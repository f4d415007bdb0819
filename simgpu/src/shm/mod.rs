//! What server and clients share: sealed memory, its layout, the clock, futexes.
//!
//! No lock anywhere: every word has one writer, or is combined by an atomic minimum or a set bit.
//! Next file of the walk: `shm/segment.rs`.

pub(crate) mod clock;
pub(crate) mod map;
pub(crate) mod segment;
