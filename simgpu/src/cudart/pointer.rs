//! What an address is.

use super::lookup::{DRIVER, ready};
use super::release::Release;
use super::structs::PointerAttributes;
use driver::prelude::*;
use std::ptr::null_mut;

/// `CUpointer_attribute`.
const MEMORY_TYPE: c_uint = 2;
const DEVICE_POINTER: c_uint = 3;
const HOST_POINTER: c_uint = 4;
const IS_MANAGED: c_uint = 8;
const DEVICE_ORDINAL: c_uint = 9;

/// `cudaMemoryType`.
mod kind {
    pub const UNREGISTERED: u32 = 0;
    pub const HOST: u32 = 1;
    pub const DEVICE: u32 = 2;
    pub const MANAGED: u32 = 3;
}

/// No device: `cudaInvalidDeviceId`.
const NO_DEVICE: c_int = -2;

pub unsafe fn attributes(to: *mut PointerAttributes, pointer: *mut c_void) -> CuResult {
    ready()?;
    if to.is_null() {
        return Err(CudaError::INVALID_VALUE);
    }
    let (mut memory, mut managed, mut ordinal): (c_uint, c_uint, c_int) = (0, 0, NO_DEVICE);
    let (mut device_pointer, mut host_pointer): (*mut c_void, *mut c_void) = (null_mut(), null_mut());
    let mut questions = [
        MEMORY_TYPE,
        DEVICE_POINTER,
        HOST_POINTER,
        IS_MANAGED,
        DEVICE_ORDINAL,
    ];
    let mut answers: [*mut c_void; 5] = [
        (&raw mut memory).cast(),
        (&raw mut device_pointer).cast(),
        (&raw mut host_pointer).cast(),
        (&raw mut managed).cast(),
        (&raw mut ordinal).cast(),
    ];
    // SAFETY: as many answers as questions, each the address of a local of its type.
    unsafe {
        DRIVER.cuPointerGetAttributes(
            StreamApi::Legacy,
            questions.len() as c_uint,
            questions.as_mut_ptr(),
            answers.as_mut_ptr(),
            pointer as CUdeviceptr,
        )
    }?;
    let kind = match memory {
        _ if managed & 0xff != 0 => kind::MANAGED,
        CU_MEMORYTYPE_DEVICE => kind::DEVICE,
        CU_MEMORYTYPE_HOST => kind::HOST,
        _ => kind::UNREGISTERED,
    };
    let answer = match kind {
        kind::UNREGISTERED => PointerAttributes {
            kind,
            device: NO_DEVICE,
            device_pointer: null_mut(),
            host_pointer: pointer,
        },
        _ => PointerAttributes {
            kind,
            device: ordinal,
            device_pointer,
            host_pointer,
        },
    };
    // SAFETY: the caller's struct, as long as its release's header says.
    unsafe {
        to.cast::<u8>()
            .write_bytes(0, PointerAttributes::size(Release::own()));
        to.write(answer);
    }
    Ok(())
}
