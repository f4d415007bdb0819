//! The last error of the calling thread, until it is asked for.

use driver::{CuResult, CudaError};
use std::cell::Cell;

thread_local! {
    static LAST: Cell<CuResult> = const { Cell::new(Ok(())) };
}

/// Remembers an error. A success does not clear it.
pub fn set(error: CudaError) {
    LAST.set(Err(error));
}

pub fn take() -> CuResult {
    LAST.replace(Ok(()))
}

pub fn peek() -> CuResult {
    LAST.get()
}
