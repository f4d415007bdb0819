//! Physical memory without an address (`cuMemCreate`), its handles and mappings. How long it is charged is in `physical.rs`.
//!
//! Imported memory is its exporter's and not charged here.
//!
//! Next: `hooks/context.rs`.

use driver::abi::{
    CU_MEM_LOCATION_TYPE_DEVICE, CUdeviceptr, CUmemAllocationHandleType, CUmemAllocationProp,
    CUmemGenericAllocationHandle, c_ulonglong, c_void,
};
use ledger::slot::Class;

use crate::guard::{Call, Otherwise, Verdict};
use crate::live::PAGE;

pub unsafe fn create(
    call: &Call<'_>,
    handle: *mut CUmemGenericAllocationHandle,
    bytes: usize,
    properties: *const CUmemAllocationProp,
    _flags: c_ulonglong,
) -> Verdict {
    if handle.is_null() || properties.is_null() || bytes == 0 {
        return Err(Otherwise::Forward);
    }
    // SAFETY: the driver reads the same two fields; whatever else the program left in the struct is not looked at.
    let (kind, device) = unsafe {
        (
            (&raw const (*properties).location.kind).read(),
            (&raw const (*properties).location.id).read(),
        )
    };
    if kind != CU_MEM_LOCATION_TYPE_DEVICE {
        return Err(Otherwise::Forward);
    }
    let books = call.books()?;
    let account = books.of_device(call.driver, device)?;
    let charge = (bytes as u64).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
    call.asks(bytes as u64);
    let reservation = books.reserve(call, account, charge, Class::Physical)?;
    books.pass(call, account, charge)?;
    let charge = reservation.keep();
    // SAFETY: the driver just wrote it.
    let stale = books.physical.lock().create(unsafe { *handle }, account, charge);
    books.give_back_physical(stale);
    Ok(())
}

pub unsafe fn release(call: &Call<'_>, handle: CUmemGenericAllocationHandle) -> Verdict {
    let books = call.books_if_attached()?;
    let reference = books
        .physical
        .lock()
        .take_handle(handle)
        .ok_or(Otherwise::Forward)?;
    if let Err(error) = call.pass() {
        let stale = books.physical.lock().retain(handle, reference);
        books.give_back_physical(stale);
        return Err(error.into());
    }
    let last = books.physical.lock().drop_reference(reference);
    books.give_back_physical(last);
    Ok(())
}

pub unsafe fn retain(
    call: &Call<'_>,
    handle: *mut CUmemGenericAllocationHandle,
    address: *mut c_void,
) -> Verdict {
    if handle.is_null() {
        return Err(Otherwise::Forward);
    }
    let books = call.books_if_attached()?;
    let reference = books
        .physical
        .lock()
        .add_by_address(address as u64)
        .ok_or(Otherwise::Forward)?;
    if let Err(error) = call.pass() {
        let last = books.physical.lock().drop_reference(reference);
        books.give_back_physical(last);
        return Err(error.into());
    }
    // SAFETY: the driver just wrote it.
    let stale = books.physical.lock().retain(unsafe { *handle }, reference);
    books.give_back_physical(stale);
    Ok(())
}

/// A handle that names memory of this process again counts as one more use of it.
pub unsafe fn import(
    call: &Call<'_>,
    handle: *mut CUmemGenericAllocationHandle,
    _shared: *mut c_void,
    _kind: CUmemAllocationHandleType,
) -> Verdict {
    if handle.is_null() {
        return Err(Otherwise::Forward);
    }
    let books = call.books_if_attached()?;
    call.pass()?;
    // SAFETY: the driver just wrote it.
    let handle = unsafe { *handle };
    let mut physical = books.physical.lock();
    if let Some(reference) = physical.add_by_handle(handle) {
        physical.retain(handle, reference);
    }
    Ok(())
}

pub unsafe fn map(
    call: &Call<'_>,
    address: CUdeviceptr,
    bytes: usize,
    _offset: usize,
    handle: CUmemGenericAllocationHandle,
    _flags: c_ulonglong,
) -> Verdict {
    let books = call.books_if_attached()?;
    let reference = books
        .physical
        .lock()
        .add_by_handle(handle)
        .ok_or(Otherwise::Forward)?;
    if let Err(error) = call.pass() {
        let last = books.physical.lock().drop_reference(reference);
        books.give_back_physical(last);
        return Err(error.into());
    }
    books.physical.lock().map(address, bytes as u64, reference);
    Ok(())
}

pub unsafe fn unmap(call: &Call<'_>, address: CUdeviceptr, bytes: usize) -> Verdict {
    let books = call.books_if_attached()?;
    let unmapped = books.physical.lock().take_mappings(address, bytes as u64);
    if unmapped.is_empty() {
        return Err(Otherwise::Forward);
    }
    if let Err(error) = call.pass() {
        let mut physical = books.physical.lock();
        for (start, size, reference) in unmapped {
            physical.map(start, size, reference);
        }
        return Err(error.into());
    }
    for (_, _, reference) in unmapped {
        let last = books.physical.lock().drop_reference(reference);
        books.give_back_physical(last);
    }
    Ok(())
}
