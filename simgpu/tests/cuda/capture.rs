//! Stream capture: what becomes of calls, how it spreads and ends, and what it forbids.

use crate::graphs::{bytes, graph, instantiate, kind, nodes};
use crate::harness::{alloc, begin, cu, on_a_node};
use crate::modules::kernel;
use crate::timeline::{event, launch, stream};
use driver::CudaError;
use driver::abi::*;
use std::ptr::{null, null_mut};

const GLOBAL: u32 = CU_STREAM_CAPTURE_MODE_GLOBAL;
const THREAD_LOCAL: u32 = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
const RELAXED: u32 = CU_STREAM_CAPTURE_MODE_RELAXED;
const NONE: u32 = CU_STREAM_CAPTURE_STATUS_NONE;
const ACTIVE: u32 = CU_STREAM_CAPTURE_STATUS_ACTIVE;
const INVALIDATED: u32 = CU_STREAM_CAPTURE_STATUS_INVALIDATED;

fn start(stream: CUstream, mode: u32) {
    cu!(cuStreamBeginCapture_v2(stream, mode)).expect("begin");
}

fn end(stream: CUstream) -> Result<CUgraph, CudaError> {
    let mut graph = 1 as CUgraph;
    let ended = cu!(cuStreamEndCapture(stream, &mut graph));
    if ended.is_err() {
        assert!(graph.is_null() || graph == 1 as CUgraph);
    }
    ended.map(|()| graph)
}

fn status(stream: CUstream) -> u32 {
    let mut status = 9;
    cu!(cuStreamIsCapturing(stream, &mut status)).expect("status");
    status
}

/// Runs on another thread, in the same context.
fn elsewhere<T: Send>(context: CUcontext, body: impl FnOnce() -> T + Send) -> T {
    let context = context as usize;
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            cu!(cuCtxSetCurrent(context as CUcontext)).expect("current");
            body()
        });
        thread.join().expect("no panic")
    })
}

on_a_node!(what_is_captured_is_done_at_each_launch_and_not_before, [], || {
    begin();
    let (from, to) = (alloc(64), alloc(64));
    let on = stream(1);
    start(on, GLOBAL);
    assert_eq!(status(on), ACTIVE);
    cu!(cuMemsetD8Async(from, 5, 64, on)).expect("set");
    cu!(cuMemcpyDtoDAsync_v2(to, from, 64, on)).expect("copy");
    launch(kernel("k"), on);
    extern "C" fn nothing(_: *mut c_void) {}
    cu!(cuLaunchHostFunc(on, nothing as *mut c_void, null_mut())).expect("host");
    let graph = end(on).expect("a graph");
    assert_eq!(status(on), NONE);
    let kinds: Vec<u32> = nodes(graph).into_iter().map(kind).collect();
    let expected = [
        CU_GRAPH_NODE_TYPE_MEMSET,
        CU_GRAPH_NODE_TYPE_MEMCPY,
        CU_GRAPH_NODE_TYPE_KERNEL,
        CU_GRAPH_NODE_TYPE_HOST,
    ];
    assert_eq!(kinds, expected);
    let mut edges = 0;
    cu!(cuGraphGetEdges(graph, null_mut(), null_mut(), &mut edges)).expect("edges");
    assert_eq!(edges, 3, "one after the other");
    assert_eq!(bytes(to, 64), [0; 64]);
    let exec = instantiate(graph, 0).expect("exec");
    for value in [1, 2] {
        cu!(cuMemsetD8_v2(to, value, 64)).expect("set");
        cu!(cuGraphLaunch(exec, on)).expect("launch");
        cu!(cuStreamSynchronize(on)).expect("wait");
        assert_eq!(bytes(to, 64), [5; 64]);
    }
});

on_a_node!(a_capture_spreads_by_events_and_must_be_joined, [], || {
    begin();
    let (first, second) = (stream(1), stream(1));
    let (fork, join) = (event(), event());
    let k = kernel("k");
    start(first, GLOBAL);
    launch(k, first);
    cu!(cuEventRecord(fork, first)).expect("record");
    cu!(cuStreamWaitEvent(second, fork, 0)).expect("fork");
    assert_eq!(status(second), ACTIVE);
    launch(k, second);
    launch(k, first);
    cu!(cuEventRecord(join, second)).expect("record");
    cu!(cuStreamWaitEvent(first, join, 0)).expect("join");
    launch(k, first);
    assert_eq!(end(second).err(), Some(CudaError::STREAM_CAPTURE_UNMATCHED));
    assert_eq!(end(first).err(), Some(CudaError::STREAM_CAPTURE_INVALIDATED));

    let again = |joined: bool| {
        start(first, GLOBAL);
        launch(k, first);
        cu!(cuEventRecord(fork, first)).expect("record");
        cu!(cuStreamWaitEvent(second, fork, 0)).expect("fork");
        launch(k, second);
        launch(k, first);
        cu!(cuEventRecord(join, second)).expect("record");
        if joined {
            cu!(cuStreamWaitEvent(first, join, 0)).expect("join");
            launch(k, first);
        }
        end(first)
    };
    let graph = again(true).expect("joined");
    let all = nodes(graph);
    let mut count = 4;
    let mut before = [null_mut(); 4];
    cu!(cuGraphNodeGetDependencies(
        all[3],
        before.as_mut_ptr(),
        &mut count
    ))
    .expect("edges");
    before[..count].sort();
    let mut both = [all[1], all[2]];
    both.sort();
    assert_eq!((count, &before[..2]), (2, &both[..]));
    assert_eq!(again(false).err(), Some(CudaError::STREAM_CAPTURE_UNJOINED));
    assert_eq!((status(first), status(second)), (NONE, NONE));
    // An event that was last recorded in a capture says nothing outside of it, until it is recorded anew.
    assert_eq!(cu!(cuEventQuery(join)), Err(CudaError::CAPTURED_EVENT));
    assert_eq!(
        cu!(cuStreamWaitEvent(second, join, 0)),
        Err(CudaError::CAPTURED_EVENT)
    );
    cu!(cuEventRecord(join, second)).expect("record");
    cu!(cuEventSynchronize(join)).expect("wait");
});

on_a_node!(events_from_outside_and_of_other_captures_are_refused, [], || {
    begin();
    let (a, b) = (stream(1), stream(1));
    let outside = event();
    cu!(cuEventRecord(outside, a)).expect("record");
    start(a, GLOBAL);
    assert_eq!(
        cu!(cuStreamWaitEvent(a, outside, 0)),
        Err(CudaError::STREAM_CAPTURE_ISOLATION)
    );
    assert_eq!(status(a), INVALIDATED);
    assert_eq!(end(a).err(), Some(CudaError::STREAM_CAPTURE_INVALIDATED));

    // A wait for others outside is a node where the program says so.
    start(a, GLOBAL);
    cu!(cuStreamWaitEvent(a, outside, 1)).expect("external wait");
    cu!(cuEventRecordWithFlags(outside, a, 1)).expect("external record");
    let kinds: Vec<u32> = nodes(end(a).expect("a graph")).into_iter().map(kind).collect();
    assert_eq!(
        kinds,
        [CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_EVENT_RECORD]
    );

    start(a, RELAXED);
    start(b, RELAXED);
    let inside = event();
    cu!(cuEventRecord(inside, a)).expect("record");
    assert_eq!(
        cu!(cuStreamWaitEvent(b, inside, 0)),
        Err(CudaError::STREAM_CAPTURE_MERGE)
    );
    assert_eq!((status(a), status(b)), (INVALIDATED, INVALIDATED));
    assert!(end(a).is_err() && end(b).is_err());
});

on_a_node!(the_legacy_stream_cannot_be_used_beside_a_blocking_one, [], || {
    begin();
    assert_eq!(
        cu!(cuStreamBeginCapture_v2(null_mut(), GLOBAL)),
        Err(CudaError::STREAM_CAPTURE_UNSUPPORTED)
    );
    let (blocking, free) = (stream(0), stream(1));
    let to = alloc(64);
    start(free, RELAXED);
    cu!(cuMemsetD8_v2(to, 1, 64)).expect("nothing to do with it");
    assert_eq!(status(free), ACTIVE);
    end(free).expect("a graph");
    start(blocking, RELAXED);
    let mut told = 9;
    assert_eq!(
        cu!(cuStreamIsCapturing(null_mut(), &mut told)),
        Err(CudaError::STREAM_CAPTURE_IMPLICIT)
    );
    assert_eq!(status(blocking), ACTIVE, "asking does no harm");
    assert_eq!(
        cu!(cuMemsetD8_v2(to, 1, 64)),
        Err(CudaError::STREAM_CAPTURE_IMPLICIT)
    );
    assert_eq!(status(blocking), INVALIDATED);
    assert_eq!(
        cu!(cuMemsetD8Async(to, 1, 64, blocking)),
        Err(CudaError::STREAM_CAPTURE_INVALIDATED)
    );
    assert_eq!(end(blocking).err(), Some(CudaError::STREAM_CAPTURE_INVALIDATED));
    cu!(cuMemsetD8_v2(to, 1, 64)).expect("usable again");
});

on_a_node!(a_call_that_takes_effect_at_once_is_refused_by_mode, [], || {
    let context = begin();
    let on = stream(1);
    let taken = || {
        let mut pointer = 0;
        cu!(cuMemAlloc_v2(&mut pointer, 4096))
    };
    let refused = Err(CudaError::STREAM_CAPTURE_UNSUPPORTED);
    let other = event();
    // (mode of the capture, calls of its own thread refused, of another one refused)
    for (mode, own, others) in [
        (GLOBAL, true, true),
        (THREAD_LOCAL, true, false),
        (RELAXED, false, false),
    ] {
        for (by, is_refused) in [(true, own), (false, others)] {
            start(on, mode);
            let got = if by { taken() } else { elsewhere(context, taken) };
            assert_eq!(
                got,
                if is_refused { refused } else { Ok(()) },
                "mode {mode}, own {by}"
            );
            assert_eq!(status(on), if is_refused { INVALIDATED } else { ACTIVE });
            assert_eq!(end(on).is_err(), is_refused);
        }
    }
    // A thread that has set itself free is bound by none, but may not break what it captures.
    start(on, GLOBAL);
    let mut mode = RELAXED;
    cu!(cuThreadExchangeStreamCaptureMode(&mut mode)).expect("relaxed");
    assert_eq!(mode, GLOBAL);
    assert_eq!(taken(), Ok(()));
    assert_eq!(cu!(cuEventQuery(other)), Ok(()));
    assert_eq!(status(on), ACTIVE);
    assert_eq!(cu!(cuStreamSynchronize(on)), refused);
    assert_eq!(status(on), INVALIDATED);
    assert!(end(on).is_err());
    start(on, GLOBAL);
    cu!(cuEventRecord(other, on)).expect("record");
    assert_eq!(cu!(cuEventQuery(other)), Err(CudaError::CAPTURED_EVENT));
    assert!(end(on).is_err());
    cu!(cuThreadExchangeStreamCaptureMode(&mut mode)).expect("as before");
    assert_eq!(mode, RELAXED);
    start(on, RELAXED);
    assert_eq!(
        cu!(cuCtxSynchronize()),
        refused,
        "it would wait for the captured stream"
    );
    assert!(end(on).is_err());
    mode = 3;
    assert_eq!(
        cu!(cuThreadExchangeStreamCaptureMode(&mut mode)),
        Err(CudaError::INVALID_VALUE)
    );
});

on_a_node!(a_capture_ends_where_and_by_whom_it_began, [], || {
    let context = begin();
    let on = stream(1);
    assert_eq!(end(on).err(), Some(CudaError::ILLEGAL_STATE));
    start(on, THREAD_LOCAL);
    assert_eq!(
        cu!(cuStreamBeginCapture_v2(on, GLOBAL)),
        Err(CudaError::ILLEGAL_STATE)
    );
    let shared = on as usize;
    let ended = elsewhere(context, move || end(shared as CUstream).err());
    assert_eq!(ended, Some(CudaError::STREAM_CAPTURE_WRONG_THREAD));
    assert_eq!(status(on), ACTIVE);
    end(on).expect("a graph");
    start(on, RELAXED);
    let ended = elsewhere(context, move || {
        end(shared as CUstream).map(|graph| graph as usize)
    });
    assert!(ended.is_ok());
    assert_eq!(cu!(cuStreamBeginCapture_v2(on, 3)), Err(CudaError::INVALID_VALUE));
});

on_a_node!(a_stream_or_context_that_goes_takes_its_capture_along, [], || {
    let context = begin();
    let origin = stream(1);
    let (fork, join) = (event(), event());
    // A stream that took part may go, as cuda.core lets it, if its work was waited for.
    for joined in [true, false] {
        let member = stream(1);
        start(origin, GLOBAL);
        cu!(cuEventRecord(fork, origin)).expect("record");
        cu!(cuStreamWaitEvent(member, fork, 0)).expect("fork");
        launch(kernel("k"), member);
        if joined {
            cu!(cuEventRecord(join, member)).expect("record");
            cu!(cuStreamWaitEvent(origin, join, 0)).expect("join");
        }
        cu!(cuStreamDestroy_v2(member)).expect("destroy");
        launch(kernel("k"), origin);
        let unjoined = Some(CudaError::STREAM_CAPTURE_UNJOINED);
        assert_eq!(end(origin).err(), if joined { None } else { unjoined });
    }
    let alone = stream(1);
    start(alone, GLOBAL);
    cu!(cuStreamDestroy_v2(alone)).expect("destroy");
    alloc(4096); // Nothing is left that would forbid it.
    let mut other = null_mut();
    cu!(cuCtxCreate_v2(&mut other, 0, 0)).expect("context");
    let inside = stream(1);
    start(inside, GLOBAL);
    cu!(cuCtxDestroy_v2(other)).expect("destroy");
    cu!(cuCtxSetCurrent(context)).expect("current");
    alloc(4096);
});

on_a_node!(a_capture_tells_its_state_and_takes_new_dependencies, [], || {
    begin();
    let on = stream(1);
    let k = kernel("k");
    let (mut told, mut id, mut graph, mut list, mut count) = (9, 0, null_mut(), null(), 9);
    let mut ask = |id: &mut u64| {
        cu!(cuStreamGetCaptureInfo_v2(
            on, &mut told, id, &mut graph, &mut list, &mut count
        ))
        .expect("info");
        (told, graph, list, count)
    };
    assert_eq!(ask(&mut id).0, NONE);
    start(on, GLOBAL);
    launch(k, on);
    let (status, into, list, count) = ask(&mut id);
    assert_eq!((status, count), (ACTIVE, 1));
    let first = nodes(into)[0];
    // SAFETY: one node, as it says.
    assert_eq!(unsafe { *list }, first);
    assert_ne!(id, 0);
    // A node the program adds itself, and makes the next one depend on.
    let own = crate::graphs::add_empty(into, &[]).expect("a node of the program's");
    let mut set = [own];
    cu!(cuStreamUpdateCaptureDependencies(on, set.as_mut_ptr(), 1, 1)).expect("set");
    launch(k, on);
    let mut second = 0;
    assert_eq!(ask(&mut second).3, 1);
    assert_eq!(second, id);
    assert_eq!(
        cu!(cuGraphDestroy(into)),
        Err(CudaError::INVALID_VALUE),
        "not yet the program's"
    );
    let captured = end(on).expect("a graph: what the program took out need not be joined");
    assert_eq!(captured, into);
    let all = nodes(captured);
    let (mut before, mut number) = ([null_mut(); 2], 2);
    cu!(cuGraphNodeGetDependencies(
        all[2],
        before.as_mut_ptr(),
        &mut number
    ))
    .expect("edges");
    assert_eq!((number, before[0]), (1, own));
    assert_eq!(
        cu!(cuStreamUpdateCaptureDependencies(on, set.as_mut_ptr(), 1, 1)),
        Err(CudaError::ILLEGAL_STATE)
    );
    start(on, GLOBAL);
    ask(&mut second);
    assert_ne!(second, id, "each sequence has its own number");
    end(on).expect("empty");
});

on_a_node!(a_capture_goes_on_in_a_graph_that_is_there, [], || {
    begin();
    let on = stream(1);
    let into = graph();
    let first = crate::graphs::add_empty(into, &[]).expect("first");
    cu!(cuStreamBeginCaptureToGraph(on, into, &first, null(), 1, GLOBAL)).expect("begin");
    launch(kernel("k"), on);
    assert_eq!(end(on), Ok(into));
    let all = nodes(into);
    let (mut before, mut number) = ([null_mut(); 2], 2);
    cu!(cuGraphNodeGetDependencies(
        all[1],
        before.as_mut_ptr(),
        &mut number
    ))
    .expect("edges");
    assert_eq!((number, before[0]), (1, first));
    cu!(cuStreamBeginCaptureToGraph(on, into, null(), null(), 0, GLOBAL)).expect("begin");
    cu!(cuStreamSynchronize(on)).expect_err("illegal");
    assert!(end(on).is_err());
    assert_eq!(nodes(into).len(), 2, "the program's graph stays its own");
});

on_a_node!(a_launch_inside_a_capture_becomes_a_child, [], || {
    begin();
    let to = alloc(64);
    let on = stream(1);
    start(on, GLOBAL);
    cu!(cuMemsetD8Async(to, 6, 64, on)).expect("set");
    let exec = instantiate(end(on).expect("a graph"), 0).expect("exec");
    start(on, GLOBAL);
    cu!(cuGraphLaunch(exec, on)).expect("captured");
    let outer = end(on).expect("a graph");
    assert_eq!(kind(nodes(outer)[0]), CU_GRAPH_NODE_TYPE_GRAPH);
    assert_eq!(bytes(to, 1), [0]);
    let exec = instantiate(outer, 0).expect("exec");
    cu!(cuGraphLaunch(exec, on)).expect("launch");
    cu!(cuStreamSynchronize(on)).expect("wait");
    assert_eq!(bytes(to, 1), [6]);
});
