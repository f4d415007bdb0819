//! Names and texts of error codes.

use super::Sim;
use super::edge::put;
use driver::prelude::*;
use std::collections::HashMap;
use std::ffi::CString;
use std::ptr::null;
use std::sync::LazyLock;

/// Name and text by code, as C strings that live as long as the process.
static TEXTS: LazyLock<HashMap<u32, (CString, CString)>> = LazyLock::new(|| {
    let known = driver::error::NAMES
        .iter()
        .map(|&(code, name)| (code, name, describe(code, name)));
    let all = known.chain([(0, "CUDA_SUCCESS", "no error".to_owned())]);
    let c = |text: &str| CString::new(text).unwrap_or_default();
    all.map(|(code, name, text)| (code, (c(name), c(&text))))
        .collect()
});

/// The words of codes whose name does not say it as the driver does.
const WORDS: &[(u32, &str)] = &[
    (1, "invalid argument"),
    (3, "initialization error"),
    (4, "driver shutting down"),
    (34, "CUDA driver is a stub library"),
    (36, "API call is not supported in the installed CUDA driver"),
    (46, "CUDA-capable device(s) is/are busy or unavailable"),
    (100, "no CUDA-capable device is detected"),
    (101, "invalid device ordinal"),
    (200, "device kernel image is invalid"),
    (201, "invalid device context"),
    (205, "mapping of buffer object failed"),
    (209, "no kernel image is available for execution on the device"),
    (215, "limit is not supported on this architecture"),
    (217, "peer access is not supported between these two devices"),
    (218, "a PTX JIT compilation failed"),
    (300, "device kernel image is invalid"),
    (304, "OS call failed or operation not supported on this OS"),
    (400, "invalid resource handle"),
    (500, "named symbol not found"),
    (600, "device not ready"),
    (700, "an illegal memory access was encountered"),
    (701, "too many resources requested for launch"),
    (702, "the launch timed out and was terminated"),
    (704, "peer access is already enabled"),
    (705, "peer access has not been enabled"),
    (709, "context is destroyed"),
    (712, "part or all of the requested memory range is already mapped"),
    (713, "pointer does not correspond to a registered memory region"),
    (719, "unspecified launch failure"),
    (720, "too many blocks in cooperative launch"),
    (800, "operation not permitted"),
    (801, "operation not supported"),
    (802, "system not yet initialized"),
    (
        803,
        "system has unsupported display driver / cuda driver combination",
    ),
    (900, "operation not permitted when stream is capturing"),
    (901, "operation failed due to a previous error during capture"),
    (999, "unknown error"),
];

fn describe(code: u32, name: &str) -> String {
    match WORDS.iter().find(|(known, _)| *known == code) {
        Some((_, words)) => (*words).to_owned(),
        None => name
            .trim_start_matches("CUDA_ERROR_")
            .to_lowercase()
            .replace('_', " "),
    }
}

fn answer(code: CUresult, to: *mut *const c_char, pick: fn(&(CString, CString)) -> &CString) -> CuResult {
    let found = TEXTS.get(&code).map(pick);
    put(to, found.map_or(null(), |text| text.as_ptr()))?;
    found.map(|_| ()).ok_or(CudaError::INVALID_VALUE)
}

impl Sim {
    pub(super) fn cuGetErrorName(_: StreamApi, error: CUresult, pstr: *mut *const c_char) -> CuResult {
        answer(error, pstr, |(name, _)| name)
    }

    pub(super) fn cuGetErrorString(_: StreamApi, error: CUresult, pstr: *mut *const c_char) -> CuResult {
        answer(error, pstr, |(_, text)| text)
    }
}
