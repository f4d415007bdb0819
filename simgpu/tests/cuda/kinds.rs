//! Launches that are more than a kernel on its own: cooperative ones, and those that meet others.

use crate::harness::{begin, cu, on_a_node};
use crate::modules::{function, load};
use driver::CudaError;
use driver::abi::*;
use std::ptr::null_mut;

const QUIET: [&str; 6] = ["--noise", "off", "--costs", "off", "--devices", "h200:2"];

fn event(stream: CUstream) -> CUevent {
    let mut event = null_mut();
    cu!(cuEventCreate(&mut event, 0)).expect("event");
    cu!(cuEventRecord(event, stream)).expect("record");
    event
}

fn stream() -> CUstream {
    let mut stream = null_mut();
    cu!(cuStreamCreate(&mut stream, 1)).expect("stream");
    stream
}

/// Milliseconds of device time.
fn between(start: CUevent, end: CUevent) -> f32 {
    cu!(cuEventSynchronize(end)).expect("wait");
    let mut milliseconds = 0.0;
    cu!(cuEventElapsedTime_v2(&mut milliseconds, start, end)).expect("elapsed");
    milliseconds
}

const MEET: &str = ".version 8.0 .target sm_75
    .visible .entry sim_meet_ms_20(.param .u64 key, .param .u32 parties) { ret; }
    .visible .entry sim_spin_ms_20() { ret; }
    .visible .entry sim_spin_ms_40() { ret; }";

fn meet(function: CUfunction, stream: CUstream, parties: u32) -> driver::CuResult {
    let (mut key, mut parties) = (5u64, parties);
    let mut arguments: [*mut c_void; 2] = [(&raw mut key).cast(), (&raw mut parties).cast()];
    let arguments = arguments.as_mut_ptr();
    cu!(cuLaunchKernel(
        function,
        1,
        1,
        1,
        32,
        1,
        1,
        0,
        stream,
        arguments,
        null_mut()
    ))
}

on_a_node!(kernels_that_meet_end_together, QUIET, || {
    begin();
    let module = load(MEET).expect("PTX");
    let party = function(module, "sim_meet_ms_20").expect("kernel");
    let (a, b) = (stream(), stream());
    let start = event(a);
    meet(party, a, 2).expect("launch");
    let first = event(a);
    let long = function(module, "sim_spin_ms_40").expect("kernel");
    let none = null_mut();
    cu!(cuLaunchKernel(long, 1, 1, 1, 32, 1, 1, 0, b, none, null_mut())).expect("launch");
    meet(party, b, 2).expect("launch");
    let second = event(b);
    assert_eq!(between(first, second), 0.0);
    assert!(between(start, first) >= 60.0, "it waits for its partner");
    assert_eq!(meet(party, a, 0), Err(CudaError::INVALID_VALUE));
    assert_eq!(
        cu!(cuLaunchKernel(party, 1, 1, 1, 32, 1, 1, 0, a, none, null_mut())),
        Err(CudaError::INVALID_VALUE),
        "nobody said whom it meets"
    );
});

on_a_node!(a_cooperative_launch_waits_for_room_for_all_of_it, QUIET, || {
    begin();
    let module = load(MEET).expect("PTX");
    let kernel = function(module, "sim_spin_ms_20").expect("kernel");
    let (a, b) = (stream(), stream());
    let none = null_mut();
    let start = event(a);
    cu!(cuLaunchKernel(
        kernel,
        1,
        1,
        1,
        1024,
        1,
        1,
        0,
        a,
        none,
        null_mut()
    ))
    .expect("launch");
    // Two blocks of 1,024 threads fit an SM: the whole device.
    cu!(cuLaunchCooperativeKernel(
        kernel, 264, 1, 1, 1024, 1, 1, 0, b, none
    ))
    .expect("launch");
    let end = event(b);
    let both = between(start, end);
    assert!(both >= 40.0, "{both}: it began beside the first");
    assert_eq!(
        cu!(cuLaunchCooperativeKernel(
            kernel, 265, 1, 1, 1024, 1, 1, 0, b, none
        )),
        Err(CudaError::COOPERATIVE_LAUNCH_TOO_LARGE)
    );
});
