//! The device a thread works on, and its primary context: made by the first call that needs one.

use super::lookup::{DRIVER, ready};
use driver::prelude::*;
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

thread_local! {
    /// What `cudaSetDevice` chose; 0 before.
    static CHOSEN: Cell<CUdevice> = const { Cell::new(0) };
}

/// Primary contexts this runtime holds, by device, as addresses; 0: none.
static HELD: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The driver is initialised and the thread has a context: its current one, or else the chosen device's
/// primary context.
pub fn current() -> CuResult {
    ready()?;
    let mut context: CUcontext = null_mut();
    // SAFETY: a local to write to.
    unsafe { DRIVER.cuCtxGetCurrent(StreamApi::Legacy, &mut context) }?;
    if !context.is_null() {
        return Ok(());
    }
    make_current(CHOSEN.get())
}

/// Makes the primary context of `device` current for this thread.
pub fn make_current(device: CUdevice) -> CuResult {
    let context = primary(device)?;
    // SAFETY: a context of the driver's.
    unsafe { DRIVER.cuCtxSetCurrent(StreamApi::Legacy, context) }
}

/// The primary context of `device`, retained once by this runtime. `INVALID_DEVICE` for none such.
pub fn primary(device: CUdevice) -> Result<CUcontext, CudaError> {
    ready()?;
    let place = usize::try_from(device).map_err(|_| CudaError::INVALID_DEVICE)?;
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&context) = held.get(place).filter(|&&context| context != 0) {
        return Ok(context as CUcontext);
    }
    let mut context: CUcontext = null_mut();
    // SAFETY: a local to write to.
    unsafe { DRIVER.cuDevicePrimaryCtxRetain(StreamApi::Legacy, &mut context, device) }?;
    if held.len() <= place {
        held.resize(place + 1, 0);
    }
    held[place] = context as usize;
    Ok(context)
}

/// The device of the current context, else the chosen one. Makes no context.
pub fn device() -> Result<CUdevice, CudaError> {
    ready()?;
    let (mut context, mut device): (CUcontext, CUdevice) = (null_mut(), 0);
    // SAFETY: locals to write to.
    unsafe {
        DRIVER.cuCtxGetCurrent(StreamApi::Legacy, &mut context)?;
        if context.is_null() {
            return Ok(CHOSEN.get());
        }
        DRIVER.cuCtxGetDevice(StreamApi::Legacy, &mut device)?;
    }
    Ok(device)
}

/// `cudaSetDevice`: makes the primary context too, as the runtime does since 12.0.
pub fn set_device(device: CUdevice) -> CuResult {
    make_current(device)?;
    CHOSEN.set(device);
    Ok(())
}

/// `cudaDeviceReset`: what the device's primary context held is gone; the next call makes a new one.
pub fn reset() -> CuResult {
    let device = device()?;
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(context) = usize::try_from(device).ok().and_then(|place| held.get_mut(place)) {
        *context = 0;
    }
    // SAFETY: no pointer is passed but null, which leaves the thread without a context.
    unsafe {
        DRIVER.cuDevicePrimaryCtxReset(StreamApi::Legacy, device)?;
        DRIVER.cuCtxSetCurrent(StreamApi::Legacy, null_mut())
    }
}
