//! Stream captures begin and end: the recycler makes no certificate meanwhile. Nothing is decided about the capture itself.
//!
//! Next: `recycler/captures.rs`.

use core::ptr::null_mut;

use driver::abi::{
    CUcontext, CUgraph, CUgraphEdgeData, CUgraphNode, CUgraphRecaptureCallback, CUstream,
    CUstreamCaptureMode, CUstreamCaptureStatus, CUstreamCigCaptureParams, c_void,
};

use crate::books::Books;
use crate::deferred::Stream;
use crate::guard::{Call, Verdict};

pub unsafe fn begin(call: &Call<'_>, stream: CUstream, _mode: CUstreamCaptureMode) -> Verdict {
    begin_in(call, stream)
}

pub unsafe fn begin_v1(call: &Call<'_>, stream: CUstream) -> Verdict {
    begin_in(call, stream)
}

pub unsafe fn begin_to_cig(
    call: &Call<'_>,
    stream: CUstream,
    _parameters: *mut CUstreamCigCaptureParams,
) -> Verdict {
    begin_in(call, stream)
}

pub unsafe fn begin_to_graph(
    call: &Call<'_>,
    stream: CUstream,
    _graph: CUgraph,
    _dependencies: *const CUgraphNode,
    _data: *const CUgraphEdgeData,
    _count: usize,
    _mode: CUstreamCaptureMode,
) -> Verdict {
    begin_in(call, stream)
}

pub unsafe fn begin_again(
    call: &Call<'_>,
    stream: CUstream,
    _mode: CUstreamCaptureMode,
    _graph: CUgraph,
    _callback: CUgraphRecaptureCallback,
    _data: *mut c_void,
) -> Verdict {
    begin_in(call, stream)
}

/// The stream's context; the current one where the driver cannot say.
fn context_of(call: &Call<'_>, books: &Books, stream: CUstream) -> usize {
    let mut context: CUcontext = null_mut();
    // SAFETY: the driver writes one handle; it judges the stream itself.
    let asked = unsafe { call.driver.cuStreamGetCtx(call.stream_api, stream, &mut context) };
    match asked {
        Ok(()) => context as usize,
        Err(_) => books.current(call).map_or(0, |context| context as usize),
    }
}

fn begin_in(call: &Call<'_>, stream: CUstream) -> Verdict {
    let books = call.books_if_attached()?;
    let context = context_of(call, books, stream);
    let captures = &books.recycler.captures;
    captures.begin();
    if let Err(error) = call.pass() {
        captures.failed();
        return Err(error.into());
    }
    captures.begun(Stream::of(stream, call.stream_api, context), context);
    Ok(())
}

pub unsafe fn end(call: &Call<'_>, stream: CUstream, _graph: *mut CUgraph) -> Verdict {
    end_in(call, stream)
}

pub unsafe fn end_to_cig(call: &Call<'_>, stream: CUstream) -> Verdict {
    end_in(call, stream)
}

/// A capture that was spoilt ends with an error; one ended by the wrong thread goes on. The driver knows.
fn end_in(call: &Call<'_>, stream: CUstream) -> Verdict {
    let books = call.books_if_attached()?;
    let result = call.pass();
    let mut status: CUstreamCaptureStatus = 0;
    // SAFETY: the driver writes one number; it judges the handle itself.
    let asked = unsafe {
        call.driver
            .cuStreamIsCapturing(call.stream_api, stream, &mut status)
    };
    if asked.is_ok() && status == 0 {
        let context = context_of(call, books, stream);
        let captures = &books.recycler.captures;
        captures.ended(Stream::of(stream, call.stream_api, context));
    }
    Ok(result?)
}
