//! The order between the legacy default stream and the blocking streams of a context.
//!
//! What the legacy stream does comes after everything the blocking streams were given before, and they
//! come after it. So a switch between the two, and only a switch, makes one stream follow another; a
//! program that keeps to one kind pays two loads per launch. Next file of the walk: `launch.rs`.

use super::context::Context;
use super::node::Node;
use super::stream::{LEGACY, NON_BLOCKING, Stream};
use crate::client::StreamId;
use driver::{CuResult, CudaError};
use std::sync::PoisonError;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Submits to the stream in the order CUDA demands.
#[inline(always)]
pub fn submit(node: &Node, stream: &'static Stream, work: impl FnOnce(StreamId) -> CuResult) -> CuResult {
    if node.null {
        return work(stream.on_node());
    }
    before(stream)?;
    work(stream.on_node())?;
    after(stream);
    Ok(())
}

/// What must come before anything the stream is about to do or wait for.
pub fn before(stream: &'static Stream) -> CuResult {
    let flags = stream.flags();
    if flags & NON_BLOCKING != 0 {
        return Ok(());
    }
    let context = stream.context();
    if flags & LEGACY != 0 {
        if context.any_unfollowed.load(Acquire) {
            follow_all(context, stream)
        } else {
            Ok(())
        }
    } else {
        let count = context.legacy_count.load(Acquire);
        if stream.legacy_seen.load(Relaxed) == count {
            return Ok(());
        }
        stream.legacy_seen.store(count, Relaxed);
        context
            .client()
            .follow(stream.on_node(), context.legacy()?.on_node())
    }
}

fn after(stream: &'static Stream) {
    let flags = stream.flags();
    if flags & NON_BLOCKING != 0 {
        return;
    }
    let context = stream.context();
    if flags & LEGACY != 0 {
        context.legacy_count.fetch_add(1, Release);
    } else if !stream.noted.load(Relaxed) && !stream.noted.swap(true, Relaxed) {
        context
            .unfollowed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(stream);
        context.any_unfollowed.store(true, Release);
    }
}

#[cold]
fn follow_all(context: &'static Context, legacy: &'static Stream) -> CuResult {
    let mut unfollowed = context.unfollowed.lock().unwrap_or_else(PoisonError::into_inner);
    context.any_unfollowed.store(false, Relaxed);
    for stream in unfollowed.drain(..) {
        stream.noted.store(false, Relaxed);
        follow(context, legacy, stream)?;
    }
    Ok(())
}

fn follow(context: &'static Context, legacy: &'static Stream, stream: &'static Stream) -> CuResult {
    match context.client().follow(legacy.on_node(), stream.on_node()) {
        // It went away meanwhile.
        Err(CudaError::INVALID_HANDLE) => Ok(()),
        other => other,
    }
}

/// The stream is going away: the legacy stream follows what it did now or never.
pub fn forget(context: &'static Context, stream: &'static Stream) {
    let mut unfollowed = context.unfollowed.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(at) = unfollowed.iter().position(|noted| std::ptr::eq(*noted, stream)) else {
        return;
    };
    unfollowed.swap_remove(at);
    if let Ok(legacy) = context.legacy() {
        let _ = follow(context, legacy, stream);
    }
}
