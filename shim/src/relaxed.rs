//! Driver calls of our own while the program may be capturing a stream: in a mode in which they break no capture and no
//! capture forbids them.
//!
//! Next: `pools.rs`.

use driver::abi::CU_STREAM_CAPTURE_MODE_RELAXED;
use driver::{Driver, StreamApi};

/// Makes calls that take effect at once. The thread's mode is as before afterwards.
pub fn relaxed<T>(driver: &Driver, work: impl FnOnce() -> T) -> T {
    let mut mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the driver exchanges one number. One that has no modes has no captures that a call could break.
    let exchanged = unsafe { driver.cuThreadExchangeStreamCaptureMode(StreamApi::Legacy, &mut mode) };
    let done = work();
    if exchanged.is_ok() {
        // SAFETY: as above, with what the driver said was there.
        let _ = unsafe { driver.cuThreadExchangeStreamCaptureMode(StreamApi::Legacy, &mut mode) };
    }
    done
}
