//! Executable graphs whose nodes allocate: the device gets their memory with the first launch or upload, and keeps it. Making
//! a graph, or its nodes by capture or by call, takes nothing. How the memory is charged is in `pools/graphs.rs`.
//!
//! Graph memory that the program frees outside of its graph is none of the books' pointers; the driver keeps it for the graph.
//!
//! Next: `hooks/sync.rs`.

use core::ptr::null_mut;
use std::collections::BTreeMap;

use driver::abi::{
    CU_GRAPH_NODE_TYPE_GRAPH, CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_MEM_LOCATION_TYPE_DEVICE,
    CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS, CUdevice,
    CUgraph, CUgraphExec, CUgraphNode, CUstream, c_char, c_ulonglong,
};
use driver::{CudaError, Driver, StreamApi};
use ledger::ring::{Kind, Reason};

use crate::books::Books;
use crate::guard::{Call, Otherwise, Verdict};
use crate::hooks::pool::is_capturing;
use crate::live::{AccountIndex, PAGE};
use crate::pools::Launching;
use crate::process::PROCESS;
use crate::relaxed::relaxed;

/// Graphs inside graphs are looked at this deep; the driver's own limit is lower.
const DEEPEST: u32 = 64;

pub unsafe fn instantiate(
    call: &Call<'_>,
    exec: *mut CUgraphExec,
    graph: CUgraph,
    _failed: *mut CUgraphNode,
    _log: *mut c_char,
    _size: usize,
) -> Verdict {
    // SAFETY: the caller vouches for the place of the handle.
    unsafe { make(call, exec, graph) }
}

pub unsafe fn instantiate_with_flags(
    call: &Call<'_>,
    exec: *mut CUgraphExec,
    graph: CUgraph,
    _flags: c_ulonglong,
) -> Verdict {
    // SAFETY: as above.
    unsafe { make(call, exec, graph) }
}

/// May upload at once. It would be refused for want of memory before its handle is known, so that a graph with memory is
/// entered under no handle first.
pub unsafe fn instantiate_with_params(
    call: &Call<'_>,
    exec: *mut CUgraphExec,
    graph: CUgraph,
    parameters: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
) -> Verdict {
    if exec.is_null() || parameters.is_null() {
        return Err(Otherwise::Forward);
    }
    // SAFETY: the driver reads the same word.
    let flags = unsafe { (&raw const (*parameters).flags).read() };
    if flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD == 0 {
        // SAFETY: as above.
        return unsafe { make(call, exec, graph) };
    }
    let books = call.books_if_attached()?;
    let needs = needs_of(call, books, graph)?;
    if needs.is_empty() {
        return Err(Otherwise::Forward);
    }
    // Nobody else's: the address of a variable of this call.
    let place = (&raw const needs) as usize;
    books.enter_graph(place, &needs);
    let made = uploaded(call, books, place, |driver| {
        // SAFETY: the driver just wrote it; the program is told that it got none.
        let _ = unsafe { driver.cuGraphExecDestroy(StreamApi::Legacy, exec.replace(null_mut())) };
    });
    if let Err(refused) = made {
        books.forget_graph(place);
        return Err(refused);
    }
    // SAFETY: the driver just wrote it.
    books.name_graph(place, unsafe { *exec } as usize);
    Ok(())
}

/// # Safety
/// The driver writes the handle.
unsafe fn make(call: &Call<'_>, exec: *mut CUgraphExec, graph: CUgraph) -> Verdict {
    if exec.is_null() {
        return Err(Otherwise::Forward);
    }
    let books = call.books_if_attached()?;
    let needs = needs_of(call, books, graph)?;
    if needs.is_empty() {
        return Err(Otherwise::Forward);
    }
    call.pass()?;
    // SAFETY: the driver just wrote it.
    books.enter_graph(unsafe { *exec } as usize, &needs);
    Ok(())
}

pub unsafe fn upload(call: &Call<'_>, exec: CUgraphExec, _stream: CUstream) -> Verdict {
    let books = call.books_if_attached()?;
    uploaded(call, books, exec as usize, |_| {})
}

/// Passes a call on that uploads. Should the driver add more than fits, it is undone: `undo` first, then the memory.
fn uploaded(call: &Call<'_>, books: &Books, exec: usize, undo: impl FnOnce(&Driver)) -> Verdict {
    let launching = books.begin_launch(call, exec)?.ok_or(Otherwise::Forward)?;
    let (result, refused) = pass(call, books, &launching);
    if !books.end_launch(call, exec, launching, result.is_ok()) && result.is_ok() {
        undo(call.driver);
        return Err(refuse(call, books, exec, refused));
    }
    Ok(result?)
}

type Refused = Option<(AccountIndex, u64)>;

fn pass(call: &Call<'_>, books: &Books, launching: &[Launching<'_>]) -> (Result<(), CudaError>, Refused) {
    let first = launching.first().map(Launching::account);
    let result = match first {
        Some((account, bytes)) => books.pass(call, account, bytes),
        None => call.pass(),
    };
    (result, first)
}

/// Takes back what an upload brought, and tells the daemon.
fn refuse(call: &Call<'_>, books: &Books, exec: usize, refused: Refused) -> Otherwise {
    books.undo_upload(call, exec);
    if let Some((account, bytes)) = refused {
        let reason = Kind::Refused(Reason::Cap);
        books.account(account).post(call.row, reason, bytes, 0);
    }
    Otherwise::Fail(CudaError::OUT_OF_MEMORY)
}

/// Launches of graphs are counted like those of kernels. What is launched cannot be undone: where the driver might add more
/// than fits, the graph is uploaded first.
pub unsafe fn launch(call: &Call<'_>, exec: CUgraphExec, stream: CUstream) -> Verdict {
    PROCESS.count_launch();
    let books = call.books_if_attached()?;
    let place = exec as usize;
    let mut launching = books.begin_launch(call, place)?.ok_or(Otherwise::Forward)?;
    if launching.iter().any(Launching::is_short) {
        if is_capturing(call, stream) {
            // Nothing is launched, and an upload would break the capture.
            books.end_launch(call, place, launching, false);
            return Err(Otherwise::Forward);
        }
        let refused = launching.first().map(Launching::account);
        // SAFETY: as the program's launch.
        let uploaded = relaxed(call.driver, || unsafe {
            call.driver.cuGraphUpload(call.stream_api, exec, stream)
        });
        let fits = books.end_launch(call, place, launching, uploaded.is_ok());
        uploaded?;
        if !fits {
            return Err(refuse(call, books, place, refused));
        }
        launching = books.begin_launch(call, place)?.ok_or(Otherwise::Forward)?;
    }
    let (result, _) = pass(call, books, &launching);
    books.end_launch(call, place, launching, result.is_ok());
    Ok(result?)
}

pub unsafe fn destroy(call: &Call<'_>, exec: CUgraphExec) -> Verdict {
    let books = call.books_if_attached()?;
    // Before the driver's, which may give the same handle to another thread's graph.
    let taken = books.take_graph(exec as usize).ok_or(Otherwise::Forward)?;
    if let Err(error) = call.pass() {
        books.put_graph_back(exec as usize, taken);
        return Err(error.into());
    }
    books.ended_graph(&taken);
    Ok(())
}

pub unsafe fn trim(call: &Call<'_>, device: CUdevice) -> Verdict {
    let books = call.books_if_attached()?;
    let pool = books.graph_pool(device).ok_or(Otherwise::Forward)?;
    books.trim_graphs(call, pool, None, || call.pass())?;
    books.refresh_pool(call, pool);
    Ok(())
}

type Needs = Vec<(CUdevice, AccountIndex, u64)>;

/// What the allocation nodes of a graph and its children take on each device that is charged.
///
/// # Errors
/// The driver's, which would answer the program's call alike.
fn needs_of(call: &Call<'_>, books: &Books, graph: CUgraph) -> Result<Needs, CudaError> {
    let mut sums = BTreeMap::new();
    match add_up(call.driver, graph, &mut sums, 0) {
        // A driver that cannot tell has no such nodes.
        Err(CudaError::NOT_FOUND) => return Ok(Needs::new()),
        other => other?,
    }
    let charged = |(device, bytes)| Some((device, books.of_device(call.driver, device).ok()?, bytes));
    Ok(sums.into_iter().filter_map(charged).collect())
}

fn add_up(
    driver: &Driver,
    graph: CUgraph,
    sums: &mut BTreeMap<CUdevice, u64>,
    depth: u32,
) -> Result<(), CudaError> {
    let api = StreamApi::Legacy;
    let mut count = 0;
    // SAFETY: the driver writes one number; it judges the handle itself.
    unsafe { driver.cuGraphGetNodes(api, graph, null_mut(), &mut count)? };
    let mut nodes: Vec<CUgraphNode> = vec![null_mut(); count];
    if count != 0 {
        // SAFETY: the driver writes no more than there is room for.
        unsafe { driver.cuGraphGetNodes(api, graph, nodes.as_mut_ptr(), &mut count)? };
    }
    for &node in nodes.iter().take(count) {
        let mut kind = 0;
        // SAFETY: a node the driver just told of; it writes one number.
        unsafe { driver.cuGraphNodeGetType(api, node, &mut kind)? };
        if kind == CU_GRAPH_NODE_TYPE_MEM_ALLOC {
            // SAFETY: a struct of integers and pointers, which the driver fills.
            let parameters = unsafe {
                let mut parameters: CUDA_MEM_ALLOC_NODE_PARAMS = core::mem::zeroed();
                driver.cuGraphMemAllocNodeGetParams(api, node, &mut parameters)?;
                parameters
            };
            let location = parameters.poolProps.location;
            if location.kind == CU_MEM_LOCATION_TYPE_DEVICE {
                let whole = (parameters.bytesize as u64).checked_next_multiple_of(PAGE);
                let sum = sums.entry(location.id).or_insert(0u64);
                *sum = sum.saturating_add(whole.unwrap_or(u64::MAX));
            }
        } else if kind == CU_GRAPH_NODE_TYPE_GRAPH && depth < DEEPEST {
            let mut child = null_mut();
            // SAFETY: as above; it writes one handle.
            unsafe { driver.cuGraphChildGraphNodeGetGraph(api, node, &mut child)? };
            add_up(driver, child, sums, depth + 1)?;
        }
    }
    Ok(())
}
