//! The stand-in GPU: a CUDA driver, runtime and NVML for machines without a GPU.
//!
//! A node is one `stint-sim` server and the processes that load our `libcuda.so.1`. Clients stamp their
//! work with the clock and put it into a ring; the server replays the stamps into a pure model of the
//! devices, so completion times are computed, never observed, and a late server delays only who waits.
//!
//! The walk of one launch: the front end → `client/mod.rs` → the ring → `server/mod.rs` → `model/mod.rs`.

pub mod catalogue;
pub mod client;
pub mod cuda;
mod cudart;
pub mod facts;
pub mod model;
#[cfg(test)]
mod node_tests;
mod nvml;
mod own_library;
mod proto;
pub mod report;
pub mod server;
mod shm;
