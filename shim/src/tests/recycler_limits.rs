//! What is not kept, or not handed out: blocks others know, captures, contexts that end, errors that stay.

use core::ptr::null_mut;

use driver::CudaError;
use driver::abi::*;
use ledger::{Contents, Recycling};

use super::recycler::{BLOCK, CAP, second_context, stage, submit};
use super::world::PRIMARY;
use super::*;
use crate::hooks::{capture, context, exposure};

#[test]
fn a_block_somebody_else_knows_goes_back_to_the_driver() {
    let stage = stage(Recycling::Elide);
    type Expose = fn(&Stage, u64);
    let ways: [Expose; 3] = [
        |stage, pointer| {
            let mut handle: CUipcMemHandle = zeroed();
            call!(*stage, cuIpcGetMemHandle => exposure::ipc, &raw mut handle, pointer).unwrap();
        },
        |stage, pointer| {
            let mut number = 0u64;
            let data: *mut c_void = (&raw mut number).cast();
            call!(*stage, cuPointerGetAttribute => exposure::attribute, data, 7, pointer).unwrap();
        },
        |stage, pointer| {
            // The driver of these tests lacks it; the attempt is enough.
            let _ = call!(*stage, cuMemGetHandleForAddressRange => exposure::range, null_mut(), pointer, BLOCK as usize, 1, 0);
        },
    ];
    for (way, expose) in ways.into_iter().enumerate() {
        let block = alloc(&stage, BLOCK).unwrap();
        expose(&stage, block);
        free(&stage, block).unwrap();
        assert_eq!((way, stage.class(Class::Idle)), (way, 0));
    }
    assert_eq!(stage.calls("cuMemFree_v2"), 3);
    stage.assert_exact();
}

#[test]
fn a_freed_block_is_unknown_to_its_program() {
    let stage = stage(Recycling::Elide);
    let block = alloc(&stage, BLOCK).unwrap();
    free(&stage, block).unwrap();
    assert_eq!(free(&stage, block), Err(CudaError::INVALID_VALUE));
    assert_eq!(free_async(&stage, block, 0), Err(CudaError::INVALID_VALUE));
    let mut kind = 0u64;
    let data: *mut c_void = (&raw mut kind).cast();
    let asked = call!(stage, cuPointerGetAttribute => exposure::attribute, data, 2, block);
    assert_eq!(asked, Err(CudaError::INVALID_VALUE));
    assert_eq!(alloc(&stage, BLOCK), Ok(block));
    stage.assert_exact();
}

#[test]
fn a_destroyed_context_takes_its_blocks_along() {
    let stage = stage(Recycling::Elide);
    let other = second_context(&stage);
    let block = alloc(&stage, BLOCK).unwrap();
    free(&stage, block).unwrap();
    assert_eq!(stage.class(Class::Idle), BLOCK);
    call!(stage, cuCtxDestroy_v2 => context::destroy, other as CUcontext).unwrap();
    assert_eq!(stage.class(Class::Idle), 0);
    assert_ne!(alloc(&stage, BLOCK), Ok(block));
    stage.assert_exact();
}

#[test]
fn a_block_of_another_context_is_not_handed_out() {
    let stage = stage(Recycling::Preserve);
    let block = alloc(&stage, BLOCK).unwrap();
    free(&stage, block).unwrap();
    second_context(&stage);
    assert_ne!(alloc(&stage, BLOCK), Ok(block));
    stage.assert_exact();
}

/// Certificates look into other contexts; the program's own is current again whatever fails.
#[test]
fn the_current_context_stays_the_programs() {
    let stage = stage(Recycling::Elide);
    second_context(&stage);
    stage.state.lock().unwrap().current = PRIMARY;
    for name in [
        "none",
        "cuCtxPushCurrent_v2",
        "cuCtxPopCurrent_v2",
        "cuEventCreate",
    ] {
        let block = alloc(&stage, BLOCK).unwrap();
        free(&stage, block).unwrap();
        if name != "none" {
            stage.fail_next(name, CudaError::UNKNOWN.code());
        }
        alloc(&stage, BLOCK).unwrap();
        let mut current = null_mut();
        // SAFETY: the driver of the test writes one handle.
        unsafe {
            stage
                .driver
                .cuCtxGetCurrent(driver::StreamApi::Legacy, &mut current)
        }
        .unwrap();
        assert_eq!(current as usize, PRIMARY, "{name}");
    }
}

#[test]
fn captures_are_left_alone() {
    let stage = stage(Recycling::Elide);
    let (kept, held) = (alloc(&stage, BLOCK).unwrap(), alloc(&stage, BLOCK).unwrap());
    free(&stage, kept).unwrap();
    let stream = 0x77 as CUstream;
    call!(stage, cuStreamBeginCapture_v2 => capture::begin, stream, 0).unwrap();
    // Everything goes to the driver, which says what it thinks of it during a capture.
    assert_ne!(alloc(&stage, BLOCK), Ok(kept));
    free(&stage, held).unwrap();
    assert_eq!(stage.calls("cuMemFree_v2"), 1);
    let records = stage.calls("cuCtxRecordEvent");
    assert_eq!(alloc(&stage, CAP), Err(CudaError::OUT_OF_MEMORY));
    assert_eq!(
        (
            stage.calls("cuCtxRecordEvent"),
            stage.state.lock().unwrap().spoilt
        ),
        (records, 0)
    );
    assert_eq!(
        stage.class(Class::Idle),
        0,
        "before a refusal everything goes back"
    );
    let mut graph = null_mut();
    call!(stage, cuStreamEndCapture => capture::end, stream, &raw mut graph).unwrap();
    let kept = alloc(&stage, BLOCK).unwrap();
    free(&stage, kept).unwrap();
    assert_eq!(alloc(&stage, BLOCK), Ok(kept));
    // One that does not begin is none.
    stage.fail_next("cuStreamBeginCapture_v2", CudaError::ILLEGAL_STATE.code());
    assert!(call!(stage, cuStreamBeginCapture_v2 => capture::begin, stream, 0).is_err());
    free(&stage, kept).unwrap();
    assert_eq!(alloc(&stage, BLOCK), Ok(kept));
}

#[test]
fn a_capture_ends_with_its_stream() {
    let stage = stage(Recycling::Elide);
    let stream = 0x77 as CUstream;
    call!(stage, cuStreamBeginCapture_v2 => capture::begin, stream, 0).unwrap();
    stage.state.lock().unwrap().captures.clear();
    call!(stage, cuStreamDestroy_v2 => sync::destroy, stream).unwrap();
    let block = alloc(&stage, BLOCK).unwrap();
    free(&stage, block).unwrap();
    assert_eq!(alloc(&stage, BLOCK), Ok(block));
}

#[test]
fn an_error_that_stays_ends_recycling_until_the_context_is_gone() {
    let stage = stage(Recycling::Elide);
    let block = alloc(&stage, BLOCK).unwrap();
    free(&stage, block).unwrap();
    stage.fail_next("cuStreamSynchronize", CudaError::ILLEGAL_ADDRESS.code());
    let lost = call!(stage, cuStreamSynchronize => sync::stream, 0x5 as CUstream);
    assert_eq!(lost, Err(CudaError::ILLEGAL_ADDRESS));
    assert_ne!(alloc(&stage, BLOCK), Ok(block));
    call!(stage, cuDevicePrimaryCtxReset_v2 => context::reset, 0).unwrap();
    stage.assert_exact();
}

#[test]
fn a_certificate_that_fails_hands_nothing_out() {
    for (name, recycling) in [
        ("cuEventQuery", Recycling::Elide),
        ("cuCtxRecordEvent", Recycling::Elide),
        ("cuEventCreate", Recycling::Elide),
        ("cuEventSynchronize", Recycling::Preserve),
        ("cuCtxRecordEvent", Recycling::Preserve),
        ("cuEventQuery", Recycling::Preserve),
    ] {
        let stage = stage(recycling);
        let block = alloc(&stage, BLOCK).unwrap();
        submit(&stage, PRIMARY, block);
        stage.fail_next(name, CudaError::LAUNCH_FAILED.code());
        let freed = free(&stage, block);
        assert_eq!(freed, Ok(()), "{name}");
        let second = alloc(&stage, BLOCK).unwrap();
        assert!(!stage.state.lock().unwrap().is_in_flight(second), "{name}");
        stage.assert_exact();
    }
}

#[test]
fn blocks_come_back_with_what_the_policy_wants_in_them() {
    for (contents, found) in [
        (Contents::Keep, None),
        (Contents::Zero, Some(0)),
        (Contents::Poison, Some(0xa5)),
    ] {
        let stage = stage(Recycling::Elide);
        stage.set_recycling(Recycling::Elide, contents);
        let block = alloc(&stage, BLOCK).unwrap();
        free(&stage, block).unwrap();
        assert_eq!(alloc(&stage, BLOCK), Ok(block));
        assert_eq!(
            stage.state.lock().unwrap().filled.get(&block).copied(),
            found,
            "{contents:?}"
        );
    }
    // What could not be filled is not handed out.
    let stage = stage(Recycling::Elide);
    stage.set_recycling(Recycling::Elide, Contents::Zero);
    let block = alloc(&stage, BLOCK).unwrap();
    free(&stage, block).unwrap();
    stage.fail_next("cuMemsetD8Async", CudaError::INVALID_VALUE.code());
    assert_ne!(alloc(&stage, BLOCK), Ok(block));
    stage.assert_exact();
}

#[test]
fn small_blocks_and_those_of_other_calls_are_the_drivers() {
    let stage = stage(Recycling::Elide);
    let small = alloc(&stage, MIB - 1).unwrap();
    let mut managed = 0;
    call!(stage, cuMemAllocManaged => memory::alloc_managed, &raw mut managed, BLOCK as usize, 1).unwrap();
    let pooled = alloc_async(&stage, BLOCK).unwrap();
    for block in [small, managed, pooled] {
        free(&stage, block).unwrap();
    }
    assert_eq!((stage.class(Class::Idle), stage.calls("cuMemFree_v2")), (0, 3));
}
