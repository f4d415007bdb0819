//! `cuInit`, where a process joins its node, and what a program is told of the device's memory: its account's share of it.
//! Everything else about a device is true: it is not ours to hide.
//!
//! Next: `hooks/proc_address.rs`.

use driver::StreamApi;
use driver::abi::{CUdevice, c_uint};

use crate::attach;
use crate::guard::{Call, Otherwise, Verdict};

/// A process its node refuses never reaches the device.
pub unsafe fn init(_call: &Call<'_>, _flags: c_uint) -> Verdict {
    attach::at_init()?;
    Err(Otherwise::Forward)
}

pub unsafe fn memory_info(call: &Call<'_>, free: *mut usize, total: *mut usize) -> Verdict {
    show(call, free.is_null() || total.is_null(), |view| {
        // SAFETY: the driver just wrote both.
        let (own_free, own_total) = unsafe { (*free, *total) };
        let (shown_free, shown_total) = view(own_free as u64, own_total as u64);
        // SAFETY: as above.
        unsafe {
            *free = shown_free as usize;
            *total = shown_total as usize;
        }
    })
}

pub unsafe fn memory_info_v1(call: &Call<'_>, free: *mut c_uint, total: *mut c_uint) -> Verdict {
    show(call, free.is_null() || total.is_null(), |view| {
        // SAFETY: the driver just wrote both.
        let (own_free, own_total) = unsafe { (*free, *total) };
        let (shown_free, shown_total) = view(u64::from(own_free), u64::from(own_total));
        // SAFETY: as above; neither is more than the driver's own.
        unsafe {
            *free = shown_free as c_uint;
            *total = shown_total as c_uint;
        }
    })
}

type View<'a> = &'a dyn Fn(u64, u64) -> (u64, u64);

fn show(call: &Call<'_>, is_null: bool, write: impl FnOnce(View<'_>)) -> Verdict {
    if is_null {
        return Err(Otherwise::Forward);
    }
    let books = call.books()?;
    let mut device: CUdevice = 0;
    // SAFETY: the driver writes one number.
    let asked = unsafe { call.driver.cuCtxGetDevice(StreamApi::Legacy, &mut device) };
    asked.map_err(|_| Otherwise::Forward)?;
    let account = books.account(books.of_device(call.driver, device)?);
    call.pass()?;
    write(&|free, total| account.view(free, total));
    Ok(())
}

pub unsafe fn total_memory(call: &Call<'_>, bytes: *mut usize, device: CUdevice) -> Verdict {
    show_total(call, bytes.is_null(), device, |view| {
        // SAFETY: the driver just wrote it.
        unsafe { *bytes = view(0, *bytes as u64).1 as usize }
    })
}

pub unsafe fn total_memory_v1(call: &Call<'_>, bytes: *mut c_uint, device: CUdevice) -> Verdict {
    show_total(call, bytes.is_null(), device, |view| {
        // SAFETY: the driver just wrote it; what is shown is not more.
        unsafe { *bytes = view(0, u64::from(*bytes)).1 as c_uint }
    })
}

fn show_total(call: &Call<'_>, is_null: bool, device: CUdevice, write: impl FnOnce(View<'_>)) -> Verdict {
    if is_null {
        return Err(Otherwise::Forward);
    }
    let books = call.books()?;
    let account = books.account(books.of_device(call.driver, device)?);
    call.pass()?;
    write(&|free, total| account.view(free, total));
    Ok(())
}
