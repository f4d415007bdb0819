//! The CUDA driver ABI as far as Stint touches it. No policy, no state of its own, no output.
//!
//! [`table`] is THE table: one row per driver function, read by the shim (exports, hooks, answers to
//! `cuGetProcAddress`), by the stand-in (exports, implementations) and by the tests (header oracle,
//! completeness). [`abi`] and [`error`] are the types the rows are written in, [`entry`] holds one
//! address per symbol of a loaded driver, [`load`] finds the real driver as the dynamic loader would,
//! and [`run_dir`] says where a node of this machine keeps its sockets. [`nvml_table`] and [`nvml`] are
//! the same for NVML.
//!
//! The walk of one allocation starts in `table.rs` and goes on in `shim/src/guard.rs`.

pub mod abi;
pub mod elf;
pub mod entry;
pub mod environment;
pub mod error;
pub mod load;
pub mod loader_cache;
pub mod names;
pub mod nvml;
pub mod nvml_table;
mod row;
pub mod run_dir;
pub mod table;

pub use entry::Driver;
pub use error::{CuResult, CudaError};
pub use row::{Class, StreamApi};

/// Exported by macro so that each crate's expansion finds the types of the rows.
#[doc(hidden)]
pub mod prelude {
    pub use crate::abi::*;
    pub use crate::{Class, CuResult, CudaError, StreamApi};
}

#[cfg(test)]
mod fuzzed;
