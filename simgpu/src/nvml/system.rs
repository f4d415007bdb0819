//! What is asked of the system rather than of a device.

use super::{Nvml, put, put_text, session};
use driver::nvml::*;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// The release of the driver that a CUDA version came with; the rest of the number is zeros, since it is none.
fn driver_release(cuda: u32) -> u32 {
    match cuda {
        ..13_000 => 575,
        13_000..13_010 => 580,
        13_010..13_050 => 590,
        _ => 620,
    }
}

/// What a process was started as: its first argument, else its short name. `None` if there is no such process.
fn process_name(pid: c_uint) -> Option<String> {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let first = command.split(|&b| b == 0).next().unwrap_or_default();
    if !first.is_empty() {
        return Some(OsString::from_vec(first.to_vec()).to_string_lossy().into_owned());
    }
    let short = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(short.trim_end().to_owned())
}

#[allow(non_snake_case)]
impl Nvml {
    pub unsafe fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) -> NvmlResult {
        let release = driver_release(session::current()?.node().driver_version);
        // SAFETY: the caller's buffer.
        unsafe { put_text(version, length, &format!("{release}.00.00")) }
    }

    pub unsafe fn nvmlSystemGetNVMLVersion(version: *mut c_char, length: c_uint) -> NvmlResult {
        let cuda = session::current()?.node().driver_version;
        // SAFETY: the caller's buffer.
        unsafe {
            put_text(
                version,
                length,
                &format!("{}.{}.00.00", cuda / 1000, driver_release(cuda)),
            )
        }
    }

    pub unsafe fn nvmlSystemGetCudaDriverVersion(version: *mut c_int) -> NvmlResult {
        // SAFETY: the caller's pointer.
        unsafe { put(version, session::current()?.node().driver_version as c_int) }
    }

    pub unsafe fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) -> NvmlResult {
        // SAFETY: handed on.
        unsafe { Nvml::nvmlSystemGetCudaDriverVersion(version) }
    }

    pub unsafe fn nvmlSystemGetProcessName(pid: c_uint, name: *mut c_char, length: c_uint) -> NvmlResult {
        session::current()?;
        let text = process_name(pid).ok_or(NvmlError::NOT_FOUND)?;
        // SAFETY: the caller's buffer.
        unsafe { put_text(name, length, &text) }
    }

    pub unsafe fn nvmlUnitGetCount(count: *mut c_uint) -> NvmlResult {
        session::current()?;
        // SAFETY: the caller's pointer.
        unsafe { put(count, 0) }
    }

    pub unsafe fn nvmlGetExcludedDeviceCount(count: *mut c_uint) -> NvmlResult {
        session::current()?;
        // SAFETY: the caller's pointer.
        unsafe { put(count, 0) }
    }
}
