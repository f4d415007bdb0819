//! Pools and their pointers in other processes: a descriptor that names a pool, 64 bytes that name a pointer of it.
//!
//! An imported pool gives out nothing itself; a pointer imported from it shows the exporter's bytes and is charged to the
//! exporter alone. What is imported holds its range, so that the exporter's memory stays until both let go.

use super::Sim;
use super::block::{self, Block, Kind};
use super::edge::{get as read, needed, put};
use super::node::node;
use super::physical::POSIX_FD;
use super::pool::{self, Origin, Pool};
use super::space::{self, GRANULE};
use super::vram::{Extent, hold};
use driver::prelude::*;
use std::fs::File;
use std::os::fd::{AsFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

const MAGIC: u64 = 0x5354_494e_5450_4f4f;

/// What the descriptor of a pool says.
const POOL_WORDS: usize = 5;

/// What the 64 bytes of a pointer hold.
#[derive(Clone, Copy)]
#[repr(C)]
struct Words {
    magic: u64,
    pool: u64,
    offset: u64,
    bytes: u64,
    /// Where the block begins in the range.
    inner: u64,
    size: u64,
    rest: [u64; 2],
}

const _: () = assert!(size_of::<Words>() == size_of::<CUmemPoolPtrExportData>());

/// A file of a few words.
fn file_of(words: [u64; POOL_WORDS]) -> Result<OwnedFd, CudaError> {
    let failed = CudaError::OPERATING_SYSTEM;
    // SAFETY: a system call with a constant name; the result is checked and nobody else's.
    let file = unsafe {
        let fd = libc::memfd_create(c"stint-sim-pool".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(failed);
        }
        File::from_raw_fd(fd)
    };
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    file.write_all_at(&bytes, 0).map_err(|_| failed)?;
    Ok(file.into())
}

/// The words of such a file; `INVALID_VALUE` for any other descriptor.
fn words_of(fd: c_int) -> Result<[u64; POOL_WORDS], CudaError> {
    let invalid = CudaError::INVALID_VALUE;
    // SAFETY: a system call on a number that may or may not be a descriptor; the result is checked.
    let file = unsafe {
        let copy = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3);
        if copy < 0 {
            return Err(invalid);
        }
        File::from_raw_fd(copy)
    };
    let mut bytes = [0u8; 8 * POOL_WORDS];
    file.read_exact_at(&mut bytes, 0).map_err(|_| invalid)?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[8 * at + i]));
    let words: [u64; POOL_WORDS] = std::array::from_fn(word);
    if words[0] != MAGIC {
        return Err(invalid);
    }
    Ok(words)
}

impl Sim {
    pub(super) fn cuMemPoolExportToShareableHandle(
        _: StreamApi,
        out: *mut c_void,
        pool: CUmemoryPool,
        kind: CUmemAllocationHandleType,
        flags: c_ulonglong,
    ) -> CuResult {
        node()?;
        needed(out)?;
        let pool = pool::get(pool)?;
        let device = pool.device.ok_or(CudaError::INVALID_VALUE)?;
        if flags != 0 || kind != POSIX_FD || pool.origin != Origin::Exportable {
            return Err(CudaError::INVALID_VALUE);
        }
        let uuid = device.facts.uuid;
        let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| uuid[at + i]));
        let descriptor = file_of([MAGIC, pool.id, device.vram.share()?, half(0), half(8)])?;
        put(out.cast::<c_int>(), descriptor.into_raw_fd())
    }

    pub(super) fn cuMemPoolImportFromShareableHandle(
        _: StreamApi,
        pool_out: *mut CUmemoryPool,
        handle: *mut c_void,
        kind: CUmemAllocationHandleType,
        flags: c_ulonglong,
    ) -> CuResult {
        let node = node()?;
        needed(pool_out)?;
        if flags != 0 || kind != POSIX_FD {
            return Err(CudaError::INVALID_VALUE);
        }
        let [_, id, share, first, second] = words_of(handle as usize as c_int)?;
        let same = |uuid: &[u8; 16]| uuid[..8] == first.to_le_bytes() && uuid[8..] == second.to_le_bytes();
        let device = node.devices.iter().find(|device| same(&device.facts.uuid));
        let device = device.ok_or(CudaError::INVALID_DEVICE)?;
        let imported = Pool::create(Some(device), -1, 0, Origin::Imported { pool: id, share });
        put(pool_out, imported.handle())
    }

    pub(super) fn cuMemPoolExportPointer(
        _: StreamApi,
        out: *mut CUmemPoolPtrExportData,
        dptr: CUdeviceptr,
    ) -> CuResult {
        node()?;
        needed(out)?;
        let block = block::find(dptr).ok_or(CudaError::INVALID_VALUE)?;
        let Kind::Async(pool) = &block.kind else {
            return Err(CudaError::INVALID_VALUE);
        };
        let device = pool.device.ok_or(CudaError::INVALID_VALUE)?;
        if pool.origin != Origin::Exportable || block.base != dptr {
            return Err(CudaError::INVALID_VALUE);
        }
        let (extent, inner) = pool.place_of(dptr).ok_or(CudaError::INVALID_VALUE)?;
        device.vram.mark_shared(extent);
        let words = Words {
            magic: MAGIC,
            pool: pool.id,
            offset: extent.offset,
            bytes: extent.bytes,
            inner,
            size: block.size,
            rest: [0; 2],
        };
        put(out.cast::<Words>(), words)
    }

    pub(super) fn cuMemPoolImportPointer(
        _: StreamApi,
        ptr_out: *mut CUdeviceptr,
        pool: CUmemoryPool,
        shareData: *mut CUmemPoolPtrExportData,
    ) -> CuResult {
        let node = node()?;
        needed(ptr_out)?;
        let pool = pool::get(pool)?;
        let words = read(shareData.cast::<Words>().cast_const())?;
        let Origin::Imported { pool: id, share } = pool.origin else {
            return Err(CudaError::INVALID_VALUE);
        };
        let whole = words.offset.is_multiple_of(GRANULE) && words.bytes.is_multiple_of(GRANULE);
        let end = words.inner.checked_add(words.size);
        let inside = end.is_some_and(|end| end <= words.bytes);
        if words.magic != MAGIC || words.pool != id || !whole || !inside || words.size == 0 {
            return Err(CudaError::INVALID_VALUE);
        }
        let extent = Extent {
            offset: words.offset,
            bytes: words.bytes,
        };
        let held = hold(node.client.fetch(share)?.as_fd(), extent)?;
        let base = space::reserve(extent.bytes, GRANULE, 0).ok_or(CudaError::OUT_OF_MEMORY)?;
        if !space::show(base, extent.bytes, held.as_fd(), extent.offset, true) {
            space::unmap(base, extent.bytes);
            return Err(CudaError::MAP_FAILED);
        }
        let kind = Kind::Borrowed {
            _held: held,
            mapped: (base, extent.bytes),
        };
        let address = base + words.inner;
        block::insert(Block::new(address, words.size, None, pool.device, kind));
        put(ptr_out, address)
    }
}
