//! The stand-in's `libnvidia-ml.so.1`: every name of `driver::nvml_table`, answered from the node's truth.
//!
//! It attaches to the node as an observer, so that looking changes nothing: no context, no memory, no
//! work. What is not written out below answers `NVML_ERROR_NOT_SUPPORTED`, as a device without the
//! feature does, and every function but the initialisers `NVML_ERROR_UNINITIALIZED` before `nvmlInit`.
//!
//! The walk: an export here → the function of that name in one of the files below → `session.rs` (which
//! node) and `device.rs` (which device) → `client/observer.rs`.

mod device;
mod error_string;
mod identity;
mod links;
mod memory;
mod modes;
mod processes;
mod sensors;
pub(crate) mod session;
mod system;
#[cfg(test)]
mod tests;
mod utilization;

use driver::nvml::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The functions, by their C names: those written out in the files of this module as inherent ones, which
/// win over the trait's.
pub(crate) struct Nvml;

macro_rules! exports {
    ($($handler:tt $name:ident($($argument:ident: $kind:ty),*);)*) => {
        /// What a function answers that nobody wrote.
        #[allow(dead_code, non_snake_case, unused_variables, clippy::missing_safety_doc)]
        trait Fallback {
            $(unsafe fn $name($($argument: $kind),*) -> NvmlResult {
                session::current()?;
                Err(NvmlError::NOT_SUPPORTED)
            })*
        }

        impl Fallback for Nvml {}

        /// The exported symbols.
        #[allow(non_snake_case, clippy::missing_safety_doc)]
        mod exports {
            use super::*;
            $(#[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $kind),*) -> NvmlResult {
                // SAFETY: the caller's arguments, for which it vouches as nvml.h demands.
                entered(stringify!($name), || unsafe { Nvml::$name($($argument),*) })
            })*
        }
    };
}

driver::nvml_functions!(exports);

/// What happens around every function: configured faults, and no unwinding into the caller.
fn entered(name: &'static str, function: impl FnOnce() -> NvmlResult) -> NvmlResult {
    catch_unwind(AssertUnwindSafe(|| {
        if let Some(code) = session::fault(name) {
            return NvmlError::check(code);
        }
        function()
    }))
    .unwrap_or(Err(NvmlError::UNKNOWN))
}

/// Stores an answer where the caller wants it.
///
/// # Safety
/// `to` is null or valid for a write.
unsafe fn put<T>(to: *mut T, value: T) -> NvmlResult {
    if to.is_null() {
        return Err(NvmlError::INVALID_ARGUMENT);
    }
    // SAFETY: not null, else as the caller says.
    unsafe { to.write(value) };
    Ok(())
}

/// Stores a text of `length` bytes at most, final zero included.
///
/// # Safety
/// `to` is null or valid for `length` bytes.
unsafe fn put_text(to: *mut c_char, length: c_uint, text: &str) -> NvmlResult {
    if to.is_null() {
        return Err(NvmlError::INVALID_ARGUMENT);
    }
    if text.len() >= length as usize {
        return Err(NvmlError::INSUFFICIENT_SIZE);
    }
    // SAFETY: `text` and a zero fit into `length` bytes.
    unsafe {
        to.cast::<u8>()
            .copy_from_nonoverlapping(text.as_ptr(), text.len());
        to.add(text.len()).write(0);
    }
    Ok(())
}

/// Stores a list where the caller has room for `*count` items and wants to know how many there are.
///
/// # Safety
/// `count` is null or valid; `to` is null or valid for `*count` items.
unsafe fn put_list<T: Copy>(count: *mut c_uint, to: *mut T, items: &[T]) -> NvmlResult {
    if count.is_null() {
        return Err(NvmlError::INVALID_ARGUMENT);
    }
    // SAFETY: not null, else as the caller says.
    let room = unsafe { count.replace(items.len() as c_uint) } as usize;
    if room < items.len() {
        return Err(NvmlError::INSUFFICIENT_SIZE);
    }
    if to.is_null() {
        return if items.is_empty() {
            Ok(())
        } else {
            Err(NvmlError::INVALID_ARGUMENT)
        };
    }
    // SAFETY: there is room for `items`.
    unsafe { to.copy_from_nonoverlapping(items.as_ptr(), items.len()) };
    Ok(())
}

/// A text for a field of a struct: cut to leave a final zero.
fn field<const N: usize>(text: &str) -> [c_char; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes.iter_mut().zip(text.bytes()).take(N - 1) {
        *to = from as c_char;
    }
    bytes
}
