//! The NVML twin: `libnvidia-ml.so.1` to the loader, the real library to the program, but for what it says about memory
//! and processes, where a tenant is shown its own.
//!
//! It is silent, changes nothing, and keeps no descriptor. It attaches to the node as an observer, which only reads and
//! has no slot. Without a node, or for a process that no tenant matches, everything passes through; so does every
//! error of the real library. One is added: a process that the node refuses is told `NVML_ERROR_UNKNOWN` where others are
//! told their part (`attach.rs`).
//!
//! The walk of one query: `exports.rs` → `memory.rs` or `processes.rs` → `real.rs` (what the library says) → `attach.rs`
//! (which account) → `ledger/src/policy.rs`. Forwarded names jump from `exports.rs` through `real.rs` and are done.

mod accounting;
mod attach;
pub mod exports;
mod list;
mod loaded;
mod memory;
mod pids;
mod processes;
mod real;
mod utilization;

driver::mark_as_ours!();
