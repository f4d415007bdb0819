//! Every symbol of the table as a C function: configured faults, the call, and a panic turned into
//! `CUDA_ERROR_UNKNOWN`.
//!
//! Which of them a library shows is the linker's version script's affair (`profile.rs` reads the outcome
//! back). Next file of the walk: `node.rs`.

use super::{Fallback as _, Sim, node};
use driver::prelude::*;
use driver::table::{SYMBOL_COUNT, SymbolId};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs one call of the function that `cuGetProcAddress` knows as `base`.
#[inline(always)]
fn call(base: &'static str, body: impl FnOnce() -> CuResult) -> CuResult {
    let guarded = || match node::connected().and_then(|node| node.client.fault(base)) {
        Some(error) => Err(error),
        None => body(),
    };
    catch_unwind(AssertUnwindSafe(guarded)).unwrap_or(Err(CudaError::UNKNOWN))
}

macro_rules! export {
    ($name:ident $base:literal ($($argument:ident: $kind:ty),*) $symbol:ident $api:ident) => {
        /// # Safety
        /// As cuda.h demands of the arguments.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $symbol($($argument: $kind),*) -> CuResult {
            call($base, || Sim::$name(StreamApi::$api, $($argument),*))
        }
    };
}

/// Address of an exported function.
#[derive(Clone, Copy)]
struct Address(*const c_void);

// SAFETY: the address of code, which is the same for every thread.
unsafe impl Sync for Address {}

macro_rules! exports {
    ($($class:ident $handler:tt $name:ident($base:literal) $arguments:tt [$($symbol:ident $version:literal $api:ident),+];)*) => {
        $($(export! { $name $base $arguments $symbol $api })+)*

        static ADDRESSES: [Address; SYMBOL_COUNT] = [$($(Address($symbol as *const c_void)),+),*];
    };
}
driver::functions!(exports);

/// Where the function of this symbol is, in this library and no other.
pub(super) fn address(symbol: SymbolId) -> *mut c_void {
    ADDRESSES[symbol as usize].0.cast_mut()
}
