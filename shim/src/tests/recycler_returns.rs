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
use crate::hooks::{capture, context};

/// Lets another thread do something while a driver call of this one is under way.
fn meanwhile(stage: &Arc<Stage>, before: &'static str, work: impl FnOnce(&Stage) + Send + 'static) {
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
    state.before.insert(before, Box::new(work));
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
