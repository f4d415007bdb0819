//! Blocks that are freed and asked for again: when they come back, and how much is kept. When the driver gets them is in
//! `recycler_limits.rs`.

use driver::CudaError;
use ledger::{Contents, Mode, Recycling};

use super::world::{self, PRIMARY};
use super::*;
use crate::hooks::{context, device};

pub const BLOCK: u64 = 4 * MIB;
pub const CAP: u64 = 1 << 30;

pub fn stage(recycling: Recycling) -> Stage {
    let stage = Stage::new(CAP, world::CONTEXT);
    stage.set_recycling(recycling, Contents::Keep);
    stage
}

fn free_bytes(stage: &Stage) -> u64 {
    let (mut free, mut total) = (0usize, 0usize);
    call!(stage, cuMemGetInfo_v2 => device::memory_info, &raw mut free, &raw mut total).unwrap();
    free as u64
}

pub fn synchronise(stage: &Stage) {
    call!(stage, cuCtxSynchronize => sync::context,).unwrap();
}

pub fn second_context(stage: &Stage) -> usize {
    let mut context = null_mut();
    call!(stage, cuCtxCreate_v2 => context::create, &raw mut context, 0, 0).unwrap();
    context as usize
}

pub fn submit(stage: &Stage, context: usize, pointer: u64) {
    stage.state.lock().unwrap().submit(context, pointer);
}

#[test]
fn a_freed_block_comes_back_to_a_request_of_its_size_and_to_no_other() {
    for recycling in [Recycling::Preserve, Recycling::Elide] {
        let stage = stage(recycling);
        let first = alloc(&stage, BLOCK).unwrap();
        free(&stage, first).unwrap();
        assert_ne!(alloc(&stage, BLOCK + 1), Ok(first), "{recycling:?}");
        assert_eq!(alloc(&stage, BLOCK), Ok(first), "{recycling:?}");
        assert_ne!(alloc(&stage, BLOCK), Ok(first));
        assert_eq!(stage.calls("cuMemFree_v2"), 0);
        stage.assert_exact();
    }
}

#[test]
fn nothing_is_kept_where_recycling_is_off_or_only_observed() {
    let stage = stage(Recycling::Off);
    let block = alloc(&stage, BLOCK).unwrap();
    free(&stage, block).unwrap();
    assert_eq!(stage.class(Class::Idle), 0);
    stage.set_recycling(Recycling::Elide, Contents::Keep);
    stage.set_cap(CAP, Mode::Observe);
    let block = alloc(&stage, BLOCK).unwrap();
    free(&stage, block).unwrap();
    assert_eq!(stage.class(Class::Idle), 0);
    assert_eq!(stage.calls("cuMemFree_v2"), 2);
}

#[test]
fn what_is_kept_stays_charged_and_counts_as_free() {
    let stage = stage(Recycling::Elide);
    let before = (stage.used(), free_bytes(&stage));
    let block = alloc(&stage, BLOCK).unwrap();
    free(&stage, block).unwrap();
    assert_eq!(stage.used(), before.0 + BLOCK);
    assert_eq!((stage.class(Class::Idle), stage.class(Class::Device)), (BLOCK, 0));
    assert_eq!(free_bytes(&stage), before.1);
    alloc(&stage, BLOCK).unwrap();
    assert_eq!((stage.class(Class::Idle), stage.class(Class::Device)), (0, BLOCK));
    assert_eq!(free_bytes(&stage), before.1 - BLOCK);
}

#[test]
fn a_block_in_use_is_not_handed_out() {
    let stage = stage(Recycling::Elide);
    let block = alloc(&stage, BLOCK).unwrap();
    submit(&stage, PRIMARY, block);
    free(&stage, block).unwrap();
    let second = alloc(&stage, BLOCK).unwrap();
    assert_ne!(second, block);
    stage.state.lock().unwrap().complete(0);
    assert_eq!(alloc(&stage, BLOCK), Ok(block));
}

/// A copy between devices is work of another context, which needs no access to the block's for it.
#[test]
fn a_block_in_use_by_another_context_is_not_handed_out() {
    for recycling in [Recycling::Preserve, Recycling::Elide] {
        let stage = stage(recycling);
        let block = alloc(&stage, BLOCK).unwrap();
        let other = second_context(&stage);
        stage.state.lock().unwrap().current = PRIMARY;
        submit(&stage, other, block);
        free(&stage, block).unwrap();
        assert_ne!(alloc(&stage, BLOCK), Ok(block), "{recycling:?}");
        synchronise(&stage);
        assert_ne!(alloc(&stage, BLOCK), Ok(block), "{recycling:?}");
        stage.state.lock().unwrap().complete(0);
        assert_eq!(alloc(&stage, BLOCK), Ok(block), "{recycling:?}");
    }
}

#[test]
fn preserve_waits_for_the_work_as_the_driver_does() {
    let stage = stage(Recycling::Preserve);
    let block = alloc(&stage, BLOCK).unwrap();
    submit(&stage, PRIMARY, block);
    free(&stage, block).unwrap();
    assert!(!stage.state.lock().unwrap().is_in_flight(block));
    assert_eq!(alloc(&stage, BLOCK), Ok(block));
}

#[test]
fn elide_waits_for_nothing() {
    let stage = stage(Recycling::Elide);
    let block = alloc(&stage, BLOCK).unwrap();
    submit(&stage, PRIMARY, block);
    free(&stage, block).unwrap();
    assert!(stage.state.lock().unwrap().is_in_flight(block));
}

#[test]
fn a_wait_of_the_programs_own_is_certificate_enough() {
    let stage = stage(Recycling::Elide);
    let blocks: Vec<u64> = (0..8).map(|_| alloc(&stage, BLOCK).unwrap()).collect();
    for round in 0..5 {
        for block in &blocks {
            submit(&stage, PRIMARY, *block);
            free(&stage, *block).unwrap();
        }
        synchronise(&stage);
        for _ in &blocks {
            assert!(blocks.contains(&alloc(&stage, BLOCK).unwrap()), "round {round}");
        }
    }
    let calls = |name| stage.calls(name);
    assert_eq!(
        (
            calls("cuMemAlloc_v2"),
            calls("cuMemFree_v2"),
            calls("cuCtxRecordEvent"),
            calls("cuEventQuery")
        ),
        (8, 0, 0, 0)
    );
}

/// Calls that make the driver work; asking which context is current is none.
fn driver_calls(stage: &Stage) -> u32 {
    let work = [
        "cuMemAlloc_v2",
        "cuMemFree_v2",
        "cuCtxRecordEvent",
        "cuEventQuery",
        "cuEventCreate",
        "cuEventSynchronize",
    ];
    work.into_iter().map(|name| stage.calls(name)).sum()
}

/// Many blocks in each round, and a wait for a stream at its end, as training does.
#[test]
fn steady_churn_costs_the_driver_two_calls_in_a_hundred() {
    let stage = Stage::new(8 * CAP, world::CONTEXT);
    stage.set_recycling(Recycling::Elide, Contents::Keep);
    let (rounds, size) = (100, 256);
    let round = || {
        let blocks: Vec<u64> = (0..size).map(|_| alloc(&stage, 2 * MIB).unwrap()).collect();
        for block in blocks {
            assert!(!stage.state.lock().unwrap().is_in_flight(block));
            submit(&stage, PRIMARY, block);
            free(&stage, block).unwrap();
        }
        let mut state = stage.state.lock().unwrap();
        while state.pending() > 0 {
            state.complete(0);
        }
    };
    round();
    let before = driver_calls(&stage);
    (0..rounds).for_each(|_| round());
    let (calls, pairs) = (driver_calls(&stage) - before, rounds * size);
    assert!(calls * 50 <= pairs, "{calls} calls for {pairs} pairs");
}

/// One block after the other, each in use for thirty more: the blocks in rotation are few, and so are the frees that a
/// certificate covers.
#[test]
fn churn_of_few_blocks_costs_the_driver_less_than_it_saves() {
    let stage = stage(Recycling::Elide);
    let pairs = 20_000;
    for _ in 0..pairs {
        let block = alloc(&stage, MIB).unwrap();
        submit(&stage, PRIMARY, block);
        free(&stage, block).unwrap();
        let mut state = stage.state.lock().unwrap();
        while state.pending() > 30 {
            state.complete(0);
        }
    }
    let calls = driver_calls(&stage);
    // Each pair would have cost two, and slower ones.
    assert!(calls * 5 <= pairs, "{calls} calls for {pairs} pairs");
}

#[test]
fn no_more_is_kept_than_a_tenth_of_the_cap() {
    for recycling in [Recycling::Preserve, Recycling::Elide] {
        let stage = stage(recycling);
        let blocks: Vec<u64> = (0..100).map(|_| alloc(&stage, BLOCK).unwrap()).collect();
        for block in blocks {
            free(&stage, block).unwrap();
            assert!(stage.class(Class::Idle) <= CAP / 10);
        }
        assert!(stage.class(Class::Idle) > CAP / 10 - BLOCK);
        stage.assert_exact();
    }
}

#[test]
fn what_is_kept_goes_back_before_anything_is_refused() {
    for recycling in [Recycling::Preserve, Recycling::Elide] {
        let stage = stage(recycling);
        let blocks: Vec<u64> = (0..20).map(|_| alloc(&stage, BLOCK).unwrap()).collect();
        for block in blocks {
            submit(&stage, PRIMARY, block);
            free(&stage, block).unwrap();
        }
        assert_eq!(stage.class(Class::Idle), 20 * BLOCK);
        let room = CAP - world::CONTEXT;
        let large = alloc(&stage, room).expect("everything that is free to the program");
        assert_eq!((stage.used(), stage.class(Class::Idle)), (CAP, 0));
        assert_eq!(alloc(&stage, MIB), Err(CudaError::OUT_OF_MEMORY));
        free(&stage, large).unwrap();
        assert!(stage.peak() <= CAP);
        stage.assert_exact();
    }
}

#[test]
fn what_is_kept_goes_back_where_the_device_is_full() {
    let stage = stage(Recycling::Elide);
    let block = alloc(&stage, BLOCK).unwrap();
    free(&stage, block).unwrap();
    stage.fail_next("cuMemAlloc_v2", CudaError::OUT_OF_MEMORY.code());
    alloc(&stage, 8 * BLOCK).unwrap();
    assert_eq!(stage.class(Class::Idle), 0);
    assert!(stage.events().is_empty());
    stage.assert_exact();
}

#[test]
fn the_daemon_gets_back_what_is_kept_when_it_wants_it_or_switches_recycling_off() {
    let stage = stage(Recycling::Elide);
    let keep = |stage: &Stage| {
        let block = alloc(stage, BLOCK).unwrap();
        free(stage, block).unwrap();
        assert_eq!(stage.class(Class::Idle), BLOCK);
    };
    keep(&stage);
    stage.press();
    let other = alloc(&stage, 2 * BLOCK).unwrap();
    assert_eq!(
        stage.class(Class::Idle),
        BLOCK,
        "what does not wait does not free"
    );
    synchronise(&stage);
    assert_eq!(stage.class(Class::Idle), 0);
    keep(&stage);
    stage.set_recycling(Recycling::Off, Contents::Keep);
    free(&stage, other).unwrap();
    assert_eq!(stage.class(Class::Idle), 0);
    stage.assert_exact();
}

#[test]
fn a_cap_below_use_grants_nothing_out_of_what_is_kept() {
    let stage = stage(Recycling::Elide);
    let held = alloc(&stage, 64 * MIB).unwrap();
    let block = alloc(&stage, BLOCK).unwrap();
    free(&stage, block).unwrap();
    stage.set_cap(64 * MIB, Mode::Enforce);
    assert_eq!(alloc(&stage, BLOCK), Err(CudaError::OUT_OF_MEMORY));
    assert_eq!(stage.class(Class::Idle), 0);
    free(&stage, held).unwrap();
    stage.assert_exact();
}
