//! When kept blocks go back to the driver, and what happens while they do: other threads, refusals, contexts that end, other
//! processes of the account.

use core::ptr::null_mut;
use std::sync::Arc;

use driver::CudaError;
use driver::abi::*;
use ledger::{Contents, Recycling};

use super::recycler::{BLOCK, CAP, second_context, stage, submit, synchronise};
use super::world::{self, PRIMARY};
use super::*;
use crate::hooks::{capture, context, exposure};

/// Lets another thread do something while a driver call of this one is under way.
fn meanwhile(stage: &Arc<Stage>, before: &'static str, work: impl FnOnce(&Stage) + Send + 'static) {
    in_another_thread(stage, before, true, work);
}

/// After what that call does, and before it returns.
fn afterwards(stage: &Arc<Stage>, after: &'static str, work: impl FnOnce(&Stage) + Send + 'static) {
    in_another_thread(stage, after, false, work);
}

fn in_another_thread(
    stage: &Arc<Stage>,
    name: &'static str,
    before: bool,
    work: impl FnOnce(&Stage) + Send + 'static,
) {
    let other = stage.clone();
    let work = move || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                world::enter(&other.state);
                work(&other);
            });
        });
    };
    let mut state = stage.state.lock().unwrap();
    let moments = match before {
        true => &mut state.before,
        false => &mut state.after,
    };
    moments.insert(name, Box::new(work));
}

fn keep(stage: &Stage) -> u64 {
    let block = alloc(stage, BLOCK).unwrap();
    free(stage, block).unwrap();
    assert_eq!(stage.class(Class::Idle), BLOCK);
    block
}

/// The wait of the thread that frees fails, and the block is another thread's by then.
#[test]
fn a_block_handed_out_while_its_free_waits_is_not_freed_again() {
    let stage = Arc::new(stage(Recycling::Preserve));
    let block = alloc(&stage, BLOCK).unwrap();
    meanwhile(&stage, "cuEventSynchronize", move |stage| {
        assert_eq!(alloc(stage, BLOCK), Ok(block));
    });
    stage.fail_next("cuEventSynchronize", CudaError::LAUNCH_FAILED.code());
    free(&stage, block).unwrap();
    assert!(stage.state.lock().unwrap().is_there(block));
    stage.assert_exact();
    free(&stage, block).unwrap();
    stage.assert_exact();
}

#[test]
fn nothing_is_kept_while_the_account_has_another_process() {
    let stage = stage(Recycling::Elide);
    let (first, second) = (alloc(&stage, BLOCK).unwrap(), alloc(&stage, BLOCK).unwrap());
    free(&stage, first).unwrap();
    assert_eq!(stage.class(Class::Idle), BLOCK);
    stage.add_client();
    assert_ne!(alloc(&stage, BLOCK), Ok(first));
    free(&stage, second).unwrap();
    assert_eq!(stage.class(Class::Idle), 0);
    stage.assert_exact();
}

/// Whatever keeps a certificate from being made or from coming, nothing is refused that is free to the program.
#[test]
fn what_waits_for_a_certificate_goes_back_before_a_refusal() {
    type Hinder = fn(&Stage, u64);
    let ways: [(&str, Hinder); 4] = [
        ("another context is busy", |stage, block| {
            let other = second_context(stage);
            stage.state.lock().unwrap().current = PRIMARY;
            submit(stage, other, block);
        }),
        ("another context is current", |stage, _| {
            second_context(stage);
        }),
        ("a capture is under way", |stage, _| {
            call!(*stage, cuStreamBeginCapture_v2 => capture::begin, 0x77 as CUstream, 0).unwrap();
        }),
        ("a context is lost", |stage, _| {
            stage.fail_next("cuStreamSynchronize", CudaError::ILLEGAL_ADDRESS.code());
            wait(stage, 5).unwrap_err();
        }),
    ];
    for recycling in [Recycling::Elide, Recycling::Preserve] {
        for (way, hinder) in ways {
            let stage = stage(recycling);
            let block = keep(&stage);
            hinder(&stage, block);
            let room = CAP - stage.used() + BLOCK;
            let large = alloc(&stage, room).expect(way);
            assert_eq!((stage.used(), stage.class(Class::Idle)), (CAP, 0), "{way}");
            free(&stage, large).unwrap();
            assert_eq!(stage.state.lock().unwrap().spoilt, 0);
            stage.assert_exact();
        }
    }
}

/// Work may never end before the thread gets on: freeing waits for it, so nobody else's call may free.
#[test]
fn only_a_call_that_waits_for_the_context_gives_its_blocks_back() {
    let stage = stage(Recycling::Elide);
    let block = keep(&stage);
    submit(&stage, PRIMARY, block);
    let other = second_context(&stage);
    stage.press();
    let second = alloc(&stage, 2 * BLOCK).unwrap();
    wait(&stage, 0).unwrap();
    synchronise(&stage);
    assert_eq!(stage.calls("cuMemFree_v2"), 0);
    free(&stage, second).unwrap();
    assert!(stage.state.lock().unwrap().is_there(block));
    call!(stage, cuCtxDestroy_v2 => context::destroy, other as CUcontext).unwrap();
    stage.set_recycling(Recycling::Off, Contents::Keep);
    synchronise(&stage);
    assert_eq!((stage.calls("cuMemFree_v2"), stage.class(Class::Idle)), (1, 0));
    stage.assert_exact();
}

#[test]
fn contexts_can_end_while_a_block_is_given_back() {
    for own in [false, true] {
        let stage = Arc::new(stage(Recycling::Elide));
        let other = second_context(&stage);
        if !own {
            stage.state.lock().unwrap().current = PRIMARY;
        }
        let block = keep(&stage);
        meanwhile(&stage, "cuMemFree_v2", move |stage| {
            call!(*stage, cuCtxDestroy_v2 => context::destroy, other as CUcontext).unwrap();
        });
        let _ = alloc(&stage, CAP);
        assert!(!stage.state.lock().unwrap().is_there(block));
        assert_eq!(stage.class(Class::Idle), 0);
        stage.assert_exact();
    }
}

#[test]
fn a_green_context_ends_recycling() {
    let stage = stage(Recycling::Elide);
    let block = keep(&stage);
    // The driver of these tests has none; the attempt is enough.
    let mut green: CUgreenCtx = null_mut();
    let made = call!(stage, cuGreenCtxCreate => context::create_green, &raw mut green, null_mut(), 0, 0);
    assert!(made.is_err());
    assert_ne!(alloc(&stage, BLOCK), Ok(block));
    synchronise(&stage);
    assert_eq!(stage.class(Class::Idle), 0);
    stage.assert_exact();
}

/// Another thread retains the primary context while this one ends it: it is another one under the same handle.
#[test]
fn blocks_of_a_primary_context_that_ended_are_not_handed_out_in_the_next() {
    let retain = |stage: &Stage| {
        let mut context = null_mut();
        call!(*stage, cuDevicePrimaryCtxRetain => context::retain, &raw mut context, 0).unwrap();
    };
    for reset in [true, false] {
        let stage = Arc::new(stage(Recycling::Elide));
        let block = keep(&stage);
        let ends = if reset {
            "cuDevicePrimaryCtxReset_v2"
        } else {
            "cuDevicePrimaryCtxRelease_v2"
        };
        afterwards(&stage, ends, retain);
        if reset {
            call!(*stage, cuDevicePrimaryCtxReset_v2 => context::reset, 0).unwrap();
            stage.assert_exact();
        } else {
            call!(*stage, cuDevicePrimaryCtxRelease_v2 => context::release, 0).unwrap();
        }
        assert_eq!(stage.class(Class::Idle), 0);
        assert!(stage.physical() <= stage.used());
        assert!(!stage.state.lock().unwrap().is_there(block));
        assert_ne!(alloc(&stage, BLOCK), Ok(block));
        call!(*stage, cuDevicePrimaryCtxRelease_v2 => context::release, 0).unwrap();
        assert_eq!((stage.used(), stage.physical()), (0, 0));
    }
}

#[test]
fn a_capture_ends_with_the_context_of_its_stream() {
    let stage = stage(Recycling::Elide);
    let other = second_context(&stage);
    stage.state.lock().unwrap().current = PRIMARY;
    stage.state.lock().unwrap().streams.insert(0x77, other);
    call!(stage, cuStreamBeginCapture_v2 => capture::begin, 0x77 as CUstream, 0).unwrap();
    let block = alloc(&stage, BLOCK).unwrap();
    free(&stage, block).unwrap();
    assert_eq!(stage.class(Class::Idle), 0);
    call!(stage, cuCtxDestroy_v2 => context::destroy, other as CUcontext).unwrap();
    keep(&stage);
}

#[test]
fn a_stream_that_gets_the_handle_of_a_destroyed_one_captures_all_the_same() {
    let stage = Arc::new(stage(Recycling::Elide));
    let begin = |stage: &Stage| {
        call!(*stage, cuStreamBeginCapture_v2 => capture::begin, 0x77 as CUstream, 0).unwrap();
    };
    begin(&stage);
    stage.state.lock().unwrap().captures.clear();
    afterwards(&stage, "cuStreamDestroy_v2", begin);
    call!(*stage, cuStreamDestroy_v2 => sync::destroy, 0x77 as CUstream).unwrap();
    let block = alloc(&stage, BLOCK).unwrap();
    free(&stage, block).unwrap();
    assert_eq!(stage.class(Class::Idle), 0);
}

#[test]
fn every_question_about_a_freed_block_is_answered_as_about_no_block() {
    let stage = stage(Recycling::Elide);
    let block = keep(&stage);
    let (mut base, mut bytes) = (0, 0usize);
    let asked = call!(stage, cuMemGetAddressRange_v2 => exposure::address_range, &raw mut base, &raw mut bytes, block);
    assert_eq!(asked, Err(CudaError::NOT_FOUND));
    let (mut list, mut answer) = ([3 as CUpointer_attribute], 1u64);
    let mut data: [*mut c_void; 1] = [(&raw mut answer).cast()];
    let (list, data) = (list.as_mut_ptr(), data.as_mut_ptr());
    call!(stage, cuPointerGetAttributes => exposure::attributes, 1, list, data, block).unwrap();
    assert_eq!(answer, 0);
    assert_eq!(alloc(&stage, BLOCK), Ok(block));
    call!(stage, cuPointerGetAttributes => exposure::attributes, 1, list, data, block).unwrap();
    assert_eq!(answer, block);
}

#[test]
fn a_certificate_that_fails_once_is_asked_for_again() {
    for name in ["cuEventQuery", "cuCtxRecordEvent", "cuEventCreate"] {
        let stage = stage(Recycling::Elide);
        let block = keep(&stage);
        stage.fail_next(name, CudaError::INVALID_VALUE.code());
        assert_ne!(alloc(&stage, BLOCK), Ok(block), "{name}");
        assert_eq!(alloc(&stage, BLOCK), Ok(block), "{name}");
    }
}

/// Memory may be missing for what is charged to nobody.
#[test]
fn any_call_of_ours_that_lacks_memory_gets_what_is_kept() {
    let stage = stage(Recycling::Elide);
    keep(&stage);
    stage.fail_next("cuStreamSynchronize", CudaError::OUT_OF_MEMORY.code());
    wait(&stage, 0).unwrap();
    assert_eq!(
        (stage.class(Class::Idle), stage.calls("cuStreamSynchronize")),
        (0, 2)
    );
    stage.fail_next("cuStreamSynchronize", CudaError::OUT_OF_MEMORY.code());
    assert_eq!(wait(&stage, 0), Err(CudaError::OUT_OF_MEMORY));
}
