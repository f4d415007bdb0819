//! Waiting for work. It is where the driver gives memory back that was freed in stream order, hence where charges fall.
//!
//! Next: `hooks/vmm.rs`.

use driver::abi::{CUcontext, CUevent, CUstream};

use crate::books::Books;
use crate::deferred::{Stream, Waiting};
use crate::guard::{Call, Otherwise, Verdict};

pub unsafe fn context(call: &Call<'_>) -> Verdict {
    wait_for_context(call, |books| books.current(call))
}

pub unsafe fn context_v2(call: &Call<'_>, context: CUcontext) -> Verdict {
    wait_for_context(call, |books| match context.is_null() {
        true => books.current(call),
        false => Some(context),
    })
}

/// A whole context waited for is what the recycler waits for, too, and where it may free what it keeps.
fn wait_for_context(call: &Call<'_>, which: impl FnOnce(&Books) -> Option<CUcontext>) -> Verdict {
    let books = call.books_if_attached()?;
    let Some(turn) = books.recycler.turn() else {
        return wait(call, |books| {
            let context = which(books).map_or(0, |context| context as usize);
            move |waiting: &Waiting| waiting.context == context
        });
    };
    let context = which(books);
    let number = context.map_or(0, |context| context as usize);
    let waited = wait(call, |_| move |waiting: &Waiting| waiting.context == number);
    let waited = match waited {
        Err(Otherwise::Forward) => call.pass().map_err(Otherwise::from),
        other => other,
    };
    if waited.is_ok() {
        books.waited_for(call, context, turn);
    }
    waited
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
    if books.deferred.is_empty() && !books.recycler.captures.any() {
        return Err(Otherwise::Forward);
    }
    let stream = Stream::of(stream, call.stream_api, 0);
    // Before the call: afterwards another stream may have the handle, and capture.
    let captures = books.recycler.captures.take(stream);
    let result = call.pass();
    match result {
        Ok(()) => {
            books.deferred.lose(stream);
            captures.iter().for_each(|_| books.recycler.captures.failed());
        }
        Err(_) => {
            for (stream, context) in captures {
                books.recycler.captures.begun(stream, context);
            }
        }
    }
    Ok(result?)
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
