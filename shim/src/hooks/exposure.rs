//! Calls that make a block known to somebody else: another process, another driver, a card on the bus, or a program that keeps
//! registrations by the block's identity. Such a block goes back to the driver when it is freed, so that the driver tells all
//! of them. Nothing else is decided here; and since a block's number is never read without the block being exposed, no
//! program sees one number twice.
//!
//! Next: `hooks/capture.rs`.

use driver::CudaError;
use driver::abi::{
    CUdevice, CUdeviceptr, CUeglStreamConnection, CUipcMemHandle, CUlogicalEndpointId,
    CUmemGenericAllocationHandle, CUmemRangeHandleType, CUpointer_attribute, EGLStreamKHR, EGLint, c_uint,
    c_ulonglong, c_void, cuuint64_t,
};

use crate::guard::{Call, Otherwise, Verdict};

/// Pointer attributes by which a block is known: its tokens for peers on the bus, its number, and whether a network card may
/// reach it, which nobody asks but those who are about to let one.
const KNOWN_BY: [CUpointer_attribute; 3] = [5, 7, 15];

/// An address in the page in which no memory of any kind ever is.
const NOTHING: CUdeviceptr = 16;

fn expose(call: &Call<'_>, address: CUdeviceptr) -> Verdict {
    let books = call.books_if_attached()?;
    books.live.lock().expose(address);
    match books.recycler.covers(address) {
        // The program has freed it.
        true => Err(CudaError::INVALID_VALUE.into()),
        false => Err(Otherwise::Forward),
    }
}

pub unsafe fn ipc(call: &Call<'_>, _handle: *mut CUipcMemHandle, address: CUdeviceptr) -> Verdict {
    expose(call, address)
}

pub unsafe fn range(
    call: &Call<'_>,
    _handle: *mut c_void,
    address: CUdeviceptr,
    _bytes: usize,
    _kind: CUmemRangeHandleType,
    _flags: c_ulonglong,
) -> Verdict {
    expose(call, address)
}

pub unsafe fn bind_multicast(
    call: &Call<'_>,
    _object: CUmemGenericAllocationHandle,
    _offset: usize,
    address: CUdeviceptr,
    _bytes: usize,
    _flags: c_ulonglong,
) -> Verdict {
    expose(call, address)
}

pub unsafe fn bind_multicast_v2(
    call: &Call<'_>,
    _object: CUmemGenericAllocationHandle,
    _device: CUdevice,
    _offset: usize,
    address: CUdeviceptr,
    _bytes: usize,
    _flags: c_ulonglong,
) -> Verdict {
    expose(call, address)
}

pub unsafe fn bind_endpoint(
    call: &Call<'_>,
    _endpoint: CUlogicalEndpointId,
    _device: CUdevice,
    _offset: cuuint64_t,
    address: *mut c_void,
    _bytes: cuuint64_t,
    _flags: c_ulonglong,
) -> Verdict {
    expose(call, address as CUdeviceptr)
}

pub unsafe fn set_attribute(
    call: &Call<'_>,
    _value: *const c_void,
    _attribute: CUpointer_attribute,
    address: CUdeviceptr,
) -> Verdict {
    expose(call, address)
}

pub unsafe fn attribute(
    call: &Call<'_>,
    _data: *mut c_void,
    attribute: CUpointer_attribute,
    address: CUdeviceptr,
) -> Verdict {
    if KNOWN_BY.contains(&attribute) {
        return expose(call, address);
    }
    match call.books_if_attached()?.recycler.covers(address) {
        true => Err(CudaError::INVALID_VALUE.into()),
        false => Err(Otherwise::Forward),
    }
}

/// Of memory that was freed the driver says nothing here either, but by default values and not by an error: it is asked about
/// an address at which nothing is.
pub unsafe fn attributes(
    call: &Call<'_>,
    count: c_uint,
    attributes: *mut CUpointer_attribute,
    data: *mut *mut c_void,
    address: CUdeviceptr,
) -> Verdict {
    if attributes.is_null() {
        return Err(Otherwise::Forward);
    }
    let books = call.books_if_attached()?;
    if books.recycler.covers(address) {
        // SAFETY: the program's own call but for the address, which is only looked up.
        let asked = unsafe {
            call.driver
                .cuPointerGetAttributes(call.stream_api, count, attributes, data, NOTHING)
        };
        return Ok(asked?);
    }
    // SAFETY: the program passed so many to the driver, which reads them too.
    let asked = unsafe { core::slice::from_raw_parts(attributes, count as usize) };
    if asked.iter().any(|attribute| KNOWN_BY.contains(attribute)) {
        books.live.lock().expose(address);
    }
    Err(Otherwise::Forward)
}

pub unsafe fn address_range(
    call: &Call<'_>,
    _base: *mut CUdeviceptr,
    _bytes: *mut usize,
    address: CUdeviceptr,
) -> Verdict {
    match call.books_if_attached()?.recycler.covers(address) {
        true => Err(CudaError::NOT_FOUND.into()),
        false => Err(Otherwise::Forward),
    }
}

/// Frames are handed to another process by their addresses, which are read nowhere else: nothing is recycled here any more.
pub unsafe fn produce_frames(
    call: &Call<'_>,
    _connection: *mut CUeglStreamConnection,
    _stream: EGLStreamKHR,
    _width: EGLint,
    _height: EGLint,
) -> Verdict {
    call.books_if_attached()?.recycler.forbid();
    Err(Otherwise::Forward)
}
