//! Contexts that a kernel has broken: from its end on every call on them fails with its code.
//!
//! The kernel's place in its stream tells when that is; until a kernel that breaks something is
//! submitted, a call pays one load. Next file of the walk: `model/flow.rs`.

use super::{Client, Shared, StreamId};
use crate::shm::segment::kind;
use driver::{CuResult, CudaError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// A kernel that breaks its context.
struct Break {
    device: usize,
    context: u16,
    /// Its stream and its place there; `None` in `null` timing, where it has ended.
    at: Option<(StreamId, u64)>,
    error: CudaError,
}

#[derive(Default)]
pub(super) struct Breaks {
    any: AtomicBool,
    list: Mutex<Vec<Break>>,
}

impl Client {
    /// Submits a kernel that breaks its context when it ends: everything of the context is over then,
    /// and every call on it fails with `error`, for ever.
    pub fn break_context(&self, stream: StreamId, ns: u64, sms: u32, error: CudaError) -> CuResult {
        let shared = &self.shared;
        shared.usable(stream.device as usize)?;
        let (device, context) = (stream.device as usize, shared.context_of(stream)?);
        let at = if shared.null {
            shared.count_null_launch(stream.device);
            None
        } else {
            Some((stream, shared.push(stream, kind::FAULT, ns, sms)?))
        };
        let mut list = shared.breaks.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.push(Break {
            device,
            context,
            at,
            error,
        });
        shared.breaks.any.store(true, Ordering::Release);
        Ok(())
    }

    /// `Ok` while no kernel has broken the context. One load where none ever broke one.
    #[inline]
    pub fn intact(&self, device: usize, context: u16) -> CuResult {
        self.shared.intact(device, context)
    }

    /// True if a kernel has broken the context or will.
    pub fn is_doomed(&self, device: usize, context: u16) -> bool {
        let list = &self.shared.breaks.list;
        let list = list.lock().unwrap_or_else(PoisonError::into_inner);
        list.iter().any(|b| (b.device, b.context) == (device, context))
    }
}

impl Shared {
    #[inline]
    pub(super) fn intact(&self, device: usize, context: u16) -> CuResult {
        if !self.breaks.any.load(Ordering::Acquire) {
            return Ok(());
        }
        self.look_for_breaks(device, context)
    }

    /// As `intact`, of the stream's context.
    #[inline]
    pub(super) fn intact_of(&self, stream: StreamId) -> CuResult {
        if !self.breaks.any.load(Ordering::Acquire) {
            return Ok(());
        }
        self.look_for_breaks(stream.device as usize, self.context_of(stream)?)
    }

    #[cold]
    fn look_for_breaks(&self, device: usize, context: u16) -> CuResult {
        let list = self.breaks.list.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = list.iter().filter(|b| (b.device, b.context) == (device, context));
        for b in ours {
            if b.at.is_none_or(|(stream, seq)| self.interest(stream, seq)) {
                return Err(b.error);
            }
        }
        Ok(())
    }

    fn context_of(&self, stream: StreamId) -> Result<u16, CudaError> {
        Ok(self.producer().stream(stream)?.context)
    }
}
