//! Graphs whose nodes work in several contexts, on one device or two.

use crate::graphs::{add_kernel, add_set, bytes, graph, instantiate};
use crate::harness::{alloc, begin, cu, on_a_node};
use crate::modules::kernel;
use crate::timeline::{between, recorded, stream};
use driver::abi::*;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

const TWO: [&str; 6] = ["--noise", "off", "--costs", "off", "--devices", "h200:2"];

static OPEN: AtomicBool = AtomicBool::new(false);

extern "C" fn gate(_: *mut c_void) {
    while !OPEN.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
}

/// The primary context of the second device.
fn second() -> CUcontext {
    let mut context = null_mut();
    cu!(cuDevicePrimaryCtxRetain(&mut context, 1)).expect("retain");
    context
}

fn event(flags: u32) -> CUevent {
    let mut event = null_mut();
    cu!(cuEventCreate(&mut event, flags)).expect("event");
    event
}

on_a_node!(a_node_runs_on_its_own_device, TWO, || {
    let (here, there) = (begin(), second());
    let graph = graph();
    let near = add_kernel(graph, &[], kernel("sim_spin_us_3000"));
    cu!(cuCtxSetCurrent(there)).expect("set");
    let memory = alloc(4096);
    let [before, after] = [0; 2].map(|_| event(0));
    let record = |from: &[CUgraphNode], event| {
        let mut node = null_mut();
        let made = cu!(cuGraphAddEventRecordNode(
            &mut node,
            graph,
            from.as_ptr(),
            from.len(),
            event
        ));
        made.map(|()| node).expect("record node")
    };
    let first = record(&[near], before);
    let far = add_kernel(graph, &[first], kernel("sim_spin_us_5000"));
    let set = add_set(graph, &[far], memory, 7, 64);
    let last = record(&[set], after);
    cu!(cuCtxSetCurrent(here)).expect("set");
    add_kernel(graph, &[last], kernel("sim_spin_us_3000"));
    let exec = instantiate(graph, 0).expect("exec");
    let on = stream(1);
    for _ in 0..2 {
        let start = recorded(on);
        cu!(cuGraphLaunch(exec, on)).expect("launch");
        let took = between(start, recorded(on));
        assert!(took >= 11_000.0, "{took}: one after the other");
        cu!(cuCtxSetCurrent(there)).expect("set");
        let far = between(before, after);
        assert!(far >= 5_000.0, "{far}");
        assert_eq!(bytes(memory, 2), [7; 2]);
        cu!(cuCtxSetCurrent(here)).expect("set");
    }
});

// The first device is busy meanwhile, and the graph has nothing to do there.
on_a_node!(a_capture_forked_to_another_device_runs_there, TWO, || {
    let (here, there) = (begin(), second());
    let (on, busy) = (stream(1), stream(1));
    let fork = event(2);
    let long = kernel("sim_spin_ms_40");
    cu!(cuCtxSetCurrent(there)).expect("set");
    let (other, join) = (stream(1), event(2));
    let short = kernel("sim_spin_us_500");
    let launch = |function, blocks, stream| {
        let none = null_mut();
        cu!(cuLaunchKernel(
            function,
            blocks,
            1,
            1,
            1024,
            1,
            1,
            0,
            stream,
            none,
            null_mut()
        ))
        .expect("launch");
    };
    cu!(cuCtxSetCurrent(here)).expect("set");
    cu!(cuStreamBeginCapture_v2(on, 2)).expect("begin");
    cu!(cuEventRecord(fork, on)).expect("record");
    cu!(cuCtxSetCurrent(there)).expect("set");
    cu!(cuStreamWaitEvent(other, fork, 0)).expect("fork");
    launch(short, 264, other);
    cu!(cuEventRecord(join, other)).expect("record");
    cu!(cuCtxSetCurrent(here)).expect("set");
    cu!(cuStreamWaitEvent(on, join, 0)).expect("join");
    let mut graph = null_mut();
    cu!(cuStreamEndCapture(on, &mut graph)).expect("a graph");
    let exec = instantiate(graph, 0).expect("exec");
    // Both begin when all is queued. The other kernel takes all of the first device.
    for stream in [busy, on] {
        cu!(cuLaunchHostFunc(stream, gate as *mut c_void, null_mut())).expect("host function");
    }
    launch(long, 264, busy);
    let start = recorded(on);
    cu!(cuGraphLaunch(exec, on)).expect("launch");
    let end = recorded(on);
    OPEN.store(true, Ordering::SeqCst);
    let took = between(start, end);
    assert!(took >= 500.0, "{took}");
    assert!(took < 35_000.0, "{took}: behind the other kernel");
});
