//! `cudaGetDriverEntryPoint`: the driver's functions for those who call it themselves.

use super::lookup::{DRIVER, ready};
use super::release::Release;
use driver::prelude::*;
use std::ptr::null_mut;

/// `cudaEnableDefault`, `cudaEnableLegacyStream`, `cudaEnablePerThreadDefaultStream`; the driver's numbers.
const DEFAULT: u64 = 0;
const PER_THREAD: u64 = 2;

pub unsafe fn newest(
    api: StreamApi,
    name: *const c_char,
    to: *mut *mut c_void,
    flags: c_ulonglong,
    status: *mut c_uint,
) -> CuResult {
    // SAFETY: handed on.
    unsafe { of_version(api, name, to, Release::own().version() as c_uint, flags, status) }
}

/// A function the driver lacks is an error only for those who do not ask for the status.
pub unsafe fn of_version(
    api: StreamApi,
    name: *const c_char,
    to: *mut *mut c_void,
    version: c_uint,
    flags: c_ulonglong,
    status: *mut c_uint,
) -> CuResult {
    ready()?;
    if name.is_null() || to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    let flags = match (flags, api) {
        (DEFAULT, StreamApi::PerThread) => PER_THREAD,
        (flags, _) => flags,
    };
    let (mut address, mut found) = (null_mut(), 0);
    // SAFETY: the caller's C string and locals to write to.
    let answer = unsafe {
        DRIVER.cuGetProcAddress_v2(
            StreamApi::Legacy,
            name,
            &mut address,
            version as c_int,
            flags,
            &mut found,
        )
    };
    // SAFETY: not null, so the caller's; the status may be declined.
    unsafe {
        to.write(address);
        if !status.is_null() {
            status.write(found);
        }
    }
    match answer {
        Err(CudaError::NOT_FOUND) if !status.is_null() => Ok(()),
        other => other,
    }
}
