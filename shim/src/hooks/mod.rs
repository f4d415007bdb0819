//! What is decided about each hooked function: one file per family, one function per shape of call, named by the rows of
//! `driver/src/table.rs`. A hook reserves before the call and gives back after the driver freed; it never returns what the
//! driver would not.

pub mod array;
pub mod capture;
pub mod context;
pub mod device;
pub mod exposure;
pub mod graph;
pub mod host;
pub mod launch;
pub mod memory;
pub mod pool;
pub mod proc_address;
pub mod sync;
pub mod vmm;
