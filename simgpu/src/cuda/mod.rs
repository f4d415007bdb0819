//! The stand-in's CUDA driver: every function of the table, by the names of its rows.
//!
//! `Sim` has one associated function per row that the stand-in implements, spread over the files below by
//! what they are about. `Fallback` has all rows, each answering `CUDA_ERROR_NOT_SUPPORTED`; an inherent
//! function wins over a trait's, so `export.rs` calls `Sim::cuName` for every symbol and the
//! compiler picks.
//!
//! Rules of the house: nothing here prints, prints through a panic, or unwinds into C; memory is charged
//! before it is handed out; a handle is looked up, never trusted. Next file of the walk: `export.rs`.

#![allow(non_snake_case, clippy::too_many_arguments)]

mod access;
mod allocate;
mod arena;
mod arguments;
mod array;
mod array_api;
mod array_copy;
mod array_form;
mod array_memory;
mod attribute;
mod block;
mod capture;
mod context;
mod copy;
mod cubin;
mod current;
mod device;
mod edge;
mod errors;
mod event;
mod export;
mod fatbin;
mod free;
mod function;
mod graph;
mod handle_fd;
mod heap;
mod host_function;
mod host_memory;
mod image;
mod ipc_event;
mod ipc_memory;
mod launch;
mod library;
mod limit;
mod managed;
mod module;
mod node;
mod occupancy;
mod order;
mod peer;
mod physical;
mod pointer;
mod pool;
mod pool_api;
mod pool_share;
mod primary;
mod proc_address;
mod profile;
mod ptx;
mod ranges;
mod reservation;
mod set;
mod shape;
mod space;
mod stream;
mod stream_api;
mod uses;
mod vram;

pub use export::*;

use driver::prelude::*;

/// The stand-in driver.
pub struct Sim;

macro_rules! fallback {
    ($($class:ident $handler:tt $name:ident($base:literal)($($argument:ident: $kind:ty),*) $symbols:tt;)*) => {
        /// What the stand-in does not have.
        #[allow(dead_code, unused_variables)]
        pub(crate) trait Fallback {
            $(fn $name(api: StreamApi, $($argument: $kind),*) -> CuResult {
                Err(CudaError::NOT_SUPPORTED)
            })*
        }
    };
}
driver::functions!(fallback);

impl Fallback for Sim {}
