//! The calling thread's context stack.
//!
//! Next file of the walk: `context.rs`.

use super::Sim;
use super::context::{Context, context};
use super::edge::{needed, put, put_optional};
use super::node::{Node, node};
use driver::prelude::*;
use std::cell::{Cell, RefCell};
use std::ptr::null_mut;

thread_local! {
    /// The topmost entry of the stack, for the fast path.
    static TOP: Cell<Option<&'static Context>> = const { Cell::new(None) };
    static STACK: RefCell<Vec<&'static Context>> = const { RefCell::new(Vec::new()) };
}

/// The node and the current context, while both may be used: `NOT_INITIALIZED`, `INVALID_CONTEXT`
/// without one, `CONTEXT_IS_DESTROYED` for one that is gone, its error for one that a kernel has broken.
#[inline(always)]
pub fn current() -> Result<(&'static Node, &'static Context), CudaError> {
    let node = node()?;
    let context = TOP.get().ok_or(CudaError::INVALID_CONTEXT)?;
    context.usable()?;
    context.intact()?;
    Ok((node, context))
}

/// The top of the calling thread's stack, whatever its state.
pub fn top() -> Option<&'static Context> {
    TOP.get()
}

fn change(edit: impl FnOnce(&mut Vec<&'static Context>)) {
    STACK.with_borrow_mut(|stack| {
        edit(stack);
        TOP.set(stack.last().copied());
    });
}

pub fn push(context: &'static Context) {
    change(|stack| stack.push(context));
}

/// Takes the context off the top of the calling thread's stack, if it is there.
pub fn pop_if(context: &'static Context) {
    change(|stack| {
        if stack.last().is_some_and(|top| std::ptr::eq(*top, context)) {
            stack.pop();
        }
    });
}

/// The context a call names, or the current one for null.
pub fn named_or_current(handle: CUcontext) -> Result<&'static Context, CudaError> {
    if handle.is_null() {
        Ok(current()?.1)
    } else {
        context(handle)
    }
}

impl Sim {
    pub(super) fn cuCtxPushCurrent(api: StreamApi, ctx: CUcontext) -> CuResult {
        Sim::cuCtxPushCurrent_v2(api, ctx)
    }

    pub(super) fn cuCtxPushCurrent_v2(_: StreamApi, ctx: CUcontext) -> CuResult {
        node()?;
        push(context(ctx)?);
        Ok(())
    }

    pub(super) fn cuCtxPopCurrent(api: StreamApi, pctx: *mut CUcontext) -> CuResult {
        Sim::cuCtxPopCurrent_v2(api, pctx)
    }

    pub(super) fn cuCtxPopCurrent_v2(_: StreamApi, pctx: *mut CUcontext) -> CuResult {
        node()?;
        let top = top().ok_or(CudaError::INVALID_CONTEXT)?;
        change(|stack| {
            stack.pop();
        });
        put_optional(pctx, top.handle());
        Ok(())
    }

    pub(super) fn cuCtxSetCurrent(_: StreamApi, ctx: CUcontext) -> CuResult {
        node()?;
        let next = if ctx.is_null() { None } else { Some(context(ctx)?) };
        change(|stack| {
            stack.pop();
            stack.extend(next);
        });
        Ok(())
    }

    pub(super) fn cuCtxGetCurrent(_: StreamApi, pctx: *mut CUcontext) -> CuResult {
        node()?;
        put(pctx, top().map_or(null_mut(), Context::handle))
    }

    pub(super) fn cuCtxGetDevice(_: StreamApi, device: *mut CUdevice) -> CuResult {
        needed(device)?;
        put(device, current()?.1.device.ordinal)
    }

    pub(super) fn cuCtxGetDevice_v2(_: StreamApi, device: *mut CUdevice, ctx: CUcontext) -> CuResult {
        needed(device)?;
        put(device, named_or_current(ctx)?.device.ordinal)
    }
}
