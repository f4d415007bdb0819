//! Who keeps the device busy: the real library's samples, without those of others.

use driver::nvml::*;

use crate::attach::{Share, share_of};
use crate::list;
use crate::processes::owners;

/// The samples of the account's clients, with their ids here. `NOT_FOUND` where none is left, as where there is none.
fn own<T>(share: &Share, samples: Vec<T>, pid: impl Fn(&mut T) -> &mut c_uint) -> Result<Vec<T>, NvmlError> {
    let mine = owners(share);
    let mut left = Vec::new();
    for mut sample in samples {
        let number = *pid(&mut sample);
        if let Some((_, here)) = mine.iter().find(|(host, here)| [*host, *here].contains(&number)) {
            *pid(&mut sample) = *here;
            left.push(sample);
        }
    }
    if left.is_empty() {
        Err(NvmlError::NOT_FOUND)
    } else {
        Ok(left)
    }
}

pub unsafe fn samples(
    real: unsafe extern "C" fn(
        nvmlDevice_t,
        *mut nvmlProcessUtilizationSample_t,
        *mut c_uint,
        c_ulonglong,
    ) -> NvmlResult,
    device: nvmlDevice_t,
    to: *mut nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    since: c_ulonglong,
) -> NvmlResult {
    let empty = nvmlProcessUtilizationSample_t {
        pid: 0,
        timeStamp: 0,
        smUtil: 0,
        memUtil: 0,
        encUtil: 0,
        decUtil: 0,
    };
    if !count.is_null() {
        // SAFETY: room as `list::all` says.
        let all = list::all(empty, |count, to| unsafe { real(device, to, count, since) })?;
        if let Some(share) = share_of(device)? {
            let mine = own(share, all, |sample| &mut sample.pid)?;
            // SAFETY: the program's pointers, `count` not null.
            return unsafe { list::give(count, to, &mine) };
        }
    }
    // SAFETY: the program's own call.
    unsafe { real(device, to, count, since) }
}

pub unsafe fn infos(
    real: unsafe extern "C" fn(nvmlDevice_t, *mut nvmlProcessesUtilizationInfo_t) -> NvmlResult,
    device: nvmlDevice_t,
    info: *mut nvmlProcessesUtilizationInfo_t,
) -> NvmlResult {
    // SAFETY: null, or a struct that begins with its version word.
    let known = unsafe { !info.is_null() && (&raw const (*info).version).read() == VERSION_1 };
    if !known {
        // SAFETY: the program's own call.
        return unsafe { real(device, info) };
    }
    // SAFETY: a whole struct of version 1.
    let since = unsafe { (*info).lastSeenTimeStamp };
    let empty = nvmlProcessUtilizationInfo_v1_t {
        timeStamp: 0,
        pid: 0,
        smUtil: 0,
        memUtil: 0,
        encUtil: 0,
        decUtil: 0,
        jpgUtil: 0,
        ofaUtil: 0,
    };
    let all = list::all(empty, |count, to| {
        let mut ours = nvmlProcessesUtilizationInfo_t {
            version: VERSION_1,
            processSamplesCount: *count,
            lastSeenTimeStamp: since,
            procUtilArray: to,
        };
        // SAFETY: a whole struct, with room as it says.
        let answer = unsafe { real(device, &mut ours) };
        *count = ours.processSamplesCount;
        answer
    })?;
    let Some(share) = share_of(device)? else {
        // SAFETY: the program's own call.
        return unsafe { real(device, info) };
    };
    let mine = own(share, all, |sample| &mut sample.pid)?;
    // SAFETY: the count lies in the program's struct, and the array has as many places as it says.
    unsafe { list::give(&raw mut (*info).processSamplesCount, (*info).procUtilArray, &mine) }
}

const VERSION_1: c_uint = struct_version::<nvmlProcessesUtilizationInfo_t>(1);
