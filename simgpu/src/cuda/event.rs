//! Events.

use super::arena::{Arena, Plain};
use super::context::{Context, context};
use super::current::current;
use super::edge::{needed, put};
use super::ipc_event::Shared;
use super::node::{Node, node};
use super::order::{before, submit};
use super::stream::{Stream, entry};
use super::{Sim, capture, free};
use crate::client::{Cost, EventId, Wait};
use driver::prelude::*;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

const BLOCKING_SYNC: u32 = 1;
const DISABLE_TIMING: u32 = 2;
pub const INTERPROCESS: u32 = 4;

/// Atomics only: see `arena.rs`.
pub struct Event {
    on_node: AtomicU32,
    context: AtomicPtr<Context>,
    flags: AtomicU32,
    recorded: AtomicBool,
    /// The capture it was last recorded in (`capture/events.rs`); 0: none.
    pub captured: AtomicU64,
    /// What an interprocess event shares; null for the others.
    shared: AtomicPtr<Shared>,
}

// SAFETY: atomics, for which zero is a value.
unsafe impl Plain for Event {}

static EVENTS: Arena<Event> = Arena::new(1 << 20);

/// The event behind a handle.
pub fn get(handle: CUevent) -> Result<&'static Event, CudaError> {
    EVENTS.get(handle).ok_or(CudaError::INVALID_HANDLE)
}

impl Event {
    pub fn on_node(&self) -> EventId {
        EventId(self.on_node.load(Ordering::Relaxed))
    }

    pub fn context(&self) -> &'static Context {
        // SAFETY: set when the slot was claimed, to a Context, which is never freed.
        unsafe { &*self.context.load(Ordering::Relaxed) }
    }

    pub fn flags(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    pub fn handle(&'static self) -> CUevent {
        EVENTS.handle(self)
    }

    pub fn shared(&self) -> Option<&'static Shared> {
        // SAFETY: null or a mapping that is never unmapped.
        unsafe { self.shared.load(Ordering::Acquire).as_ref() }
    }

    /// For an interprocess event: waits here until what another process recorded is complete. False for
    /// an ordinary event, which the timeline knows.
    pub fn wait_for_others(&self) -> Result<bool, CudaError> {
        match self.shared() {
            Some(shared) => shared.wait(self.context().client()).map(|()| true),
            None => Ok(false),
        }
    }

    fn wait(&self) -> Wait {
        if self.flags() & BLOCKING_SYNC != 0 {
            Wait::Block
        } else {
            self.context().wait()
        }
    }
}

/// Makes an event of a context; `shared` for an interprocess one.
pub fn create(
    context: &'static Context,
    flags: u32,
    shared: Option<&'static Shared>,
) -> Result<&'static Event, CudaError> {
    let client = context.client();
    let on_node = client.event()?;
    let made = EVENTS.claim(|event| {
        event.on_node.store(on_node.0, Ordering::Relaxed);
        event
            .context
            .store((&raw const *context).cast_mut(), Ordering::Relaxed);
        event.flags.store(flags, Ordering::Relaxed);
        event.recorded.store(false, Ordering::Relaxed);
        event.captured.store(0, Ordering::Relaxed);
        let shared = shared.map_or(null_mut(), |shared| (&raw const *shared).cast_mut());
        event.shared.store(shared, Ordering::Release);
    });
    if made.is_err() {
        client.drop_event(on_node);
    }
    made
}

fn end(event: &'static Event) -> CuResult {
    let handle = event.handle();
    if !EVENTS.end(handle) {
        return Err(CudaError::INVALID_HANDLE);
    }
    event.context().client().drop_event(event.on_node());
    EVENTS.recycle(handle);
    Ok(())
}

pub fn drop_all_of(context: &'static Context) {
    for (_, event) in EVENTS.all() {
        if std::ptr::eq(event.context(), context) {
            let _ = end(event);
        }
    }
}

/// The stream comes after the event's latest record.
pub fn follow(node: &'static Node, stream: &'static Stream, event: &'static Event) -> CuResult {
    if event.wait_for_others()? {
        return Ok(());
    }
    submit(node, stream, |on_node| {
        node.client.wait_event(on_node, event.on_node())
    })
}

/// The event stands for what the stream was given so far.
pub fn record(event: &'static Event, stream: &'static Stream) -> CuResult {
    let node = node()?;
    if !std::ptr::eq(stream.context(), event.context()) {
        return Err(CudaError::INVALID_HANDLE);
    }
    before(stream)?;
    node.client.record(event.on_node(), stream.on_node())?;
    event.captured.store(0, Ordering::Release);
    event.recorded.store(true, Ordering::Relaxed);
    match event.shared() {
        Some(shared) => shared.record(node, stream),
        None => Ok(()),
    }
}

/// An elapsed time is asked of two recorded events with timing.
fn elapsed(milliseconds: *mut f32, start: CUevent, end: CUevent) -> CuResult {
    let node = node()?;
    needed(milliseconds)?;
    let (start, end) = (get(start)?, get(end)?);
    capture::unobservable(start)?;
    capture::unobservable(end)?;
    if (start.flags() | end.flags()) & DISABLE_TIMING != 0 {
        return Err(CudaError::INVALID_HANDLE);
    }
    let ns = node.client.event_elapsed(start.on_node(), end.on_node())?;
    put(milliseconds, (ns as f64 / 1e6) as f32)
}

impl Sim {
    pub(super) fn cuEventCreate(_: StreamApi, phEvent: *mut CUevent, flags: c_uint) -> CuResult {
        let context = current()?.1;
        needed(phEvent)?;
        let unknown = flags & !(BLOCKING_SYNC | DISABLE_TIMING | INTERPROCESS) != 0;
        if unknown || (flags & INTERPROCESS != 0 && flags & DISABLE_TIMING == 0) {
            return Err(CudaError::INVALID_VALUE);
        }
        let shared = if flags & INTERPROCESS != 0 {
            Some(Shared::new()?)
        } else {
            None
        };
        put(phEvent, create(context, flags, shared)?.handle())
    }

    pub(super) fn cuEventDestroy(api: StreamApi, hEvent: CUevent) -> CuResult {
        Sim::cuEventDestroy_v2(api, hEvent)
    }

    pub(super) fn cuEventDestroy_v2(_: StreamApi, hEvent: CUevent) -> CuResult {
        node()?;
        end(get(hEvent)?)
    }

    pub(super) fn cuEventRecord(api: StreamApi, hEvent: CUevent, hStream: CUstream) -> CuResult {
        Sim::cuEventRecordWithFlags(api, hEvent, hStream, 0)
    }

    pub(super) fn cuEventRecordWithFlags(
        api: StreamApi,
        hEvent: CUevent,
        hStream: CUstream,
        flags: c_uint,
    ) -> CuResult {
        let (_, stream) = entry(api, hStream)?;
        if flags > 1 {
            return Err(CudaError::INVALID_VALUE);
        }
        let event = get(hEvent)?;
        if !std::ptr::eq(stream.context(), event.context()) {
            return Err(CudaError::INVALID_HANDLE);
        }
        if capture::note_record(event, stream, flags)? {
            return Ok(());
        }
        record(event, stream)
    }

    pub(super) fn cuEventQuery(_: StreamApi, hEvent: CUevent) -> CuResult {
        let node = node()?;
        let event = get(hEvent)?;
        capture::unobservable(event)?;
        let _cost = node.client.spend(Cost::Query);
        let done = match event.shared() {
            Some(shared) => shared.is_done(),
            None => node.client.event_query(event.on_node())?,
        };
        if done { Ok(()) } else { Err(CudaError::NOT_READY) }
    }

    pub(super) fn cuEventSynchronize(_: StreamApi, hEvent: CUevent) -> CuResult {
        let node = node()?;
        let event = get(hEvent)?;
        capture::unobservable(event)?;
        if !event.wait_for_others()? {
            node.client.event_synchronize(event.on_node(), event.wait())?;
        }
        free::observed(event.context());
        Ok(())
    }

    pub(super) fn cuEventElapsedTime(
        _: StreamApi,
        milliseconds: *mut f32,
        start: CUevent,
        end: CUevent,
    ) -> CuResult {
        elapsed(milliseconds, start, end)
    }

    pub(super) fn cuEventElapsedTime_v2(
        _: StreamApi,
        milliseconds: *mut f32,
        start: CUevent,
        end: CUevent,
    ) -> CuResult {
        elapsed(milliseconds, start, end)
    }

    /// Everything in the context so far: a stream of its own follows all others, non-blocking and destroyed ones too.
    pub(super) fn cuCtxRecordEvent(_: StreamApi, hCtx: CUcontext, hEvent: CUevent) -> CuResult {
        node()?;
        let context = if hCtx.is_null() {
            current()?.1
        } else {
            context(hCtx)?
        };
        let event = get(hEvent)?;
        capture::context_is_waited_for(context)?;
        let _cost = context.client().spend(Cost::Context);
        let marker = super::stream::create(context, super::stream::NON_BLOCKING, 0)?;
        let recorded = context
            .client()
            .follow_context(marker.on_node(), context.number())
            .and_then(|()| record(event, marker));
        super::stream::end(marker)?;
        recorded
    }

    /// Everything in the context from now on comes after the event.
    pub(super) fn cuCtxWaitEvent(_: StreamApi, hCtx: CUcontext, hEvent: CUevent) -> CuResult {
        let node = node()?;
        let context = if hCtx.is_null() {
            current()?.1
        } else {
            context(hCtx)?
        };
        let event = get(hEvent)?;
        capture::context_is_waited_for(context)?;
        if event.wait_for_others()? {
            return Ok(());
        }
        super::stream::all_of(context)
            .try_for_each(|stream| submit(node, stream, |id| node.client.wait_event(id, event.on_node())))
    }
}
