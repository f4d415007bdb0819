//! Contexts: the primary one, the stack, the dead.

use crate::harness::begin;
use crate::harness::{cu, on_a_node};
use driver::CudaError;
use driver::abi::*;
use std::ptr::null_mut;

fn current() -> CUcontext {
    let mut context = null_mut();
    cu!(cuCtxGetCurrent(&mut context)).expect("current");
    context
}

fn state() -> (u32, i32) {
    let (mut flags, mut active) = (77, 77);
    cu!(cuDevicePrimaryCtxGetState(0, &mut flags, &mut active)).expect("state");
    (flags, active)
}

on_a_node!(a_primary_context_lives_while_it_is_retained, [], || {
    cu!(cuInit(0)).expect("init");
    assert_eq!(state(), (0, 0), "asking does not wake it");
    cu!(cuDevicePrimaryCtxSetFlags_v2(0, 4)).expect("flags");
    let (mut first, mut second) = (null_mut(), null_mut());
    cu!(cuDevicePrimaryCtxRetain(&mut first, 0)).expect("retain");
    cu!(cuDevicePrimaryCtxRetain(&mut second, 0)).expect("retain");
    assert_eq!(first, second);
    assert_eq!(state().1, 1);
    assert_eq!(state().0 & 7, 4);
    cu!(cuCtxSetCurrent(first)).expect("set");
    assert_eq!(
        cu!(cuCtxDestroy_v2(first)),
        Err(CudaError::INVALID_CONTEXT),
        "not this way"
    );
    cu!(cuDevicePrimaryCtxRelease_v2(0)).expect("release");
    cu!(cuCtxSynchronize()).expect("still retained once");
    cu!(cuDevicePrimaryCtxRelease_v2(0)).expect("release");
    assert_eq!(state().1, 0);
    assert_eq!(cu!(cuCtxSynchronize()), Err(CudaError::CONTEXT_IS_DESTROYED));
    assert_eq!(
        cu!(cuDevicePrimaryCtxRelease_v2(0)),
        Err(CudaError::INVALID_CONTEXT)
    );
    cu!(cuDevicePrimaryCtxRetain(&mut second, 0)).expect("retain");
    cu!(cuCtxSetCurrent(second)).expect("set");
    cu!(cuCtxSynchronize()).expect("alive again");
    cu!(cuDevicePrimaryCtxReset_v2(0)).expect("reset");
    assert_eq!(cu!(cuCtxSynchronize()), Err(CudaError::CONTEXT_IS_DESTROYED));
});

on_a_node!(each_thread_has_a_stack_of_its_own, [], || {
    let primary = begin();
    let mut own = null_mut();
    cu!(cuCtxCreate_v4(&mut own, null_mut(), 0, 0)).expect("create");
    assert_eq!(current(), own, "a new context is pushed");
    let there = std::thread::spawn(|| current() as usize).join().expect("thread");
    assert_eq!(there, 0);
    cu!(cuCtxPushCurrent_v2(primary)).expect("push");
    assert_eq!(current(), primary);
    let mut popped = null_mut();
    cu!(cuCtxPopCurrent_v2(&mut popped)).expect("pop");
    assert_eq!(popped, primary);
    assert_eq!(current(), own);
    cu!(cuCtxDestroy_v2(own)).expect("destroy");
    assert_eq!(current(), primary, "destroying the top pops it");
    assert_eq!(cu!(cuCtxDestroy_v2(own)), Err(CudaError::CONTEXT_IS_DESTROYED));
    assert_eq!(
        cu!(cuCtxPushCurrent_v2(own)),
        Err(CudaError::CONTEXT_IS_DESTROYED)
    );
    assert_eq!(
        cu!(cuCtxPushCurrent_v2(0x1230 as CUcontext)),
        Err(CudaError::INVALID_CONTEXT)
    );
    cu!(cuCtxSetCurrent(null_mut())).expect("unbind");
    assert_eq!(cu!(cuCtxSynchronize()), Err(CudaError::INVALID_CONTEXT));
    assert_eq!(
        cu!(cuCtxPopCurrent_v2(&mut popped)),
        Err(CudaError::INVALID_CONTEXT)
    );
});

on_a_node!(limits_and_flags_are_kept_per_context, [], || {
    begin();
    let limit = |which| {
        let mut value = 0;
        cu!(cuCtxGetLimit(&mut value, which)).map(|()| value)
    };
    assert_eq!(limit(0), Ok(1024));
    cu!(cuCtxSetLimit(0, 2000)).expect("stack");
    assert_eq!(limit(0), Ok(2000));
    assert_eq!(cu!(cuCtxSetLimit(77, 1)), Err(CudaError::UNSUPPORTED_LIMIT));
    assert_eq!(limit(77), Err(CudaError::UNSUPPORTED_LIMIT));
    let mut own = null_mut();
    assert_eq!(
        cu!(cuCtxCreate_v2(&mut own, 3, 0)),
        Err(CudaError::INVALID_VALUE),
        "two ways to wait"
    );
    cu!(cuCtxCreate_v2(&mut own, 2, 0)).expect("create");
    assert_eq!(limit(0), Ok(1024));
    let mut flags = 0;
    cu!(cuCtxGetFlags(&mut flags)).expect("flags");
    assert_eq!(flags & 7, 2);
    let (mut least, mut greatest) = (7, 7);
    cu!(cuCtxGetStreamPriorityRange(&mut least, &mut greatest)).expect("range");
    assert!(greatest < least && least == 0);
});

on_a_node!(peers_reach_each_other_when_asked, ["--devices", "h100:2"], || {
    begin();
    let mut can = 0;
    cu!(cuDeviceCanAccessPeer(&mut can, 0, 1)).expect("can");
    assert_eq!(can, 1);
    cu!(cuDeviceCanAccessPeer(&mut can, 0, 0)).expect("can");
    assert_eq!(can, 0);
    let mut other = null_mut();
    cu!(cuDevicePrimaryCtxRetain(&mut other, 1)).expect("retain");
    cu!(cuCtxEnablePeerAccess(other, 0)).expect("enable");
    assert_eq!(
        cu!(cuCtxEnablePeerAccess(other, 0)),
        Err(CudaError::PEER_ACCESS_ALREADY_ENABLED)
    );
    cu!(cuCtxDisablePeerAccess(other)).expect("disable");
    assert_eq!(
        cu!(cuCtxDisablePeerAccess(other)),
        Err(CudaError::PEER_ACCESS_NOT_ENABLED)
    );
    let mut value = 7;
    cu!(cuDeviceGetP2PAttribute(&mut value, 2, 0, 1)).expect("attribute");
    assert_eq!(value, 1);
});
