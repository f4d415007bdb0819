//! Kernels that break their context: the driver's code from every call on it, and from no other.

use crate::harness::{alloc, begin, cu, on_a_node};
use crate::modules::kernel;
use driver::CudaError;
use driver::abi::*;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

fn launch(function: CUfunction, stream: CUstream) -> driver::CuResult {
    let none = null_mut();
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
        none,
        null_mut()
    ))
}

on_a_node!(
    a_fault_is_told_when_it_happens_and_for_ever_after,
    ["--costs", "off"],
    || {
        static STATUS: AtomicU32 = AtomicU32::new(77);
        extern "C" fn callback(_: CUstream, status: u32, _: *mut c_void) {
            STATUS.store(status, Ordering::SeqCst);
        }
        static OPEN: AtomicBool = AtomicBool::new(false);
        extern "C" fn gate(_: *mut c_void) {
            while !OPEN.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        }
        extern "C" fn never(_: *mut c_void) {
            STATUS.store(99, Ordering::SeqCst);
        }
        let primary = begin();
        let memory = alloc(4096);
        let bad = Err(CudaError::ILLEGAL_ADDRESS);
        let fault = kernel("sim_fault_700");
        let fine = kernel("sim_spin_us_100");
        let mut stream = null_mut();
        cu!(cuStreamCreate(&mut stream, 1)).expect("stream");
        assert_eq!(launch(fine, stream), Ok(()));
        assert_eq!(cu!(cuStreamSynchronize(stream)), Ok(()));
        // Until everything is queued, nothing happens.
        cu!(cuLaunchHostFunc(stream, gate as *mut c_void, null_mut())).expect("host function");
        assert_eq!(launch(fault, stream), Ok(()), "the launch itself is fine");
        cu!(cuStreamAddCallback(
            stream,
            callback as *mut c_void,
            null_mut(),
            0
        ))
        .expect("callback");
        cu!(cuLaunchHostFunc(stream, never as *mut c_void, null_mut())).expect("host function");
        OPEN.store(true, Ordering::SeqCst);
        assert_eq!(cu!(cuStreamSynchronize(stream)), bad);
        // The thread of callbacks may come later than the one that waited.
        let watchdog = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while STATUS.load(Ordering::SeqCst) == 0 {
            assert!(std::time::Instant::now() < watchdog, "a callback is told");
            std::thread::yield_now();
        }
        assert_eq!(
            STATUS.load(Ordering::SeqCst),
            700,
            "callbacks are told, host functions not called"
        );
        assert_eq!(cu!(cuCtxSynchronize()), bad);
        assert_eq!(launch(fine, stream), bad);
        assert_eq!(cu!(cuMemAlloc_v2(&mut 0, 4096)), bad);
        let mut word = 0u64;
        assert_eq!(cu!(cuMemcpyDtoH_v2((&raw mut word).cast(), memory, 8)), bad);
        let mut event = null_mut();
        assert_eq!(cu!(cuEventCreate(&mut event, 0)), bad);
        // Another context of the process goes on, and gets a number of its own.
        let mut second = null_mut();
        cu!(cuCtxCreate_v2(&mut second, 0, 0)).expect("create");
        let fine = kernel("sim_spin_us_100");
        assert_eq!(launch(fine, null_mut()), Ok(()));
        assert_eq!(cu!(cuCtxSynchronize()), Ok(()));
        let timeout = kernel("sim_fault_702");
        assert_eq!(launch(timeout, null_mut()), Ok(()));
        assert_eq!(cu!(cuCtxSynchronize()), Err(CudaError::LAUNCH_TIMEOUT));
        cu!(cuCtxDestroy_v2(second)).expect_err("tells of it");
        cu!(cuCtxCreate_v2(&mut second, 0, 0)).expect("create");
        assert_eq!(cu!(cuCtxSynchronize()), Ok(()), "a new context is whole");
        cu!(cuCtxSetCurrent(primary)).expect("set");
        assert_eq!(cu!(cuCtxSynchronize()), bad, "the old one is not");
    }
);

on_a_node!(a_faults_launch_is_counted_by_kernel, ["--timing", "null"], || {
    begin();
    let fault = kernel("x_sim_fault_719_x");
    let fine = kernel("fine");
    assert_eq!(launch(fine, null_mut()), Ok(()));
    assert_eq!(launch(fault, null_mut()), Ok(()));
    assert_eq!(launch(fine, null_mut()), Err(CudaError::LAUNCH_FAILED));
    assert_eq!(cu!(cuCtxSynchronize()), Err(CudaError::LAUNCH_FAILED));
});
