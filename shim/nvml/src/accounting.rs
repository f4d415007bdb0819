//! The driver's accounting of processes, living and dead: those of others do not exist.

use driver::nvml::*;

use crate::attach::share_of;
use crate::list;
use crate::processes::owners;

/// The dead of the account have left its ledger, so only the living are listed.
pub unsafe fn pids(
    real: unsafe extern "C" fn(nvmlDevice_t, *mut c_uint, *mut c_uint) -> NvmlResult,
    device: nvmlDevice_t,
    count: *mut c_uint,
    to: *mut c_uint,
) -> NvmlResult {
    if !count.is_null() {
        // SAFETY: room as `list::all` says.
        let all = list::all(0, |count, to| unsafe { real(device, count, to) })?;
        if let Some(share) = share_of(device)? {
            let mine = owners(share);
            let here = |pid: &c_uint| {
                mine.iter()
                    .find(|own| own.0 == *pid || own.1 == *pid)
                    .map(|own| own.1)
            };
            let list: Vec<_> = all.iter().filter_map(here).collect();
            // SAFETY: the program's pointers, `count` not null.
            return unsafe { list::give(count, to, &list) };
        }
    }
    // SAFETY: the program's own call.
    unsafe { real(device, count, to) }
}

/// The number by which the real library knows a process; `NOT_FOUND` for another tenant's.
fn known(device: nvmlDevice_t, pid: c_uint) -> Result<c_uint, NvmlError> {
    match share_of(device)? {
        None => Ok(pid),
        Some(share) => {
            let mine = owners(share);
            let own = mine
                .iter()
                .find(|(_, here)| *here == pid)
                .ok_or(NvmlError::NOT_FOUND)?;
            Ok(own.0)
        }
    }
}

pub unsafe fn stats(
    real: unsafe extern "C" fn(nvmlDevice_t, c_uint, *mut nvmlAccountingStats_t) -> NvmlResult,
    device: nvmlDevice_t,
    pid: c_uint,
    stats: *mut nvmlAccountingStats_t,
) -> NvmlResult {
    // SAFETY: the program's own call, but for the number.
    unsafe { real(device, known(device, pid)?, stats) }
}

pub unsafe fn stats_v2(
    real: unsafe extern "C" fn(nvmlDevice_t, *mut nvmlAccountingStats_v2_t) -> NvmlResult,
    device: nvmlDevice_t,
    stats: *mut nvmlAccountingStats_v2_t,
) -> NvmlResult {
    if stats.is_null() {
        // SAFETY: the program's own call.
        return unsafe { real(device, stats) };
    }
    // SAFETY: the program's struct begins with the number of the process; it finds its own there again.
    unsafe {
        let pid = (*stats).pid;
        (*stats).pid = known(device, pid)?;
        let answer = real(device, stats);
        (*stats).pid = pid;
        answer
    }
}
