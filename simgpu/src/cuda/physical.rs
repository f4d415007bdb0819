//! Physical memory by handle: `cuMemCreate` and its like.
//!
//! A piece of physical memory lives while a handle, a mapping or an exported descriptor of it does;
//! handles and mappings are counted by `Arc`, descriptors by their lock (`vram.rs`).
//! Next file of the walk: `reservation.rs`.

use super::Sim;
use super::allocate::spending;
use super::block::{self, Kind};
use super::edge::{get as read, needed, put};
use super::node::{Device, next_id, node};
use super::space::GRANULE;
use super::vram::{Extent, HOST, Vram};
use crate::client::Cost;
use driver::prelude::*;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

pub const PINNED: u32 = 1;
pub const POSIX_FD: u32 = 1;

pub enum Store {
    /// A range of our own device's file.
    Own(Extent),
    /// A range of another opening, which holds it; perhaps of another process.
    Held { file: OwnedFd, offset: u64 },
}

pub struct Physical {
    pub bytes: u64,
    pub location: CUmemLocation,
    device: Option<&'static Device>,
    pub store: Store,
    pub handle_types: u32,
    pub compression: u8,
    pub rdma: u8,
    pub usage: u16,
}

impl Physical {
    pub fn imported(bytes: u64, device: Option<&'static Device>, file: OwnedFd, offset: u64) -> Physical {
        let location = match device {
            Some(device) => CUmemLocation {
                kind: CU_MEM_LOCATION_TYPE_DEVICE,
                id: device.ordinal,
            },
            None => CUmemLocation {
                kind: CU_MEM_LOCATION_TYPE_HOST,
                id: 0,
            },
        };
        let store = Store::Held { file, offset };
        Physical {
            bytes,
            location,
            device,
            store,
            handle_types: POSIX_FD,
            compression: 0,
            rdma: 0,
            usage: 0,
        }
    }

    pub fn device(&self) -> Option<&'static Device> {
        self.device
    }

    pub fn vram(&self) -> &'static Vram {
        self.device.map_or(&HOST, |device| &device.vram)
    }

    /// Where its bytes are.
    pub fn file(&self) -> Result<(BorrowedFd<'_>, u64), CudaError> {
        match &self.store {
            Store::Own(extent) => Ok((self.vram().file()?, extent.offset)),
            Store::Held { file, offset } => Ok((file.as_fd(), *offset)),
        }
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        if let Store::Own(extent) = self.store {
            self.vram().give(extent);
        }
    }
}

/// Handles with their counts.
type Handles = HashMap<u64, (Arc<Physical>, u64)>;
static HANDLES: LazyLock<Mutex<Handles>> = LazyLock::new(Default::default);

fn handles() -> MutexGuard<'static, Handles> {
    HANDLES.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn get(handle: u64) -> Result<Arc<Physical>, CudaError> {
    handles()
        .get(&handle)
        .map(|(physical, _)| physical.clone())
        .ok_or(CudaError::INVALID_VALUE)
}

/// A new handle for memory that has none.
pub fn insert(physical: Physical) -> u64 {
    // Spaced and never small, so that no two kinds of number meet.
    let handle = 0x5000_0000_0000 + next_id() * 64;
    handles().insert(handle, (Arc::new(physical), 1));
    handle
}

/// Another handle on memory that may have one already: then the same one, counted.
fn retain(physical: Arc<Physical>) -> u64 {
    let mut handles = handles();
    if let Some((handle, entry)) = handles
        .iter_mut()
        .find(|(_, entry)| Arc::ptr_eq(&entry.0, &physical))
    {
        entry.1 += 1;
        return *handle;
    }
    let handle = 0x5000_0000_0000 + next_id() * 64;
    handles.insert(handle, (physical, 1));
    handle
}

/// The device of a location, `None` for the host. Only what the location's kind uses of it is looked at.
pub fn place(location: CUmemLocation) -> Result<Option<&'static Device>, CudaError> {
    match location.kind {
        CU_MEM_LOCATION_TYPE_DEVICE => Ok(Some(node()?.device(location.id)?)),
        CU_MEM_LOCATION_TYPE_HOST | CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT => Ok(None),
        CU_MEM_LOCATION_TYPE_HOST_NUMA if location.id >= 0 => Ok(None),
        _ => Err(CudaError::INVALID_VALUE),
    }
}

fn check(
    prop: *const CUmemAllocationProp,
) -> Result<(CUmemAllocationProp, Option<&'static Device>), CudaError> {
    let prop = read(prop)?;
    if prop.kind != PINNED {
        return Err(CudaError::INVALID_VALUE);
    }
    let device = place(prop.location)?;
    if prop.requestedHandleTypes & !POSIX_FD != 0 {
        return Err(CudaError::NOT_SUPPORTED);
    }
    Ok((prop, device))
}

impl Sim {
    pub(super) fn cuMemGetAllocationGranularity(
        _: StreamApi,
        granularity: *mut usize,
        prop: *const CUmemAllocationProp,
        option: CUmemAllocationGranularity_flags,
    ) -> CuResult {
        node()?;
        needed(granularity)?;
        check(prop)?;
        if option > 1 {
            return Err(CudaError::INVALID_VALUE);
        }
        put(granularity, GRANULE as usize)
    }

    pub(super) fn cuMemCreate(
        _: StreamApi,
        handle: *mut CUmemGenericAllocationHandle,
        size: usize,
        prop: *const CUmemAllocationProp,
        flags: c_ulonglong,
    ) -> CuResult {
        let node = node()?;
        needed(handle)?;
        let (prop, device) = check(prop)?;
        let bytes = size as u64;
        if bytes == 0 || !bytes.is_multiple_of(GRANULE) || flags != 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        let vram = device.map_or(&HOST, |device| &device.vram);
        let extent = spending(node.client, bytes, || vram.take(bytes))?;
        let physical = Physical {
            bytes,
            location: prop.location,
            device,
            store: Store::Own(extent),
            handle_types: prop.requestedHandleTypes,
            compression: 0,
            rdma: prop.gpuDirectRDMACapable,
            usage: prop.usage,
        };
        put(handle, insert(physical))
    }

    pub(super) fn cuMemRelease(_: StreamApi, handle: CUmemGenericAllocationHandle) -> CuResult {
        let node = node()?;
        let _cost = node.client.spend(Cost::Free);
        let mut handles = handles();
        let entry = handles.get_mut(&handle).ok_or(CudaError::INVALID_VALUE)?;
        entry.1 -= 1;
        let last = if entry.1 == 0 {
            handles.remove(&handle)
        } else {
            None
        };
        drop(handles);
        // Memory that nothing maps goes here, outside the lock.
        drop(last);
        Ok(())
    }

    pub(super) fn cuMemRetainAllocationHandle(
        _: StreamApi,
        handle: *mut CUmemGenericAllocationHandle,
        address: *mut c_void,
    ) -> CuResult {
        node()?;
        needed(handle)?;
        let block = block::find(address as u64).ok_or(CudaError::INVALID_VALUE)?;
        match &block.kind {
            Kind::Mapping { physical, .. } => put(handle, retain(physical.clone())),
            _ => Err(CudaError::INVALID_VALUE),
        }
    }

    pub(super) fn cuMemGetAllocationPropertiesFromHandle(
        _: StreamApi,
        prop: *mut CUmemAllocationProp,
        handle: CUmemGenericAllocationHandle,
    ) -> CuResult {
        node()?;
        needed(prop)?;
        let physical = get(handle)?;
        put(
            prop,
            CUmemAllocationProp {
                kind: PINNED,
                requestedHandleTypes: physical.handle_types,
                location: physical.location,
                win32HandleMetaData: std::ptr::null_mut(),
                compressionType: physical.compression,
                gpuDirectRDMACapable: physical.rdma,
                usage: physical.usage,
                reserved: [0; 4],
            },
        )
    }
}
