//! The stand-in's CUDA runtime, `libcudart.so.12` and `.13`: NVIDIA's own checks which driver it runs on,
//! so programs linked to the shared runtime get this one.
//!
//! It is written on the driver API alone and reaches it as the real one does: `dlopen("libcuda.so.1")`,
//! `dlsym("cuGetProcAddress_v2")`, and every entry point asked for by name, version and flags at the first
//! call. Never by a direct call, although the driver lies in the same archive: a preloaded shim must see
//! what it would see on hardware. Both libraries are linked from this code; `release.rs` says which one a
//! call is in, where they differ.
//!
//! Every function a release exports is in `exports.rs` (written), `passed.rs` (the driver's own under
//! another name) or `unsupported.rs` (answers `cudaErrorNotSupported`). Types are the driver's where the
//! layout is the same, else in `structs.rs`.
//!
//! The walk of one allocation: `exports.rs` → `memory.rs` → `context.rs` (which device) → `lookup.rs` (the
//! driver's entry points) → `libcuda.so.1`.

mod context;
mod copy;
mod device;
mod entry_point;
mod error_text;
mod exports;
mod function;
mod kernel;
mod last_error;
mod launch;
mod lookup;
mod managed;
mod memory;
mod passed;
mod pointer;
mod properties;
mod region;
mod release;
mod set;
mod stream;
mod structs;
mod symbol;
#[cfg(test)]
mod tests;
mod unsupported;

use driver::{CuResult, CudaError};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What happens around every function: the thread remembers an error, and nothing unwinds into the caller.
fn entered(body: impl FnOnce() -> CuResult) -> CuResult {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(CudaError::UNKNOWN));
    if let Err(error) = result {
        last_error::set(error);
    }
    result
}

/// Codes that only the runtime has; the others are the driver's, number for number.
mod code {
    use driver::CudaError;

    const fn code(code: u32) -> CudaError {
        CudaError::new(code).expect("not zero")
    }

    pub const INVALID_SYMBOL: CudaError = code(13);
    pub const INVALID_MEMCPY_DIRECTION: CudaError = code(21);
    pub const INSUFFICIENT_DRIVER: CudaError = code(35);
    pub const MISSING_CONFIGURATION: CudaError = code(52);
    pub const INVALID_DEVICE_FUNCTION: CudaError = code(98);
}
