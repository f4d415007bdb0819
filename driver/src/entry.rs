//! The entry points of one loaded driver: an address per symbol, a typed method per row.

use core::ffi::CStr;
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::abi::*;
use crate::row::StreamApi;
use crate::table::{ALL_SYMBOLS, SYMBOL_COUNT, SymbolId};
use crate::{CuResult, CudaError};

/// One address per symbol of the table, null where the driver lacks it.
///
/// The layout is an array indexed by [`SymbolId`], so that the shim's forwarding stubs can jump through
/// it in one instruction.
#[repr(transparent)]
pub struct Driver {
    addresses: [AtomicPtr<c_void>; SYMBOL_COUNT],
}

impl Driver {
    /// A driver of which nothing is known yet.
    pub const fn empty() -> Driver {
        Driver {
            addresses: [const { AtomicPtr::new(null_mut()) }; SYMBOL_COUNT],
        }
    }

    /// Asks `lookup` for every symbol of the table.
    ///
    /// # Safety
    /// What `lookup` returns for a name must be null or the address of the function that cuda.h declares
    /// under that name, callable for as long as this `Driver` is used.
    pub unsafe fn load(&self, mut lookup: impl FnMut(&CStr) -> *mut c_void) {
        for &id in ALL_SYMBOLS {
            self.addresses[id as usize].store(id.c_name().map_or(null_mut(), &mut lookup), Relaxed);
        }
    }

    /// Where the driver's own function is; null where it has none.
    pub fn address(&self, id: SymbolId) -> *mut c_void {
        self.addresses[id as usize].load(Relaxed)
    }

    /// Replaces one address, for tests and for symbols found later.
    ///
    /// # Safety
    /// As for [`Driver::load`].
    pub unsafe fn set_address(&self, id: SymbolId, address: *mut c_void) {
        self.addresses[id as usize].store(address, Relaxed);
    }
}

macro_rules! methods {
    ($($class:ident $handler:tt $name:ident($base:literal)($($argument:ident: $kind:ty),*) [$($symbol:ident $version:literal $api:ident),+];)*) => {
        /// The driver's functions by the names of their rows. `api` chooses between a symbol and its
        /// per-thread twin; a function the driver lacks answers `CUDA_ERROR_NOT_FOUND`.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        impl Driver {
            $(
                /// # Safety
                /// As the driver's documentation demands of the arguments.
                pub unsafe fn $name(&self, api: StreamApi, $($argument: $kind),*) -> CuResult {
                    let mut address: *mut c_void = null_mut();
                    $(if address.is_null() || api == StreamApi::$api {
                        address = self.address(SymbolId::$symbol);
                    })+
                    if address.is_null() {
                        return Err(CudaError::NOT_FOUND);
                    }
                    // SAFETY: the address came from `load` under a name of this row, whose prototype
                    // the header oracle checks.
                    let function = unsafe {
                        transmute::<*mut c_void, unsafe extern "C" fn($($kind),*) -> CuResult>(address)
                    };
                    // SAFETY: the caller vouches for the arguments.
                    unsafe { function($($argument),*) }
                }
            )*
        }
    };
}

crate::functions!(methods);
