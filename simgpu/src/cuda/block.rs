//! Every piece of memory the driver knows, by address.
//!
//! Next file of the walk: `vram.rs`.

use super::context::Context;
use super::graph::memory::Allocation;
use super::node::{self, Device, next_id};
use super::physical::Physical;
use super::pool::Pool;
use super::space;
use super::vram::Extent;
use crate::client::Uses;
use driver::CudaError;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub enum Kind {
    /// `cuMemAlloc`: an own range, or a part of the context's heap.
    Device {
        extent: Extent,
        offset: u64,
        small: bool,
    },
    /// `cuMemAllocManaged`, with its attach flags.
    Managed { extent: Extent },
    /// `cuMemAllocAsync` and its like.
    Async(Arc<Pool>),
    /// `cuMemHostAlloc`, with its flags.
    Host(u32),
    /// `cuMemHostRegister`, with its flags.
    Registered(u32),
    /// `cuMemMap`: what each device may do with it.
    Mapping {
        physical: Arc<Physical>,
        access: Mutex<Vec<(Location, u32)>>,
    },
    /// `cuIpcOpenMemHandle`: the descriptor holds the range; the block lies `inner` bytes behind the
    /// beginning of what is mapped.
    Imported { _held: OwnedFd, mapped: (u64, u64) },
    /// `cuMemPoolImportPointer`, likewise; freed like the pool's own.
    Borrowed { _held: OwnedFd, mapped: (u64, u64) },
    /// An allocation node of a graph.
    Graph(Arc<Allocation>),
}

/// Who may access: a device ordinal, or the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    Device(i32),
    Host,
}

pub struct Block {
    pub base: u64,
    pub size: u64,
    /// `CU_POINTER_ATTRIBUTE_BUFFER_ID`: never used again.
    pub id: u64,
    pub context: Option<&'static Context>,
    pub device: Option<&'static Device>,
    pub kind: Kind,
    pub sync_memops: AtomicBool,
    /// `CU_MEM_ADVISE_SET_READ_MOSTLY` is on.
    pub read_mostly: AtomicU32,
    /// Work that names it, where that is looked after.
    pub uses: Uses,
}

type Blocks = BTreeMap<u64, Arc<Block>>;
static BLOCKS: RwLock<Blocks> = RwLock::new(BTreeMap::new());

pub fn read() -> RwLockReadGuard<'static, Blocks> {
    BLOCKS.read().unwrap_or_else(PoisonError::into_inner)
}

pub fn write() -> RwLockWriteGuard<'static, Blocks> {
    BLOCKS.write().unwrap_or_else(PoisonError::into_inner)
}

impl Block {
    pub fn new(
        base: u64,
        size: u64,
        context: Option<&'static Context>,
        device: Option<&'static Device>,
        kind: Kind,
    ) -> Block {
        Block {
            base,
            size,
            id: next_id(),
            context,
            device,
            kind,
            sync_memops: AtomicBool::new(false),
            read_mostly: AtomicU32::new(0),
            uses: Uses::default(),
        }
    }

    pub fn end(&self) -> u64 {
        self.base.saturating_add(self.size)
    }

    pub fn is_managed(&self) -> bool {
        matches!(self.kind, Kind::Managed { .. })
    }

    /// Host memory that the driver knows.
    pub fn is_host(&self) -> bool {
        match &self.kind {
            Kind::Host(_) | Kind::Registered(_) => true,
            Kind::Mapping { physical, .. } => physical.device().is_none(),
            Kind::Async(_) => self.device.is_none(),
            _ => false,
        }
    }

    /// Whether copies reach it: everything but a mapping nobody was given access to.
    fn is_reachable(&self) -> bool {
        match &self.kind {
            Kind::Mapping { access, .. } => {
                let access = access.lock().unwrap_or_else(PoisonError::into_inner);
                access.iter().any(|&(_, flags)| flags != 0)
            }
            Kind::Graph(allocation) => allocation.is_mapped(),
            _ => true,
        }
    }
}

/// The block that holds the address.
pub fn find(address: u64) -> Option<Arc<Block>> {
    find_in(&read(), address).cloned()
}

fn find_in(blocks: &Blocks, address: u64) -> Option<&Arc<Block>> {
    blocks
        .range(..=address)
        .next_back()
        .map(|(_, block)| block)
        .filter(|block| address < block.end())
}

/// The block at the beginning of `bytes` that the driver knows all of and copies may reach: neighbouring
/// mappings count as one. `INVALID_VALUE` otherwise.
pub fn reachable(address: u64, bytes: u64) -> Result<Arc<Block>, CudaError> {
    let end = address.checked_add(bytes).ok_or(CudaError::INVALID_VALUE)?;
    let blocks = read();
    let first = find_in(&blocks, address).filter(|block| block.is_reachable());
    let first = first.ok_or(CudaError::INVALID_VALUE)?;
    let mut at = first.end();
    while at < end {
        let next = blocks
            .get(&at)
            .filter(|block| block.is_reachable() && block.size != 0);
        at = next.ok_or(CudaError::INVALID_VALUE)?.end();
    }
    Ok(first.clone())
}

/// True if any block lies in the range.
pub fn overlaps(blocks: &Blocks, address: u64, bytes: u64) -> bool {
    let end = address.saturating_add(bytes);
    find_in(blocks, address).is_some() || blocks.range(address..end).next().is_some()
}

pub fn insert(block: Block) -> Arc<Block> {
    let block = Arc::new(block);
    write().insert(block.base, block.clone());
    block
}

/// Takes the block that begins at `address` out of the list, if `fits`. `INVALID_VALUE` otherwise.
pub fn remove(address: u64, fits: impl FnOnce(&Block) -> bool) -> Result<Arc<Block>, CudaError> {
    let mut blocks = write();
    if !blocks.get(&address).is_some_and(|block| fits(block)) {
        return Err(CudaError::INVALID_VALUE);
    }
    blocks.remove(&address).ok_or(CudaError::INVALID_VALUE)
}

/// Gives back the memory of a block that is out of the list. Mappings and pool blocks have their own way.
pub fn release(block: &Block) {
    let Some(device) = block.device else {
        if let Kind::Host(_) = block.kind {
            space::unmap(block.base, block.size);
        }
        return;
    };
    match &block.kind {
        Kind::Device { small: true, .. } => {
            if let Some(context) = block.context {
                let mut heap = context.heap.lock().unwrap_or_else(PoisonError::into_inner);
                // Where nothing takes time, neither shall this.
                let keep = node::connected().is_some_and(|node| node.null);
                heap.give(&device.vram, block.base, block.size, keep);
            }
        }
        Kind::Device { extent, .. } | Kind::Managed { extent, .. } => {
            space::unmap(block.base, extent.bytes);
            device.vram.give(*extent);
        }
        Kind::Imported { mapped, .. } | Kind::Borrowed { mapped, .. } => space::unmap(mapped.0, mapped.1),
        Kind::Host(_) => space::unmap(block.base, block.size),
        Kind::Registered(_) | Kind::Mapping { .. } | Kind::Async(_) | Kind::Graph(_) => {}
    }
}

/// Frees what dies with a context: plain, pitched, managed, imported and host memory; not mappings, not
/// what pools gave.
pub fn drop_all_of(context: &'static Context) {
    super::free::drop_deferred_of(context);
    let mut gone = Vec::new();
    write().retain(|_, block| {
        let own = block.context.is_some_and(|of| std::ptr::eq(of, context));
        let dies = own && !matches!(block.kind, Kind::Mapping { .. } | Kind::Async(_));
        if dies {
            gone.push(block.clone());
        }
        !dies
    });
    for block in gone {
        release(&block);
    }
    let mut heap = context.heap.lock().unwrap_or_else(PoisonError::into_inner);
    heap.clear(&context.device.vram);
}
