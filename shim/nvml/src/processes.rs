//! Processes: the tenant's own, with what each is charged.
//!
//! Next: `pids.rs`.

use driver::nvml::*;

use crate::attach::{Share, share_of};
use crate::list;

/// No MIG instance.
const NO_INSTANCE: c_uint = c_uint::MAX;
/// `NVML_PROCESS_MODE_COMPUTE` and `…_ALL`.
const COMPUTE: c_uint = 0;
const ALL: c_uint = 3;

/// A list of processes, of either form.
type List<T> = unsafe extern "C" fn(nvmlDevice_t, *mut c_uint, *mut T) -> NvmlResult;

/// The account's clients on the device that this namespace shows: id, bytes.
fn own(share: &Share) -> Vec<(u32, u64)> {
    let mut neighbours = share.neighbours();
    let clients = share.clients();
    clients
        .iter()
        .filter_map(|(owner, bytes)| Some((neighbours.id_of(owner)?, *bytes)))
        .collect()
}

/// What the real library says of this list before it is asked for anything: an error is the caller's.
///
/// # Safety
/// As the real function demands of `device`.
unsafe fn accepted<T>(real: List<T>, device: nvmlDevice_t) -> NvmlResult {
    let mut count = 0;
    // SAFETY: no room is offered, so nothing is written but the number.
    match unsafe { real(device, &mut count, core::ptr::null_mut()) } {
        Err(NvmlError::INSUFFICIENT_SIZE) => Ok(()),
        other => other,
    }
}

/// What a list's item is made of.
trait Item: Copy {
    fn new(pid: u32, bytes: u64) -> Self;
    fn pid(&self) -> u32;
}

impl Item for nvmlProcessInfo_v1_t {
    fn new(pid: u32, bytes: u64) -> Self {
        nvmlProcessInfo_v1_t {
            pid,
            usedGpuMemory: bytes,
        }
    }
    fn pid(&self) -> u32 {
        self.pid
    }
}

impl Item for nvmlProcessInfo_t {
    fn new(pid: u32, bytes: u64) -> Self {
        nvmlProcessInfo_t {
            pid,
            usedGpuMemory: bytes,
            gpuInstanceId: NO_INSTANCE,
            computeInstanceId: NO_INSTANCE,
        }
    }
    fn pid(&self) -> u32 {
        self.pid
    }
}

/// # Safety
/// As the real function demands.
unsafe fn compute<T: Item>(
    real: List<T>,
    device: nvmlDevice_t,
    count: *mut c_uint,
    to: *mut T,
) -> NvmlResult {
    if !count.is_null() {
        // SAFETY: the program's device.
        unsafe { accepted(real, device) }?;
        if let Some(share) = share_of(device)? {
            let list: Vec<T> = own(share)
                .into_iter()
                .map(|(pid, bytes)| T::new(pid, bytes))
                .collect();
            // SAFETY: the program's pointers, `count` not null.
            return unsafe { list::give(count, to, &list) };
        }
    }
    // SAFETY: the program's own call.
    unsafe { real(device, count, to) }
}

/// What the ledger does not know apart (graphics, MPS clients): the real list without those of others.
///
/// # Safety
/// As the real function demands.
unsafe fn filtered<T: Item>(
    real: List<T>,
    device: nvmlDevice_t,
    count: *mut c_uint,
    to: *mut T,
) -> NvmlResult {
    if !count.is_null() {
        // SAFETY: the program's device.
        unsafe { accepted(real, device) }?;
        if let Some(share) = share_of(device)? {
            // SAFETY: room as `list::all` says.
            let list = list::all(T::new(0, 0), |count, to| unsafe { real(device, count, to) })?;
            let mine = owners(share);
            let list: Vec<T> = list
                .into_iter()
                .filter(|item| {
                    mine.iter()
                        .any(|(host, here)| [*host, *here].contains(&item.pid()))
                })
                .collect();
            // SAFETY: the program's pointers, `count` not null.
            return unsafe { list::give(count, to, &list) };
        }
    }
    // SAFETY: the program's own call.
    unsafe { real(device, count, to) }
}

/// The account's clients: id in the daemon's namespace, id here.
pub fn owners(share: &Share) -> Vec<(u32, u32)> {
    let mut neighbours = share.neighbours();
    let owners = share.owners();
    owners
        .iter()
        .filter_map(|owner| Some((owner.pid, neighbours.id_of(owner)?)))
        .collect()
}

pub unsafe fn running_v1(
    real: List<nvmlProcessInfo_v1_t>,
    device: nvmlDevice_t,
    count: *mut c_uint,
    to: *mut nvmlProcessInfo_v1_t,
) -> NvmlResult {
    // SAFETY: handed on.
    unsafe { compute(real, device, count, to) }
}

pub unsafe fn running(
    real: List<nvmlProcessInfo_t>,
    device: nvmlDevice_t,
    count: *mut c_uint,
    to: *mut nvmlProcessInfo_t,
) -> NvmlResult {
    // SAFETY: handed on.
    unsafe { compute(real, device, count, to) }
}

pub unsafe fn others_v1(
    real: List<nvmlProcessInfo_v1_t>,
    device: nvmlDevice_t,
    count: *mut c_uint,
    to: *mut nvmlProcessInfo_v1_t,
) -> NvmlResult {
    // SAFETY: handed on.
    unsafe { filtered(real, device, count, to) }
}

pub unsafe fn others(
    real: List<nvmlProcessInfo_t>,
    device: nvmlDevice_t,
    count: *mut c_uint,
    to: *mut nvmlProcessInfo_t,
) -> NvmlResult {
    // SAFETY: handed on.
    unsafe { filtered(real, device, count, to) }
}

pub unsafe fn details(
    real: unsafe extern "C" fn(nvmlDevice_t, *mut nvmlProcessDetailList_t) -> NvmlResult,
    device: nvmlDevice_t,
    list: *mut nvmlProcessDetailList_t,
) -> NvmlResult {
    if list.is_null() {
        // SAFETY: the program's own call.
        return unsafe { real(device, list) };
    }
    // The whole list, in a struct of ours: it also says whether version, mode and device are accepted.
    // SAFETY: the version word is there whatever the version; the rest is read once that was accepted.
    let version = unsafe { (&raw const (*list).version).read() };
    if version != struct_version::<nvmlProcessDetailList_t>(1) {
        // SAFETY: the program's own call.
        return unsafe { real(device, list) };
    }
    // SAFETY: a whole struct of version 1.
    let mode = unsafe { (*list).mode };
    let empty = nvmlProcessDetail_v1_t {
        pid: 0,
        usedGpuMemory: 0,
        gpuInstanceId: NO_INSTANCE,
        computeInstanceId: NO_INSTANCE,
        usedGpuCcProtectedMemory: 0,
    };
    let everything = list::all(empty, |count, to| {
        let mut ours = nvmlProcessDetailList_t {
            version,
            mode,
            numProcArrayEntries: *count,
            procArray: to,
        };
        // SAFETY: a whole struct, with room as it says.
        let answer = unsafe { real(device, &mut ours) };
        *count = ours.numProcArrayEntries;
        answer
    })?;
    let Some(share) = share_of(device)? else {
        // SAFETY: the program's own call.
        return unsafe { real(device, list) };
    };
    let mine: Vec<_> = match mode {
        COMPUTE | ALL => own(share)
            .into_iter()
            .map(|(pid, bytes)| nvmlProcessDetail_v1_t {
                pid,
                usedGpuMemory: bytes,
                ..empty
            })
            .collect(),
        _ => {
            let mine = owners(share);
            let is_mine = |pid| mine.iter().any(|(host, here)| [*host, *here].contains(&pid));
            everything.into_iter().filter(|item| is_mine(item.pid)).collect()
        }
    };
    // SAFETY: the count lies in the program's struct, and the array has as many places as it says.
    unsafe { list::give(&raw mut (*list).numProcArrayEntries, (*list).procArray, &mine) }
}
