//! The edge to C: the only place where a caller's pointer is followed.
//!
//! Every pointer that reaches these functions came through an exported function of the driver API, whose
//! C contract says: null, or valid for what the function's documentation reads and writes. Null is
//! answered here; the rest of the contract is the caller's, as with the real driver. Alignment is not
//! assumed.

use driver::{CuResult, CudaError};
use std::ffi::{CStr, c_char, c_void};

/// Writes a result; `INVALID_VALUE` for null.
pub fn put<T>(to: *mut T, value: T) -> CuResult {
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: not null, and valid for a write by the contract of the C API.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Writes a result that the caller may decline with null.
pub fn put_optional<T>(to: *mut T, value: T) {
    let _ = put(to, value);
}

/// Reads an argument; `INVALID_VALUE` for null.
pub fn get<T: Copy>(from: *const T) -> Result<T, CudaError> {
    if from.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    // SAFETY: not null, and valid for a read by the contract of the C API.
    Ok(unsafe { from.read_unaligned() })
}

/// Element `index` of an array argument.
pub fn element<T: Copy>(array: *const T, index: usize) -> Result<T, CudaError> {
    if array.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    get(array.wrapping_add(index))
}

/// `INVALID_VALUE` for null: for outputs that are written late.
pub fn needed<T>(pointer: *const T) -> CuResult {
    if pointer.is_null() {
        Err(CudaError::INVALID_VALUE)
    } else {
        Ok(())
    }
}

/// A name; `INVALID_VALUE` for null, `None` inside for what is not UTF-8.
pub fn text<'a>(name: *const c_char) -> Result<&'a str, CudaError> {
    needed(name)?;
    // SAFETY: a C string by the contract of the API, unchanged during the call.
    unsafe { CStr::from_ptr(name) }
        .to_str()
        .map_err(|_| CudaError::INVALID_VALUE)
}

/// Writes at most `room` bytes of `text`, the last of them zero, as the driver fills name buffers.
pub fn put_text(to: *mut c_char, room: usize, text: &str) -> CuResult {
    if to.is_null() || room == 0 {
        return Err(CudaError::INVALID_VALUE);
    }
    let length = text.len().min(room - 1);
    // SAFETY: the caller gave `room` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), length);
        to.add(length).write(0);
    }
    Ok(())
}

/// The `length` bytes at `from`.
pub fn bytes<'a>(from: *const c_void, length: usize) -> Result<&'a [u8], CudaError> {
    needed(from)?;
    // SAFETY: readable for `length` by the contract of the API, unchanged during the call.
    Ok(unsafe { std::slice::from_raw_parts(from.cast(), length) })
}
