//! What this library exports beside `dlsym` and `dlvsym`: every symbol of the table, each by its row's handler.
//!
//! Next: `guard.rs` for hooked ones, `forward.rs` for the others, `hooks/launch.rs` for launches.

#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]

use core::ffi::c_void;

use driver::abi::*;
use driver::table::{SYMBOL_COUNT, SymbolId};
use driver::{CuResult, StreamApi};

use crate::guard;

/// Our function to hand out for a symbol; `None` for those we only forward, which the driver answers itself.
pub fn hook(symbol: SymbolId) -> Option<*mut c_void> {
    HOOKS[symbol as usize].map(|function| function as *mut c_void)
}

/// The type does not matter: nobody calls through it.
type Function = unsafe extern "C" fn();

/// One row, once per symbol.
macro_rules! export_row {
    ($handler:tt $name:ident $arguments:tt [$($symbol:ident $api:ident),+]) => {
        $(export!{$handler $name $arguments $symbol $api})+
    };
}

/// One symbol, by its handler.
macro_rules! export {
    ((forward) $name:ident $arguments:tt $symbol:ident $api:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $symbol() {
            $crate::forward::forward!($symbol)
        }
    };
    ((launch::count) $name:ident $arguments:tt $symbol:ident $api:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $symbol() {
            $crate::hooks::launch::count!($symbol)
        }
    };
    (($module:ident::$function:ident) $name:ident ($($argument:ident: $kind:ty),*) $symbol:ident $api:ident) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $symbol($($argument: $kind),*) -> CuResult {
            guard::enter(
                SymbolId::$symbol,
                // SAFETY: the program's own call, passed on to the function it meant.
                &|driver| unsafe { driver.$name(StreamApi::$api, $($argument),*) },
                // SAFETY: the program vouches for the arguments, as it would to the driver.
                |call| unsafe { crate::hooks::$module::$function(call, $($argument),*) },
            )
        }
    };
}

/// The address of a hooked symbol's export.
macro_rules! address {
    ((forward) $symbol:ident) => {
        None
    };
    ($handler:tt $symbol:ident) => {
        // SAFETY: the address of a function, kept as an address only.
        Some(unsafe { core::mem::transmute::<*const c_void, Function>($symbol as *const c_void) })
    };
}

macro_rules! address_row {
    ($table:ident $handler:tt [$($symbol:ident),+]) => {
        $($table[SymbolId::$symbol as usize] = address!($handler $symbol);)+
    };
}

macro_rules! exports {
    ($($class:ident $handler:tt $name:ident($base:literal) $arguments:tt [$($symbol:ident $version:literal $api:ident),+];)*) => {
        $(export_row!{$handler $name $arguments [$($symbol $api),+]})*

        /// Our exports that do more than forward, by [`SymbolId`].
        static HOOKS: [Option<Function>; SYMBOL_COUNT] = {
            let mut table = [None; SYMBOL_COUNT];
            $(address_row!{table $handler [$($symbol),+]})*
            table
        };
    };
}

driver::functions!(exports);
