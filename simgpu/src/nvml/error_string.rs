//! `nvmlErrorString`: the one function that needs no connection and returns no status.

use driver::nvml::{c_char, c_uint};
use std::ffi::CStr;

const TEXTS: [(c_uint, &CStr); 30] = [
    (0, c"Success"),
    (1, c"Uninitialized"),
    (2, c"Invalid Argument"),
    (3, c"Not Supported"),
    (4, c"Insufficient Permissions"),
    (5, c"Already Initialized"),
    (6, c"Not Found"),
    (7, c"Insufficient Size"),
    (8, c"Insufficient External Power"),
    (9, c"Driver Not Loaded"),
    (10, c"Timeout"),
    (11, c"Interrupt Request Issue"),
    (12, c"NVML Shared Library Not Found"),
    (13, c"Function Not Found"),
    (14, c"Corrupted infoROM"),
    (15, c"GPU is lost"),
    (16, c"GPU requires reset"),
    (17, c"The operating system has blocked the request"),
    (18, c"RM has detected an NVML/RM version mismatch"),
    (19, c"In use by another client"),
    (20, c"Insufficient Memory"),
    (21, c"No data"),
    (
        22,
        c"The requested vgpu operation is not available on target device, because ECC is enabled",
    ),
    (23, c"Insufficient Resources"),
    (24, c"The requested frequency is not supported"),
    (25, c"Argument version mismatch"),
    (26, c"The requested functionality has been deprecated"),
    (27, c"The system is not ready for the request"),
    (28, c"No GPUs were found"),
    (29, c"Invalid state"),
];

#[allow(non_snake_case)]
#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(code: c_uint) -> *const c_char {
    let known = TEXTS.iter().find(|(known, _)| *known == code);
    known.map_or(c"Unknown Error", |(_, text)| text).as_ptr()
}
