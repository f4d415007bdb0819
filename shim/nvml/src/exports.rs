//! What this library exports: every name of the table, each by its row's handler, and `nvmlErrorString`.
//!
//! Next: `real.rs`, for the forwarded ones; the module a row names, for the others.

#![allow(non_snake_case, clippy::missing_safety_doc)]

use core::mem::transmute;
use std::panic::{AssertUnwindSafe, catch_unwind};

use driver::nvml::*;

use crate::real;
use crate::real::Name;

/// A row about which nothing is decided: a stub that jumps, so that no prototype is needed and none can be wrong.
macro_rules! export {
    ((forward) $name:ident $arguments:tt) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            real::forward!(Name::$name as usize)
        }
    };
    (($module:ident::$function:ident) $name:ident ($($argument:ident: $kind:ty),*)) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> NvmlResult {
            real::silence();
            // SAFETY: the real library's function of this name, whose prototype the row has, or one that only
            // returns an error.
            let function = unsafe {
                transmute::<*const c_void, unsafe extern "C" fn($($kind),*) -> NvmlResult>(real::address(Name::$name as usize))
            };
            // SAFETY: the program vouches for the arguments, as it would to the real library.
            let answer = || unsafe { crate::$module::$function(function, $($argument),*) };
            // SAFETY: as above; a fault of ours is a pass-through.
            catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|_| unsafe { function($($argument),*) })
        }
    };
}

macro_rules! exports {
    ($($handler:tt $name:ident $arguments:tt;)*) => {
        $(export! { $handler $name $arguments })*
    };
}

driver::nvml_functions!(exports);

/// The one function that returns a text.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn nvmlErrorString() {
    real::forward!(real::ERROR_STRING)
}
