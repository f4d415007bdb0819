//! Launches that are more than a kernel on its own: cooperative ones, and those that meet others.

use crate::harness::{another, begin, cu, finished, on_a_node, part};
use crate::modules::{function, load};
use driver::CudaError;
use driver::abi::*;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};

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

static OPEN: AtomicBool = AtomicBool::new(false);

/// Holds what comes later on the stream until `OPEN`, so that it does not depend on the host.
fn gate(stream: CUstream) {
    extern "C" fn wait(_: *mut c_void) {
        while !OPEN.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
    cu!(cuLaunchHostFunc(stream, wait as *mut c_void, null_mut())).expect("host function");
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

on_a_node!(an_urgent_stream_overtakes, QUIET, || {
    begin();
    let module = load(MEET).expect("PTX");
    let kernel = function(module, "sim_spin_ms_40").expect("kernel");
    let (mut least, mut greatest) = (0, 0);
    cu!(cuCtxGetStreamPriorityRange(&mut least, &mut greatest)).expect("range");
    let (mut calm, mut urgent) = (null_mut(), null_mut());
    cu!(cuStreamCreateWithPriority(&mut calm, 1, least)).expect("stream");
    cu!(cuStreamCreateWithPriority(&mut urgent, 1, greatest)).expect("stream");
    let held = stream();
    gate(held);
    let begin = event(held);
    let none = null_mut();
    for stream in [calm, urgent] {
        cu!(cuStreamWaitEvent(stream, begin, 0)).expect("wait");
        cu!(cuLaunchKernel(
            kernel,
            264,
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
    }
    let (later, sooner) = (event(calm), event(urgent));
    OPEN.store(true, Ordering::SeqCst);
    let ahead = between(sooner, later);
    assert_eq!(ahead, 40.0, "each takes the whole device for 40 ms");
});

const MPS: [&str; 8] = [
    "--noise",
    "off",
    "--costs",
    "off",
    "--sharing",
    "mps",
    "--interference",
    "off",
];

on_a_node!(
    a_process_of_mps_holds_its_part_of_the_multiprocessors,
    MPS,
    || {
        if part() == "first" {
            let times = ["100", "50", "33.3"].map(|percent| {
                let name = "kinds::a_process_of_mps_holds_its_part_of_the_multiprocessors";
                let mut command = another(name, "limited");
                command.env("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent);
                let told = finished(command.spawn().expect("starts"));
                let line = told.lines().find_map(|line| line.split_once("took "));
                line.expect("a time").1.trim().parse::<f32>().expect("a number")
            });
            // 66 and 44 of 132.
            return assert_eq!(times, [20.0, 40.0, 132.0 * 20.0 / 44.0]);
        }
        begin();
        let module = load(MEET).expect("PTX");
        let kernel = function(module, "sim_spin_ms_20").expect("kernel");
        let stream = stream();
        let whole = || {
            let none = null_mut();
            cu!(cuLaunchKernel(
                kernel,
                264,
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
            event(stream)
        };
        gate(stream);
        let (start, end) = (whole(), whole());
        OPEN.store(true, Ordering::SeqCst);
        println!("took {}", between(start, end));
    }
);
