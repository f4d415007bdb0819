//! Streams and how a handle becomes one: own streams, and the two default ones of a context.
//!
//! Next file of the walk: `order.rs`.

use super::arena::{Arena, Plain};
use super::context::Context;
use super::current::current;
use super::node::{Node, next_id};
use crate::client::StreamId;
use driver::prelude::*;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// `CU_STREAM_NON_BLOCKING`.
pub const NON_BLOCKING: u32 = 1;
/// The legacy default stream of a context; never seen by programs.
pub const LEGACY: u32 = 1 << 16;
/// A thread's own default stream.
pub const PER_THREAD: u32 = 1 << 17;

pub const LEAST_PRIORITY: i32 = 0;
pub const GREATEST_PRIORITY: i32 = -5;

/// Atomics only: see `arena.rs`.
pub struct Stream {
    id: AtomicU64,
    /// The client's `StreamId`: index and device.
    on_node: AtomicU32,
    context: AtomicPtr<Context>,
    flags: AtomicU32,
    priority: AtomicI32,
    /// What of the legacy stream this one has followed (`order.rs`).
    pub legacy_seen: AtomicU64,
    /// Noted in the context's `unfollowed`.
    pub noted: AtomicBool,
    /// The capture it takes part in (`capture/mod.rs`); 0: none.
    pub capture: AtomicU64,
}

// SAFETY: atomics, for which zero is a value.
unsafe impl Plain for Stream {}

static STREAMS: Arena<Stream> = Arena::new(1 << 16);

impl Stream {
    pub fn handle(&'static self) -> CUstream {
        STREAMS.handle(self)
    }

    pub fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }

    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Whether it is the legacy default stream of its context.
    pub fn is_legacy(&self) -> bool {
        self.flags() & LEGACY != 0
    }

    pub fn priority(&self) -> i32 {
        self.priority.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub fn on_node(&self) -> StreamId {
        let packed = self.on_node.load(Ordering::Relaxed);
        StreamId {
            index: packed as u16,
            device: (packed >> 16) as u8,
        }
    }

    #[inline(always)]
    pub fn context(&self) -> &'static Context {
        // SAFETY: set when the slot was claimed, to a Context, which is never freed.
        unsafe { &*self.context.load(Ordering::Relaxed) }
    }
}

/// Makes a stream of a context.
pub fn create(context: &'static Context, flags: u32, priority: i32) -> Result<&'static Stream, CudaError> {
    let client = context.client();
    let on_node = client.stream(context.device.index, context.number(), priority as i8)?;
    let made = STREAMS.claim(|stream| {
        stream.id.store(next_id(), Ordering::Relaxed);
        stream.on_node.store(
            on_node.index as u32 | (on_node.device as u32) << 16,
            Ordering::Relaxed,
        );
        stream
            .context
            .store((&raw const *context).cast_mut(), Ordering::Relaxed);
        stream.flags.store(flags, Ordering::Relaxed);
        stream.priority.store(priority, Ordering::Relaxed);
        stream.legacy_seen.store(0, Ordering::Relaxed);
        stream.noted.store(false, Ordering::Relaxed);
        stream.capture.store(0, Ordering::Relaxed);
    });
    if made.is_err() {
        client.drop_stream(on_node);
    }
    made
}

/// Ends a stream; its pending work still completes.
pub fn end(stream: &'static Stream) -> CuResult {
    let handle = stream.handle();
    if !STREAMS.end(handle) {
        return Err(CudaError::INVALID_HANDLE);
    }
    let context = stream.context();
    super::capture::forget(stream);
    super::order::forget(context, stream);
    context.client().drop_stream(stream.on_node());
    STREAMS.recycle(handle);
    Ok(())
}

/// Ends every stream of a context.
pub fn drop_all_of(context: &'static Context) {
    for stream in all_of(context) {
        let _ = end(stream);
    }
}

/// Every live stream of a context, its default streams included.
pub fn all_of(context: &'static Context) -> impl Iterator<Item = &'static Stream> {
    STREAMS
        .all()
        .map(|(_, stream)| stream)
        .filter(move |stream| std::ptr::eq(stream.context(), context))
}

/// This thread's default streams, by context.
struct Own(Vec<(u64, &'static Stream)>);

impl Drop for Own {
    fn drop(&mut self) {
        for (context, stream) in self.0.drain(..) {
            if stream.context().id() == context && stream.context().client().alive().is_ok() {
                let _ = end(stream);
            }
        }
    }
}

thread_local! {
    static OWN: RefCell<Own> = const { RefCell::new(Own(Vec::new())) };
}

/// The calling thread's default stream in a context, made at first use.
fn per_thread(context: &'static Context) -> Result<&'static Stream, CudaError> {
    let of_this = |own: &RefCell<Own>| {
        let mut own = own.borrow_mut();
        if let Some((_, stream)) = own.0.iter().find(|(id, _)| *id == context.id()) {
            return Ok(*stream);
        }
        let stream = create(context, PER_THREAD, 0)?;
        own.0.push((context.id(), stream));
        Ok(stream)
    };
    // A thread that is already ending has none any more.
    OWN.try_with(of_this).unwrap_or(Err(CudaError::INVALID_CONTEXT))
}

/// The stream a handle means for this call: an own one whatever is current, a default one of the
/// current context.
#[inline(always)]
pub fn resolve(api: StreamApi, handle: CUstream) -> Result<&'static Stream, CudaError> {
    match handle as usize {
        0 => match api {
            StreamApi::Legacy => current()?.1.legacy(),
            StreamApi::PerThread => per_thread(current()?.1),
        },
        1 => current()?.1.legacy(),
        2 => per_thread(current()?.1),
        _ => {
            let stream = STREAMS.get(handle).ok_or(CudaError::INVALID_HANDLE)?;
            // Streams end with their context, and the client looks after the device.
            Ok(stream)
        }
    }
}

/// The own stream behind a handle; `INVALID_HANDLE` for default ones too.
pub fn own(handle: CUstream) -> Result<&'static Stream, CudaError> {
    let stream = STREAMS.get(handle).ok_or(CudaError::INVALID_HANDLE)?;
    if stream.flags() & (LEGACY | PER_THREAD) != 0 {
        return Err(CudaError::INVALID_HANDLE);
    }
    Ok(stream)
}

/// The stream of a call, and the node: what every function with a stream begins with.
#[inline(always)]
pub fn entry(api: StreamApi, handle: CUstream) -> Result<(&'static Node, &'static Stream), CudaError> {
    let node = super::node::node()?;
    Ok((node, resolve(api, handle)?))
}
