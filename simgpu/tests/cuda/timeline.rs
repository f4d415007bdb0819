//! Streams and events: device time, order, waiting.

use crate::harness::begin;
use crate::harness::{cu, on_a_node};
use crate::modules::kernel;
use driver::CudaError;
use driver::abi::*;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

pub const QUIET: [&str; 4] = ["--noise", "off", "--costs", "off"];

pub fn stream(flags: u32) -> CUstream {
    let mut stream = null_mut();
    cu!(cuStreamCreate(&mut stream, flags)).expect("stream");
    stream
}

pub fn event() -> CUevent {
    let mut event = null_mut();
    cu!(cuEventCreate(&mut event, 0)).expect("event");
    event
}

pub fn launch(function: CUfunction, stream: CUstream) {
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
        null_mut(),
        null_mut()
    ))
    .expect("launch");
}

pub fn recorded(stream: CUstream) -> CUevent {
    let event = event();
    cu!(cuEventRecord(event, stream)).expect("record");
    event
}

/// Microseconds of device time between two events.
pub fn between(start: CUevent, end: CUevent) -> f32 {
    cu!(cuEventSynchronize(start)).expect("wait");
    cu!(cuEventSynchronize(end)).expect("wait");
    let mut milliseconds = 0.0;
    cu!(cuEventElapsedTime_v2(&mut milliseconds, start, end)).expect("elapsed");
    milliseconds * 1000.0
}

on_a_node!(a_kernel_takes_what_its_name_says, QUIET, || {
    begin();
    let kernel = kernel("sim_spin_us_500");
    let stream = stream(1);
    // Queued behind the first, so that the gap between the calls does not count.
    launch(kernel, stream);
    let start = recorded(stream);
    launch(kernel, stream);
    launch(kernel, stream);
    assert_eq!(between(start, recorded(stream)), 1000.0);
});

on_a_node!(
    the_legacy_stream_and_blocking_streams_wait_for_each_other,
    QUIET,
    || {
        begin();
        let long = kernel("sim_spin_ms_20");
        let blocking = stream(0);
        launch(long, blocking);
        let start = recorded(blocking);
        launch(long, null_mut());
        let middle = recorded(null_mut());
        launch(long, blocking);
        let end = recorded(blocking);
        assert_eq!(between(start, middle), 20_000.0, "the legacy stream came after");
        assert_eq!(
            between(middle, end),
            20_000.0,
            "and the blocking stream after that"
        );
    }
);

on_a_node!(a_non_blocking_stream_goes_its_own_way, QUIET, || {
    begin();
    let long = kernel("sim_spin_ms_50");
    let (own, blocking) = (stream(1), stream(0));
    let start = recorded(own);
    launch(long, null_mut());
    launch(long, own);
    let end = recorded(own);
    launch(long, blocking);
    let last = recorded(blocking);
    let beside = between(start, end);
    assert!((50_000.0..100_000.0).contains(&beside), "{beside}");
    let behind = between(start, last);
    assert!(behind >= 100_000.0, "{behind}");
});

on_a_node!(each_thread_has_a_default_stream_of_its_own, QUIET, || {
    let context = begin() as usize;
    let id = || {
        let mut id = 0;
        cu!(cuStreamGetId(2 as CUstream, &mut id)).expect("id");
        let mut twin = 0;
        cu!(cuStreamGetId_ptsz(null_mut(), &mut twin)).expect("id");
        assert_eq!(id, twin);
        id
    };
    let here = id();
    assert_eq!(here, id());
    let there = std::thread::spawn(move || {
        cu!(cuCtxSetCurrent(context as CUcontext)).expect("set");
        id()
    });
    assert_ne!(here, there.join().expect("thread"));
    let mut legacy = 0;
    cu!(cuStreamGetId(null_mut(), &mut legacy)).expect("id");
    assert_ne!(here, legacy);
});

on_a_node!(events_are_not_ready_before_their_work, QUIET, || {
    begin();
    let own = stream(1);
    let never = event();
    assert_eq!(
        cu!(cuEventQuery(never)),
        Ok(()),
        "an event nobody recorded is complete"
    );
    let start = recorded(own);
    launch(kernel("sim_spin_ms_200"), own);
    let end = recorded(own);
    assert_eq!(cu!(cuEventQuery(end)), Err(CudaError::NOT_READY));
    assert_eq!(cu!(cuStreamQuery(own)), Err(CudaError::NOT_READY));
    let mut elapsed = 0.0;
    assert_eq!(
        cu!(cuEventElapsedTime(&mut elapsed, start, end)),
        Err(CudaError::NOT_READY)
    );
    assert_eq!(
        cu!(cuEventElapsedTime(&mut elapsed, never, end)),
        Err(CudaError::INVALID_HANDLE)
    );
    let other = stream(1);
    cu!(cuStreamWaitEvent(other, end, 0)).expect("wait");
    let after = recorded(other);
    assert_eq!(between(end, after), 0.0, "a wait ends when the event does");
    assert_eq!(cu!(cuStreamQuery(own)), Ok(()));
    let mut timeless = null_mut();
    cu!(cuEventCreate(&mut timeless, 2)).expect("event");
    cu!(cuEventRecord(timeless, own)).expect("record");
    cu!(cuEventSynchronize(timeless)).expect("wait");
    assert_eq!(
        cu!(cuEventElapsedTime(&mut elapsed, timeless, end)),
        Err(CudaError::INVALID_HANDLE)
    );
    assert_eq!(
        cu!(cuEventCreate(&mut timeless, 4)),
        Err(CudaError::INVALID_VALUE),
        "shared with timing"
    );
});

on_a_node!(callbacks_run_in_order_on_another_thread, QUIET, || {
    static SEEN: AtomicU32 = AtomicU32::new(0);
    extern "C" fn first(_: *mut c_void) {
        assert_eq!(SEEN.fetch_add(1, Ordering::SeqCst), 0);
    }
    extern "C" fn second(_: CUstream, status: u32, user: *mut c_void) {
        assert_eq!((status, user as usize), (0, 42));
        assert_eq!(SEEN.fetch_add(1, Ordering::SeqCst), 1);
    }
    begin();
    let own = stream(0);
    launch(kernel("sim_spin_us_500"), own);
    cu!(cuLaunchHostFunc(own, first as *mut c_void, null_mut())).expect("host function");
    cu!(cuStreamAddCallback(
        own,
        second as *mut c_void,
        42 as *mut c_void,
        0
    ))
    .expect("callback");
    cu!(cuStreamSynchronize(own)).expect("wait");
    assert_eq!(SEEN.load(Ordering::SeqCst), 2);
    assert_eq!(
        cu!(cuLaunchHostFunc(own, null_mut(), null_mut())),
        Err(CudaError::INVALID_VALUE)
    );
});

on_a_node!(stale_and_foreign_handles_are_refused, QUIET, || {
    begin();
    let own = stream(1);
    let bad = Err(CudaError::INVALID_HANDLE);
    cu!(cuStreamDestroy_v2(own)).expect("destroy");
    assert_eq!(cu!(cuStreamDestroy_v2(own)), bad);
    assert_eq!(cu!(cuStreamSynchronize(own)), bad);
    for default in [0, 1, 2] {
        assert_eq!(cu!(cuStreamDestroy_v2(default as CUstream)), bad);
    }
    assert_eq!(cu!(cuEventRecord(0x77 as CUevent, null_mut())), bad);
    assert_eq!(cu!(cuStreamQuery(0x1230 as CUstream)), bad);
    assert_eq!(
        cu!(cuStreamCreate(&mut null_mut(), 7)),
        Err(CudaError::INVALID_VALUE)
    );
    let mut second = null_mut();
    let event = event();
    cu!(cuCtxCreate_v2(&mut second, 0, 0)).expect("create");
    let there = stream(0);
    assert_eq!(cu!(cuEventRecord(event, there)), bad, "of another context");
    cu!(cuCtxDestroy_v2(second)).expect("destroy");
    assert_eq!(
        cu!(cuStreamSynchronize(there)),
        bad,
        "streams die with their context"
    );
});

on_a_node!(null_timing_completes_at_once, ["--timing", "null"], || {
    begin();
    let own = stream(0);
    let kernel = kernel("sim_spin_ms_500");
    for _ in 0..100 {
        launch(kernel, own);
        launch(kernel, null_mut());
    }
    assert_eq!(cu!(cuStreamQuery(own)), Ok(()));
    let end = recorded(own);
    assert_eq!(cu!(cuEventQuery(end)), Ok(()));
});
