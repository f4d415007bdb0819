//! Stream-ordered allocation, its pools, and freeing in stream order. How a pool is charged is in `pools.rs`.
//!
//! Inside a stream capture an allocation becomes a node of a graph, which owns it: not charged here.
//!
//! Next: `hooks/graph.rs`.

use core::ptr::null_mut;

use driver::CudaError;
use driver::StreamApi;
use driver::abi::{
    CU_MEM_LOCATION_TYPE_DEVICE, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUdevice, CUdeviceptr,
    CUmemAllocationHandleType, CUmemPool_attribute, CUmemPoolProps, CUmemoryPool, CUstream, c_ulonglong,
    c_void,
};
use ledger::ring::{Kind, Reason};
use ledger::slot::Class;

use crate::books::{Books, Here};
use crate::deferred::Stream;
use crate::guard::{Call, Otherwise, Verdict};
use crate::live::{AccountIndex, Allocation, Charged};
use crate::pools::RELEASE_THRESHOLD;
use crate::relaxed::relaxed;

/// `CU_STREAM_CAPTURE_STATUS_ACTIVE`.
const CAPTURING: u32 = 1;
/// `CU_MEM_ALLOCATION_TYPE_MANAGED`.
const MANAGED: u32 = 2;

pub unsafe fn alloc(call: &Call<'_>, pointer: *mut CUdeviceptr, bytes: usize, stream: CUstream) -> Verdict {
    if pointer.is_null() || bytes == 0 {
        return Err(Otherwise::Forward);
    }
    let books = call.books()?;
    let here = books.here(call)?;
    let device = device_of(call, stream).unwrap_or(here.device);
    let mut pool: CUmemoryPool = null_mut();
    // SAFETY: the driver writes one handle.
    let asked = unsafe {
        call.driver
            .cuDeviceGetMemPool(StreamApi::Legacy, &mut pool, device)
    };
    match asked {
        // A driver that has no pools has no such allocations either: let it say so.
        Err(CudaError::NOT_FOUND) => return Err(Otherwise::Forward),
        other => other?,
    }
    let account = books.of_device(call.driver, device)?;
    allocate(
        call,
        books,
        Here { account, ..here },
        pointer,
        bytes,
        pool,
        stream,
    )
}

pub unsafe fn alloc_from(
    call: &Call<'_>,
    pointer: *mut CUdeviceptr,
    bytes: usize,
    pool: CUmemoryPool,
    stream: CUstream,
) -> Verdict {
    if pointer.is_null() || bytes == 0 || pool.is_null() {
        return Err(Otherwise::Forward);
    }
    let books = call.books()?;
    let here = books.here(call)?;
    allocate(call, books, here, pointer, bytes, pool, stream)
}

fn allocate(
    call: &Call<'_>,
    books: &Books,
    here: Here,
    pointer: *mut CUdeviceptr,
    bytes: usize,
    handle: CUmemoryPool,
    stream: CUstream,
) -> Verdict {
    if is_capturing(call, stream) {
        return Err(Otherwise::Forward);
    }
    let found = books.pools.lock().find(handle);
    let (pool, account) = match found {
        Some(found) => found,
        None => {
            let account = books.account_of_unknown_pool(call, handle, here.account);
            (books.pools.lock().enter(handle, account), account)
        }
    };
    let account = account.ok_or(Otherwise::Forward)?;
    call.asks(bytes as u64);
    let begun = books.begin_in_pool(call, pool, account, bytes as u64)?;
    if let Err(error) = books.pass(call, account, bytes as u64) {
        books.failed_in_pool(begun);
        return Err(error.into());
    }
    // SAFETY: the driver just wrote it.
    let allocated = unsafe { *pointer };
    if !books.allocated_in_pool(call, begun) {
        undo(call, books, account, pointer, handle, stream, bytes as u64);
        books.pools.lock().forget_pointer(pool);
        books.refresh_pool(call, pool);
        return Err(CudaError::OUT_OF_MEMORY.into());
    }
    let allocation = Allocation {
        account,
        context: here.owner,
        class: Class::Pool,
        charged: Charged::InPool(pool),
        plain: None,
        serial: 0,
    };
    let stale = books.live.lock().insert(allocated, allocation);
    if let Some(stale) = stale {
        books.settle(allocated, stale);
    }
    Ok(())
}

/// The pool grew by more than anybody foresaw, beyond the cap: the block goes back, and what the pool holds idle with it.
fn undo(
    call: &Call<'_>,
    books: &Books,
    account: AccountIndex,
    pointer: *mut CUdeviceptr,
    pool: CUmemoryPool,
    stream: CUstream,
    bytes: u64,
) {
    // SAFETY: the block was handed out a moment ago on this stream; the program is told that it got none.
    relaxed(call.driver, || unsafe {
        let _ = call.driver.cuMemFreeAsync(call.stream_api, *pointer, stream);
        *pointer = 0;
        let _ = call.driver.cuStreamSynchronize(call.stream_api, stream);
        let _ = call.driver.cuMemPoolTrimTo(StreamApi::Legacy, pool, 0);
    });
    let reason = Kind::Refused(Reason::Cap);
    books.account(account).post(call.row, reason, bytes, 0);
}

/// The device of a stream that is not a default one: its pool serves the stream whatever context is current. Drivers before
/// 12.8 cannot be asked.
fn device_of(call: &Call<'_>, stream: CUstream) -> Option<CUdevice> {
    if stream.is_null() || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD {
        return None;
    }
    let mut device: CUdevice = 0;
    // SAFETY: the driver writes one number; it judges the handle itself.
    let asked = unsafe {
        call.driver
            .cuStreamGetDevice(call.stream_api, stream, &mut device)
    };
    asked.ok().map(|()| device)
}

/// Whether what is submitted to the stream is captured.
pub fn is_capturing(call: &Call<'_>, stream: CUstream) -> bool {
    let mut status = 0;
    // SAFETY: the driver writes one number; it judges the handle itself.
    let asked = unsafe {
        call.driver
            .cuStreamIsCapturing(call.stream_api, stream, &mut status)
    };
    asked.is_ok() && status == CAPTURING
}

/// By kind, as `memory::free`; an ordinary block's charge stays until its stream is synchronised.
pub unsafe fn free(call: &Call<'_>, pointer: CUdeviceptr, stream: CUstream) -> Verdict {
    let books = call.books_if_attached()?;
    let taken = books.live.lock().take(pointer);
    let Some(taken) = taken else {
        return Err(books.unknown(pointer));
    };
    if let Err(error) = call.pass() {
        books.live.lock().put_back(pointer, taken);
        return Err(error.into());
    }
    match taken.charged {
        Charged::InPool(pool) => {
            books.settle(pointer, taken);
            books.refresh_pool(call, pool);
        }
        _ => {
            let context = books
                .current(call)
                .map_or(taken.context, |context| context as usize);
            let stream = Stream::of(stream, call.stream_api, context);
            books.deferred.add(pointer, taken, stream, context);
        }
    }
    Ok(())
}

pub unsafe fn create(call: &Call<'_>, pool: *mut CUmemoryPool, properties: *const CUmemPoolProps) -> Verdict {
    if pool.is_null() || properties.is_null() {
        return Err(Otherwise::Forward);
    }
    let books = call.books()?;
    // SAFETY: the program passed the properties to the driver, which reads them too; older ones are shorter, but all have
    // these three fields.
    let (kind, location, device) = unsafe {
        (
            (&raw const (*properties).allocType).read(),
            (&raw const (*properties).location.kind).read(),
            (&raw const (*properties).location.id).read(),
        )
    };
    let account = if location == CU_MEM_LOCATION_TYPE_DEVICE {
        books.of_device(call.driver, device).ok()
    } else if location == 0 && kind == MANAGED {
        books.here(call).ok().map(|here| here.account)
    } else {
        None
    };
    call.pass()?;
    // SAFETY: the driver just wrote it.
    let handle = unsafe { *pool };
    books.pools.lock().enter(handle, account);
    Ok(())
}

/// Memory in an imported pool is its exporter's.
pub unsafe fn import(
    call: &Call<'_>,
    pool: *mut CUmemoryPool,
    _handle: *mut c_void,
    _kind: CUmemAllocationHandleType,
    _flags: c_ulonglong,
) -> Verdict {
    let books = call.books_if_attached()?;
    call.pass()?;
    // SAFETY: the driver just wrote it.
    let handle = unsafe { *pool };
    books.pools.lock().enter(handle, None);
    Ok(())
}

pub unsafe fn destroy(call: &Call<'_>, pool: CUmemoryPool) -> Verdict {
    let books = call.books_if_attached()?;
    let id = books.take_pool(pool).ok_or(Otherwise::Forward)?;
    if let Err(error) = call.pass() {
        books.put_pool_back(pool, id);
        return Err(error.into());
    }
    books.destroyed_pool(id);
    Ok(())
}

pub unsafe fn trim(call: &Call<'_>, pool: CUmemoryPool, _keep: usize) -> Verdict {
    let books = call.books_if_attached()?;
    call.pass()?;
    let known = books.pools.lock().find(pool);
    if let Some((pool, _)) = known {
        books.refresh_pool(call, pool);
    }
    Ok(())
}

pub unsafe fn set_attribute(
    call: &Call<'_>,
    pool: CUmemoryPool,
    attribute: CUmemPool_attribute,
    value: *mut c_void,
) -> Verdict {
    let books = call.books_if_attached()?;
    call.pass()?;
    if attribute == RELEASE_THRESHOLD && !value.is_null() {
        // SAFETY: the driver read the same 64-bit number and accepted it.
        let bytes = unsafe { value.cast::<u64>().read_unaligned() };
        books.pools.lock().set_threshold(pool, bytes);
    }
    Ok(())
}
