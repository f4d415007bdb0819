//! What must not be done while a capture goes on.
//!
//! A thread's mode says whose captures bind it: its own and those that began with the global mode, its own alone, or none.

use super::{Sequence, is_implied, me, none, sequences};
use crate::cuda::Sim;
use crate::cuda::context::Context;
use crate::cuda::edge::{get as read, put};
use crate::cuda::node::node;
use crate::cuda::stream::Stream;
use driver::prelude::*;
use std::cell::Cell;
use std::sync::atomic::Ordering;

thread_local! {
    /// `CUstreamCaptureMode` of the thread; global to begin with.
    static MODE: Cell<CUstreamCaptureMode> = const { Cell::new(CU_STREAM_CAPTURE_MODE_GLOBAL) };
}

/// Marks the sequences for which `hit` holds invalid; true if there was one.
fn invalidate(hit: impl Fn(&Sequence) -> bool) -> bool {
    let mut sequences = sequences();
    let mut any = false;
    for sequence in sequences.iter_mut().filter(|sequence| hit(sequence)) {
        sequence.valid = false;
        any = true;
    }
    any
}

/// What every call begins with that takes effect at once and not in the order of a stream.
///
/// # Errors
/// `STREAM_CAPTURE_UNSUPPORTED` while a capture binds the calling thread, which invalidates that capture.
#[inline(always)]
pub fn unsafe_call() -> CuResult {
    if none() { Ok(()) } else { judge() }
}

#[cold]
fn judge() -> CuResult {
    let mode = MODE.get();
    if mode == CU_STREAM_CAPTURE_MODE_RELAXED {
        return Ok(());
    }
    let me = me();
    let bound = invalidate(|sequence| {
        if sequence.thread == me {
            sequence.mode != CU_STREAM_CAPTURE_MODE_RELAXED
        } else {
            mode == CU_STREAM_CAPTURE_MODE_GLOBAL && sequence.mode == CU_STREAM_CAPTURE_MODE_GLOBAL
        }
    });
    if bound {
        Err(CudaError::STREAM_CAPTURE_UNSUPPORTED)
    } else {
        Ok(())
    }
}

/// The call cannot be captured: invalidates the stream's sequence and returns the call's error.
pub fn refuse(stream: &'static Stream) -> CudaError {
    let id = stream.capture.load(Ordering::Acquire);
    invalidate(|sequence| sequence.id == id);
    CudaError::STREAM_CAPTURE_UNSUPPORTED
}

/// For calls in stream order that no capture takes.
#[inline(always)]
pub fn refuse_all(stream: &'static Stream) -> CuResult {
    match super::of(stream)? {
        Some(_) => Err(refuse(stream)),
        None => Ok(()),
    }
}

/// The program wants to wait for a stream, or know whether it is done.
#[inline(always)]
pub fn stream_is_waited_for(stream: &'static Stream) -> CuResult {
    if none() {
        return Ok(());
    }
    refuse_all(stream)?;
    unsafe_call()
}

/// The program wants to wait for a whole context.
#[inline(always)]
pub fn context_is_waited_for(context: &'static Context) -> CuResult {
    if none() {
        return Ok(());
    }
    let inside = |sequence: &Sequence| {
        let mut members = sequence.members.iter();
        members.any(|member| std::ptr::eq(member.stream.context(), context))
    };
    if invalidate(inside) {
        return Err(CudaError::STREAM_CAPTURE_UNSUPPORTED);
    }
    unsafe_call()
}

/// Whether the legacy stream has no answer while a stream that it is in order with is capturing.
pub fn is_unusable(stream: &'static Stream) -> bool {
    !none() && sequences().iter().any(|sequence| is_implied(sequence, stream))
}

impl Sim {
    pub(in crate::cuda) fn cuThreadExchangeStreamCaptureMode(
        _: StreamApi,
        mode: *mut CUstreamCaptureMode,
    ) -> CuResult {
        node()?;
        let new = read(mode)?;
        if new > CU_STREAM_CAPTURE_MODE_RELAXED {
            return Err(CudaError::INVALID_VALUE);
        }
        put(mode, MODE.replace(new))
    }
}
