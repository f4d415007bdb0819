//! Legacy IPC handles of device memory.
//!
//! A handle says where the memory lies in the exporter's file; the importer fetches the file from the
//! node and shows the same bytes. An importer's own block is not charged: the exporter's is.

use super::Sim;
use super::block::{self, Block, Kind};
use super::current::current;
use super::edge::{needed, put};
use super::space::{self, GRANULE};
use super::vram::{Extent, hold};
use driver::prelude::*;
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::{LazyLock, Mutex, PoisonError};

const MAGIC: u32 = 0x4d45_4d49;
const LAZY_PEER_ACCESS: u32 = 1;

/// What the 64 bytes of a handle hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
struct Words {
    magic: u32,
    pid: u32,
    share: u64,
    offset: u64,
    bytes: u64,
    /// Where the block begins in the range.
    inner: u64,
    size: u64,
    device: u64,
    block: u64,
}

const _: () = assert!(size_of::<Words>() == size_of::<CUipcMemHandle>());

/// Handles open in a context: address and count.
type Opened = HashMap<(Words, u64), (u64, u64)>;
static OPENED: LazyLock<Mutex<Opened>> = LazyLock::new(Default::default);

impl Sim {
    pub(super) fn cuIpcGetMemHandle(
        _: StreamApi,
        handle: *mut CUipcMemHandle,
        dptr: CUdeviceptr,
    ) -> CuResult {
        current()?;
        needed(handle)?;
        let block = block::find(dptr).ok_or(CudaError::INVALID_VALUE)?;
        let (Kind::Device { extent, offset, .. }, Some(device)) = (&block.kind, block.device) else {
            return Err(CudaError::INVALID_VALUE);
        };
        let share = device.vram.share()?;
        device.vram.mark_shared(*extent);
        put(
            handle.cast::<Words>(),
            Words {
                magic: MAGIC,
                pid: std::process::id(),
                share,
                offset: extent.offset,
                bytes: extent.bytes,
                inner: *offset,
                size: block.size,
                device: device.index as u64,
                block: block.id,
            },
        )
    }

    pub(super) fn cuIpcOpenMemHandle(
        api: StreamApi,
        pdptr: *mut CUdeviceptr,
        handle: CUipcMemHandle,
        flags: c_uint,
    ) -> CuResult {
        Sim::cuIpcOpenMemHandle_v2(api, pdptr, handle, flags)
    }

    pub(super) fn cuIpcOpenMemHandle_v2(
        _: StreamApi,
        pdptr: *mut CUdeviceptr,
        handle: CUipcMemHandle,
        flags: c_uint,
    ) -> CuResult {
        let (node, context) = current()?;
        needed(pdptr)?;
        // SAFETY: 64 bytes of integers, of which every pattern is a value.
        let words = unsafe { std::mem::transmute_copy::<CUipcMemHandle, Words>(&handle) };
        let whole = words.offset.is_multiple_of(GRANULE) && words.bytes.is_multiple_of(GRANULE);
        let inside = words
            .inner
            .checked_add(words.size)
            .is_some_and(|end| end <= words.bytes);
        if words.magic != MAGIC || flags != LAZY_PEER_ACCESS || !whole || !inside || words.size == 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        if words.pid == std::process::id() {
            return Err(CudaError::INVALID_CONTEXT);
        }
        let device = node
            .devices
            .iter()
            .find(|device| device.index as u64 == words.device);
        let device = device.ok_or(CudaError::INVALID_DEVICE)?;
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((address, count)) = opened.get_mut(&(words, context.id())) {
            *count += 1;
            return put(pdptr, *address);
        }
        let extent = Extent {
            offset: words.offset,
            bytes: words.bytes,
        };
        let held = hold(node.client.fetch(words.share)?.as_fd(), extent)?;
        let base = space::reserve(extent.bytes, GRANULE, 0).ok_or(CudaError::OUT_OF_MEMORY)?;
        if !space::show(base, extent.bytes, held.as_fd(), extent.offset, true) {
            space::unmap(base, extent.bytes);
            return Err(CudaError::MAP_FAILED);
        }
        let kind = Kind::Imported {
            _held: held,
            mapped: (base, extent.bytes),
        };
        let address = base + words.inner;
        block::insert(Block::new(address, words.size, Some(context), Some(device), kind));
        opened.insert((words, context.id()), (address, 1));
        put(pdptr, address)
    }

    pub(super) fn cuIpcCloseMemHandle(_: StreamApi, dptr: CUdeviceptr) -> CuResult {
        let (node, context) = current()?;
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = opened.iter_mut().find(|(_, (address, _))| *address == dptr);
        let (&key, (_, count)) = entry.ok_or(CudaError::INVALID_VALUE)?;
        *count -= 1;
        if *count != 0 {
            return Ok(());
        }
        opened.remove(&key);
        let block = block::remove(dptr, |block| matches!(block.kind, Kind::Imported { .. }))?;
        node.client
            .synchronize_context(context.device.index, context.number(), context.wait())?;
        block::release(&block);
        Ok(())
    }
}
