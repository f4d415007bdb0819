//! Linear, pitched and managed memory, and every way to free it.
//!
//! A null pointer or a size of 0 is the driver's to answer, before any cap. Next: `recycler/mod.rs`, then `books.rs`.

use driver::abi::{CUdeviceptr, CUdeviceptr_v1, c_uint};
use driver::{CudaError, Driver, StreamApi};
use ledger::slot::Class;

use crate::books::{Books, Here};
use crate::guard::{Call, Otherwise, Verdict};
use crate::live::{Charged, charge_for, is_small};
use crate::relaxed::relaxed;

/// Rows of a pitched block begin at multiples of this on all devices so far; the driver's answer corrects it.
const PITCH_UNIT: u64 = 512;

pub unsafe fn alloc(call: &Call<'_>, pointer: *mut CUdeviceptr, bytes: usize) -> Verdict {
    if pointer.is_null() || bytes == 0 {
        return Err(Otherwise::Forward);
    }
    let books = call.books()?;
    let here = books.here(call)?;
    if let Some(kept) = books.recycled(call, here, bytes as u64) {
        // SAFETY: not null, and the program's to be written, as it would be by the driver.
        unsafe { *pointer = kept };
        return Ok(());
    }
    // SAFETY: read only after the driver wrote it.
    allocate_in(
        call,
        books,
        here,
        bytes as u64,
        (Class::Device, true),
        || unsafe { *pointer },
    )
}

pub unsafe fn alloc_v1(call: &Call<'_>, pointer: *mut CUdeviceptr_v1, bytes: c_uint) -> Verdict {
    // SAFETY: read only after the driver wrote it.
    let read = || u64::from(unsafe { *pointer });
    allocate(call, u64::from(bytes), Class::Device, pointer.is_null(), read)
}

pub unsafe fn alloc_managed(
    call: &Call<'_>,
    pointer: *mut CUdeviceptr,
    bytes: usize,
    _flags: c_uint,
) -> Verdict {
    // SAFETY: read only after the driver wrote it.
    allocate(call, bytes as u64, Class::Managed, pointer.is_null(), || unsafe {
        *pointer
    })
}

fn allocate(
    call: &Call<'_>,
    bytes: u64,
    class: Class,
    is_null: bool,
    pointer: impl FnOnce() -> u64,
) -> Verdict {
    if is_null || bytes == 0 {
        return Err(Otherwise::Forward);
    }
    let books = call.books()?;
    let here = books.here(call)?;
    allocate_in(call, books, here, bytes, (class, false), pointer)
}

fn allocate_in(
    call: &Call<'_>,
    books: &Books,
    here: Here,
    bytes: u64,
    (class, plain): (Class, bool),
    pointer: impl FnOnce() -> u64,
) -> Verdict {
    let charge = charge_for(bytes);
    call.asks(bytes);
    let reservation = books.reserve(call, here.account, charge, reserved_as(bytes, class))?;
    books.pass(call, here.account, charge)?;
    books.enter(pointer(), here, bytes, (class, plain), reservation);
    Ok(())
}

/// A small request may cost a whole slab.
fn reserved_as(bytes: u64, class: Class) -> Class {
    if is_small(bytes) { Class::Slab } else { class }
}

pub unsafe fn alloc_pitch(
    call: &Call<'_>,
    pointer: *mut CUdeviceptr,
    pitch: *mut usize,
    width: usize,
    height: usize,
    _element: c_uint,
) -> Verdict {
    let is_null = pointer.is_null() || pitch.is_null();
    // SAFETY: read only after the driver wrote both; what cannot be granted is taken back from the program.
    let read = || unsafe { (*pointer, *pitch as u64) };
    // SAFETY: as above.
    let erase = || unsafe { *pointer = 0 };
    allocate_pitched(
        call,
        [width as u64, height as u64],
        is_null,
        read,
        erase,
        |driver, pointer| {
            // SAFETY: the driver handed it out a moment ago.
            relaxed(driver, || unsafe {
                driver.cuMemFree_v2(StreamApi::Legacy, pointer)
            })
        },
    )
}

pub unsafe fn alloc_pitch_v1(
    call: &Call<'_>,
    pointer: *mut CUdeviceptr_v1,
    pitch: *mut c_uint,
    width: c_uint,
    height: c_uint,
    _element: c_uint,
) -> Verdict {
    let is_null = pointer.is_null() || pitch.is_null();
    // SAFETY: read only after the driver wrote both; what cannot be granted is taken back from the program.
    let read = || unsafe { (u64::from(*pointer), u64::from(*pitch)) };
    // SAFETY: as above.
    let erase = || unsafe { *pointer = 0 };
    allocate_pitched(
        call,
        [u64::from(width), u64::from(height)],
        is_null,
        read,
        erase,
        |driver, pointer| {
            // SAFETY: the driver handed it out a moment ago, as a 32-bit pointer.
            relaxed(driver, || unsafe {
                driver.cuMemFree(StreamApi::Legacy, pointer as CUdeviceptr_v1)
            })
        },
    )
}

fn allocate_pitched(
    call: &Call<'_>,
    [width, height]: [u64; 2],
    is_null: bool,
    answer: impl FnOnce() -> (u64, u64),
    erase: impl FnOnce(),
    free: impl FnOnce(&Driver, u64) -> Result<(), CudaError>,
) -> Verdict {
    if is_null || width == 0 || height == 0 {
        return Err(Otherwise::Forward);
    }
    let books = call.books()?;
    let here = books.here(call)?;
    let pitch = width.checked_next_multiple_of(PITCH_UNIT).unwrap_or(u64::MAX);
    let estimate = pitch.saturating_mul(height);
    let charge = charge_for(estimate);
    call.asks(estimate);
    let mut reservation = books.reserve(call, here.account, charge, reserved_as(estimate, Class::Device))?;
    books.pass(call, here.account, charge)?;
    let (pointer, pitch) = answer();
    // The driver's pitch may be another than ours: the charge follows it.
    let bytes = pitch.saturating_mul(height);
    let (exact, class) = (charge_for(bytes), reserved_as(bytes, Class::Device));
    if exact > charge {
        match books.reserve(call, here.account, exact - charge, class) {
            Ok(more) => reservation.absorb(more),
            Err(refused) => {
                erase();
                // An error leaves the block to the context's end; it is not the program's any more.
                let _ = free(call.driver, pointer);
                return Err(refused);
            }
        }
    }
    reservation.shrink_to(exact);
    reservation.reclassify(class);
    books.enter(pointer, here, bytes, (Class::Device, false), reservation);
    Ok(())
}

pub unsafe fn free(call: &Call<'_>, pointer: CUdeviceptr) -> Verdict {
    free_any(call, pointer)
}

pub unsafe fn free_v1(call: &Call<'_>, pointer: CUdeviceptr_v1) -> Verdict {
    free_any(call, u64::from(pointer))
}

/// By kind: a block of its own gives its charge back, one of a pool leaves that to what the driver says of the pool.
fn free_any(call: &Call<'_>, pointer: u64) -> Verdict {
    let books = call.books_if_attached()?;
    let taken = books.live.lock().take(pointer);
    let Some(taken) = taken else {
        return Err(books.unknown(pointer));
    };
    let Err(taken) = books.recycle(call, pointer, taken) else {
        return Ok(());
    };
    if let Err(error) = call.pass() {
        books.live.lock().put_back(pointer, taken);
        return Err(error.into());
    }
    books.settle(pointer, taken);
    if let Charged::InPool(pool) = taken.charged {
        books.refresh_pool(call, pool);
    }
    Ok(())
}
