//! Arrays and mipmapped arrays, and the tiles of sparse ones. An array whose memory the program maps itself costs nothing:
//! the physical memory is charged, and stays so while a tile holds it.
//!
//! Next: `hooks/context.rs`.

use driver::CudaError;
use driver::abi::{
    CU_MEM_OPERATION_TYPE_MAP, CU_MEM_OPERATION_TYPE_UNMAP, CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR_v1,
    CUDA_ARRAY3D_DEFERRED_MAPPING, CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR_v1, CUDA_ARRAY3D_SPARSE,
    CUarray, CUarrayMapInfo, CUmipmappedArray, CUstream, c_uint,
};
use ledger::slot::Class;

use crate::books::Books;
use crate::deferred::Stream;
use crate::guard::{Call, Otherwise, Verdict};
use crate::live::{Allocation, Charged, charge_for, is_small};
use crate::physical::{Reference, Tile};

pub unsafe fn create(
    call: &Call<'_>,
    handle: *mut CUarray,
    descriptor: *const CUDA_ARRAY_DESCRIPTOR,
) -> Verdict {
    // SAFETY: not null, and the driver reads the same.
    let read = || unsafe { descriptor.read_unaligned() };
    let wide = || {
        let d = read();
        form([d.Width, d.Height, 0], [d.Format, d.NumChannels, 0])
    };
    // SAFETY: the caller vouches for the handle's place.
    unsafe { make(call, handle, descriptor.is_null(), wide, 0) }
}

pub unsafe fn create_v1(
    call: &Call<'_>,
    handle: *mut CUarray,
    descriptor: *const CUDA_ARRAY_DESCRIPTOR_v1,
) -> Verdict {
    // SAFETY: not null, and the driver reads the same.
    let read = || unsafe { descriptor.read_unaligned() };
    let wide = || {
        let d = read();
        form(
            [d.Width as usize, d.Height as usize, 0],
            [d.Format, d.NumChannels, 0],
        )
    };
    // SAFETY: the caller vouches for the handle's place.
    unsafe { make(call, handle, descriptor.is_null(), wide, 0) }
}

pub unsafe fn create_3d(
    call: &Call<'_>,
    handle: *mut CUarray,
    descriptor: *const CUDA_ARRAY3D_DESCRIPTOR,
) -> Verdict {
    // SAFETY: not null, and the driver reads the same.
    let read = || unsafe { descriptor.read_unaligned() };
    // SAFETY: the caller vouches for the handle's place.
    unsafe { make(call, handle, descriptor.is_null(), read, 0) }
}

pub unsafe fn create_3d_v1(
    call: &Call<'_>,
    handle: *mut CUarray,
    descriptor: *const CUDA_ARRAY3D_DESCRIPTOR_v1,
) -> Verdict {
    // SAFETY: not null, and the driver reads the same.
    let read = || unsafe { descriptor.read_unaligned() };
    let wide = || {
        let d = read();
        let extent = [d.Width as usize, d.Height as usize, d.Depth as usize];
        form(extent, [d.Format, d.NumChannels, d.Flags])
    };
    // SAFETY: the caller vouches for the handle's place.
    unsafe { make(call, handle, descriptor.is_null(), wide, 0) }
}

pub unsafe fn create_mipmapped(
    call: &Call<'_>,
    handle: *mut CUmipmappedArray,
    descriptor: *const CUDA_ARRAY3D_DESCRIPTOR,
    levels: c_uint,
) -> Verdict {
    if levels == 0 {
        return Err(Otherwise::Forward);
    }
    // SAFETY: not null, and the driver reads the same.
    let read = || unsafe { descriptor.read_unaligned() };
    // SAFETY: the caller vouches for the handle's place.
    unsafe { make(call, handle, descriptor.is_null(), read, levels) }
}

fn form([width, height, depth]: [usize; 3], [format, channels, flags]: [u32; 3]) -> CUDA_ARRAY3D_DESCRIPTOR {
    CUDA_ARRAY3D_DESCRIPTOR {
        Width: width,
        Height: height,
        Depth: depth,
        Format: format,
        NumChannels: channels,
        Flags: flags,
    }
}

/// Arrays of both kinds, whose handles are pointers alike.
unsafe fn make(
    call: &Call<'_>,
    handle: *mut CUarray,
    is_null: bool,
    descriptor: impl FnOnce() -> CUDA_ARRAY3D_DESCRIPTOR,
    levels: u32,
) -> Verdict {
    if handle.is_null() || is_null {
        return Err(Otherwise::Forward);
    }
    let descriptor = descriptor();
    let books = call.books()?;
    let here = books.here(call)?;
    if descriptor.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING) != 0 {
        call.pass()?;
        // SAFETY: the driver just wrote it.
        books.enter_array(unsafe { *handle } as u64, here, 0, None);
        return Ok(());
    }
    let cost = books
        .array_costs
        .of(call.driver, here.device, &descriptor, levels);
    let bytes = cost.bytes;
    let class = if is_small(bytes) {
        Class::Slab
    } else {
        Class::Array
    };
    let charge = charge_for(bytes);
    call.asks(bytes);
    let reservation = match (books.reserve(call, here.account, charge, class), cost.doubt) {
        (Ok(reservation), _) => reservation,
        (Err(_), Some(CudaError::INVALID_VALUE)) => return Err(CudaError::INVALID_VALUE.into()),
        (Err(refused), _) => return Err(refused),
    };
    books.pass(call, here.account, charge)?;
    // SAFETY: the driver just wrote it.
    books.enter_array(unsafe { *handle } as u64, here, bytes, Some(reservation));
    Ok(())
}

pub unsafe fn destroy(call: &Call<'_>, array: CUarray) -> Verdict {
    end(call, array as u64)
}

pub unsafe fn destroy_mipmapped(call: &Call<'_>, array: CUmipmappedArray) -> Verdict {
    end(call, array as u64)
}

fn end(call: &Call<'_>, array: u64) -> Verdict {
    let books = call.books_if_attached()?;
    let taken = books.live.lock().take(array).ok_or(Otherwise::Forward)?;
    if let Err(error) = call.pass() {
        books.live.lock().put_back(array, taken);
        return Err(error.into());
    }
    books.settle(array, taken);
    Ok(())
}

/// What one change of a list does to the books.
#[derive(Clone, Copy)]
enum Change {
    Map(Tile, Reference),
    Unmap(Tile),
}

/// Maps and unmaps tiles in stream order: what is unmapped stays charged until the stream has got there.
pub unsafe fn map(call: &Call<'_>, list: *mut CUarrayMapInfo, count: c_uint, stream: CUstream) -> Verdict {
    if list.is_null() || count == 0 {
        return Err(Otherwise::Forward);
    }
    let books = call.books_if_attached()?;
    let changes: Vec<Change> = (0..count as usize)
        .filter_map(|index| {
            // SAFETY: the driver reads the same `count` entries.
            let info = unsafe { list.add(index).read_unaligned() };
            change(books, &info)
        })
        .collect();
    if changes.is_empty() {
        return Err(Otherwise::Forward);
    }
    let context = books.current(call).map_or(0, |context| context as usize);
    if let Err(error) = call.pass() {
        for change in changes {
            if let Change::Map(_, reference) = change {
                let last = books.physical.lock().drop_reference(reference);
                books.give_back_physical(last);
            }
        }
        return Err(error.into());
    }
    for change in changes {
        let before = match change {
            Change::Map(tile, reference) => books.physical.lock().map_tile(tile, reference),
            Change::Unmap(tile) => books.physical.lock().take_tile(tile),
        };
        if let Some(reference) = before {
            let allocation = Allocation {
                account: 0, // the reference knows its own
                context,
                class: Class::Physical,
                charged: Charged::Tile(reference),
                plain: None,
                serial: 0,
            };
            let stream = Stream::of(stream, call.stream_api, context);
            books.deferred.add(0, allocation, stream, context);
        }
    }
    Ok(())
}

/// Counts the reference a change adds, before the driver is asked. `None`: memory that is not ours to charge.
fn change(books: &Books, info: &CUarrayMapInfo) -> Option<Change> {
    let tile = Tile::of(info);
    match info.memOperationType {
        CU_MEM_OPERATION_TYPE_MAP => {
            let reference = books.physical.lock().add_by_handle(info.memHandle)?;
            Some(Change::Map(tile, reference))
        }
        CU_MEM_OPERATION_TYPE_UNMAP => Some(Change::Unmap(tile)),
        _ => None,
    }
}
