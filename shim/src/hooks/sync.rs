//! Waiting for work. It is where the driver gives memory back that was freed in stream order, hence where charges fall.
//!
//! Next: `hooks/vmm.rs`.

use driver::abi::{CUcontext, CUevent, CUstream};

use crate::books::Books;
use crate::deferred::{Stream, Waiting};
use crate::guard::{Call, Otherwise, Verdict};

pub unsafe fn context(call: &Call<'_>) -> Verdict {
    wait(call, |books| {
        let context = books.current(call).map_or(0, |context| context as usize);
        move |waiting: &Waiting| waiting.context == context
    })
}

pub unsafe fn context_v2(call: &Call<'_>, context: CUcontext) -> Verdict {
    if context.is_null() {
        // SAFETY: the same question without an argument.
        return unsafe { self::context(call) };
    }
    wait(call, |_| {
        move |waiting: &Waiting| waiting.context == context as usize
    })
}

pub unsafe fn stream(call: &Call<'_>, stream: CUstream) -> Verdict {
    wait(call, |books| {
        let context = books.current(call).map_or(0, |context| context as usize);
        let stream = Stream::of(stream, call.stream_api, context);
        move |waiting: &Waiting| waiting.stream == stream
    })
}

/// Which stream an event belongs to is not known: only pools are looked at.
pub unsafe fn event(call: &Call<'_>, _event: CUevent) -> Verdict {
    wait(call, |_| |_: &Waiting| false)
}

pub unsafe fn destroy(call: &Call<'_>, stream: CUstream) -> Verdict {
    let books = call.books_if_attached()?;
    if books.deferred.is_empty() {
        return Err(Otherwise::Forward);
    }
    call.pass()?;
    books.deferred.lose(Stream::of(stream, call.stream_api, 0));
    Ok(())
}

/// Forwards where nothing waits for a synchronisation; else gives back what had been freed before it began.
fn wait<F: Fn(&Waiting) -> bool>(call: &Call<'_>, done: impl FnOnce(&Books) -> F) -> Verdict {
    let books = call.books_if_attached()?;
    let until = (!books.deferred.is_empty()).then(|| books.deferred.now());
    let shrinks = books.pools.lock().may_shrink();
    if until.is_none() && !shrinks {
        return Err(Otherwise::Forward);
    }
    call.pass()?;
    if let Some(until) = until {
        let done = done(books);
        books.deferred.settle_until(books, until, done);
    }
    books.refresh_pools(call);
    Ok(())
}
