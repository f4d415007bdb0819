//! The atomics: core's, or loom's when the models run (`RUSTFLAGS="--cfg loom"`). Nothing in this crate names core's own.
//!
//! Read next: `operation.rs`, the user of nearly all of them.
//!
//! Loom treats `SeqCst` accesses as `AcqRel`. The algorithm asks for no more than acquire and release anywhere, so that
//! what the models explore is what runs; the single place with a store that a later load must not overtake, the
//! doorbell, has an explicit `fence(SeqCst)`, which loom models exactly.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
