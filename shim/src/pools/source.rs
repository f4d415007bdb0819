//! Where a pool is, and what the driver says of it.
//!
//! Next: `graphs.rs`.

use driver::abi::{CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, CUdevice, CUmemoryPool};
use driver::{Driver, StreamApi};
use ledger::slot::Class;

/// Attributes of a pool, as cuda.h numbers them.
const RESERVED_NOW: u32 = 5;
const USED_NOW: u32 = 7;

/// Where a pool is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Behind a handle.
    Handle(usize),
    /// What a device keeps for graphs.
    Graphs(CUdevice),
}

impl Source {
    /// What its memory is shown as.
    pub(super) fn class(self) -> Class {
        match self {
            Source::Handle(_) => Class::Pool,
            Source::Graphs(_) => Class::Graph,
        }
    }

    /// Bytes that the driver has reserved.
    pub(super) fn reserved(self, driver: &Driver) -> Option<u64> {
        match self {
            Source::Handle(pool) => ask(driver, pool, RESERVED_NOW),
            Source::Graphs(device) => ask_graphs(driver, device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT),
        }
    }

    /// Bytes that trimming would leave. Of graphs that is not told: perhaps none.
    pub(super) fn used(self, driver: &Driver) -> Option<u64> {
        match self {
            Source::Handle(pool) => ask(driver, pool, USED_NOW),
            Source::Graphs(_) => Some(0),
        }
    }
}

/// One of the numbers of a device's memory for graphs.
fn ask_graphs(driver: &Driver, device: CUdevice, attribute: u32) -> Option<u64> {
    let mut value = 0u64;
    // SAFETY: a device the driver told of; these attributes are 64-bit numbers.
    let asked = unsafe {
        driver.cuDeviceGetGraphMemAttribute(StreamApi::Legacy, device, attribute, (&raw mut value).cast())
    };
    asked.ok().map(|()| value)
}

/// One of a pool's numbers.
fn ask(driver: &Driver, pool: usize, attribute: u32) -> Option<u64> {
    let mut value = 0u64;
    // SAFETY: the handle is one the driver gave out and has not destroyed; these attributes are 64-bit numbers.
    let asked = unsafe {
        driver.cuMemPoolGetAttribute(
            StreamApi::Legacy,
            pool as CUmemoryPool,
            attribute,
            (&raw mut value).cast(),
        )
    };
    asked.ok().map(|()| value)
}
