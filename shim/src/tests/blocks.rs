//! What the hooks promise about blocks of memory and the ways to free them.

use core::ptr::null_mut;

use driver::CudaError;
use driver::abi::*;
use ledger::ring::{Kind, Reason};
use ledger::slot::Class;

use super::world::{CONTEXT, PRIMARY};
use super::*;
use crate::hooks::{host, memory, sync};

const OUT: CuResult = Err(CudaError::OUT_OF_MEMORY);

#[test]
fn the_first_allocation_that_does_not_fit_is_refused() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let blocks: Vec<u64> = (0..1000).map_while(|_| alloc(&stage, 10 * MIB).ok()).collect();
    assert_eq!(blocks.len(), 9, "94 MiB beside the context");
    assert_eq!(alloc(&stage, 10 * MIB), Err(CudaError::OUT_OF_MEMORY));
    assert_eq!(
        stage.calls("cuMemAlloc_v2"),
        9,
        "a refusal never reaches the driver"
    );
    stage.assert_exact();
    for block in blocks {
        free(&stage, block).unwrap();
    }
    stage.assert_exact();
    assert_eq!(stage.used(), CONTEXT);
    assert!(alloc(&stage, 99 * MIB).is_err());
    let events = stage.events();
    assert_eq!(events.len(), 3);
    assert_eq!(
        (events[2].asked, events[2].detail),
        (99 * MIB, 100 * MIB),
        "what it would have cost"
    );
    assert_eq!(events[0].kind, Kind::Refused(Reason::Cap));
    assert_eq!(
        (events[0].asked, events[0].used, events[0].cap),
        (10 * MIB, 96 * MIB, 100 * MIB)
    );
}

#[test]
fn small_blocks_are_charged_by_the_slabs_they_lie_in() {
    let stage = Stage::new(100 * MIB, 0);
    stage.state.lock().unwrap().current = PRIMARY;
    let start = stage.used();
    let blocks: Vec<u64> = (0..20).map(|_| alloc(&stage, 300 << 10).unwrap()).collect();
    assert_eq!(stage.used() - start, 4 * 2 * MIB, "six of 300 KiB fit a slab");
    assert_eq!(stage.class(Class::Device), 20 * (300 << 10));
    assert_eq!(stage.class(Class::Slab), 8 * MIB - 20 * (300 << 10));
    for block in blocks {
        free(&stage, block).unwrap();
    }
    assert_eq!(
        (stage.used(), stage.class(Class::Device), stage.class(Class::Slab)),
        (start, 0, 0)
    );
}

#[test]
fn a_failed_call_gives_its_reservation_back() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let used = stage.used();
    for bytes in [100, 5 * MIB] {
        stage.fail_next("cuMemAlloc_v2", CudaError::UNKNOWN.code());
        assert_eq!(alloc(&stage, bytes), Err(CudaError::UNKNOWN));
        stage.fail_next("cuMemAllocAsync", CudaError::OUT_OF_MEMORY.code());
        assert_eq!(alloc_async(&stage, bytes), Err(CudaError::OUT_OF_MEMORY));
        assert_eq!(stage.used(), used);
    }
    let events = stage.events();
    assert!(
        events
            .iter()
            .all(|event| event.kind == Kind::Refused(Reason::Device)),
        "{events:?}"
    );
    assert_eq!(events.len(), 2, "the device's own refusals are told");
}

#[test]
fn a_failed_free_keeps_its_charge_and_an_unknown_pointer_subtracts_nothing() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let block = alloc(&stage, 5 * MIB).unwrap();
    let used = stage.used();
    stage.fail_next("cuMemFree_v2", CudaError::LAUNCH_FAILED.code());
    assert_eq!(free(&stage, block), Err(CudaError::LAUNCH_FAILED));
    assert_eq!(stage.used(), used);
    assert_eq!(free(&stage, 0x1234), Err(CudaError::INVALID_VALUE));
    assert_eq!(free(&stage, 0), Err(CudaError::INVALID_VALUE));
    free(&stage, block).unwrap();
    assert_eq!(free(&stage, block), Err(CudaError::INVALID_VALUE), "twice");
    stage.assert_exact();
}

#[test]
fn a_pitched_block_is_charged_by_the_drivers_pitch() {
    let stage = Stage::new(64 * MIB, CONTEXT);
    stage.state.lock().unwrap().pitch = 4096;
    let (mut pointer, mut pitch) = (0, 0);
    call!(stage, cuMemAllocPitch_v2 => memory::alloc_pitch, &raw mut pointer, &raw mut pitch, 1000, 2048, 4)
        .unwrap();
    assert_eq!(pitch, 4096);
    stage.assert_exact();
    free(&stage, pointer).unwrap();
    // 24 MiB by our pitch, 96 by the driver's: what does not fit is taken back.
    assert_eq!(
        call!(stage, cuMemAllocPitch_v2 => memory::alloc_pitch, &raw mut pointer, &raw mut pitch, 1000, 24576, 4),
        OUT
    );
    assert_eq!(pointer, 0);
    stage.assert_exact();
    // Small by ours, not by the driver's.
    call!(stage, cuMemAllocPitch_v2 => memory::alloc_pitch, &raw mut pointer, &raw mut pitch, 512, 1024, 4)
        .unwrap();
    stage.assert_exact();
    assert_eq!(stage.class(Class::Device), 4 * MIB);
    free(&stage, pointer).unwrap();
    stage.assert_exact();
}

#[test]
fn each_kind_of_pointer_may_be_freed_by_each_call() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let pooled = alloc_async(&stage, 5 * MIB).unwrap();
    free(&stage, pooled).unwrap();
    wait(&stage, 0).unwrap();
    stage.assert_exact();
    // The memory of an ordinary block freed in stream order stays until its stream is waited for.
    let plain = alloc(&stage, 5 * MIB).unwrap();
    let small = alloc(&stage, 1000).unwrap();
    free_async(&stage, plain, 7).unwrap();
    free_async(&stage, small, 7).unwrap();
    wait(&stage, 8).unwrap();
    assert_eq!(stage.used(), CONTEXT + 8 * MIB);
    stage.assert_exact();
    wait(&stage, 7).unwrap();
    stage.assert_exact();
    assert_eq!(stage.used(), CONTEXT);
}

#[test]
fn blocks_of_a_destroyed_stream_wait_for_their_context() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let plain = alloc(&stage, 5 * MIB).unwrap();
    free_async(&stage, plain, 7).unwrap();
    call!(stage, cuStreamDestroy_v2 => sync::destroy, 7 as CUstream).unwrap();
    wait(&stage, 7).unwrap();
    assert_eq!(
        stage.used(),
        CONTEXT + 6 * MIB,
        "another stream with the same handle says nothing"
    );
    call!(stage, cuCtxSynchronize => sync::context,).unwrap();
    assert_eq!(stage.used(), CONTEXT);
}

#[test]
fn host_memory_is_shown_and_not_charged() {
    let stage = Stage::new(20 * MIB, CONTEXT);
    let mut pointer = null_mut();
    call!(stage, cuMemHostAlloc => host::alloc_with_flags, &raw mut pointer, 1 << 30, 0).unwrap();
    assert_eq!((stage.used(), stage.class(Class::Host)), (CONTEXT, 1 << 30));
    call!(stage, cuMemFreeHost => host::free, pointer).unwrap();
    assert_eq!(stage.class(Class::Host), 0);
}

#[test]
fn an_address_that_comes_back_unseen_drops_its_old_charge() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let block = alloc(&stage, 4 * MIB).unwrap();
    // The driver frees it by a way we do not see, and hands the address out again.
    let mut state = stage.state.lock().unwrap();
    let fresh = *state.calls.get("cuMemAlloc_v2").unwrap();
    assert_eq!(fresh, 1);
    state.reuse(block);
    drop(state);
    assert_eq!(alloc(&stage, 2 * MIB), Ok(block));
    stage.assert_exact();
}

#[test]
fn without_a_context_the_driver_answers() {
    let stage = Stage::bare(20 * MIB, CONTEXT);
    let mut pointer = 0;
    assert_eq!(
        call!(stage, cuMemAlloc_v2 => memory::alloc, null_mut(), 5),
        Err(CudaError::INVALID_VALUE)
    );
    assert_eq!(
        call!(stage, cuMemAlloc_v2 => memory::alloc, &raw mut pointer, 0),
        Err(CudaError::INVALID_VALUE)
    );
    assert_eq!(stage.used(), 0);
}

#[test]
fn a_panic_in_a_hook_passes_the_call_on_exactly_once() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let pointer = core::cell::Cell::new(0);
    let api = driver::StreamApi::Legacy;
    // SAFETY: the variable is the test's own.
    let pass = |driver: &driver::Driver| unsafe { driver.cuMemAlloc_v2(api, pointer.as_ptr(), 5) };
    let about = (driver::table::RowId::cuMemAlloc_v2, api);
    for (before, calls) in [(true, 1), (false, 2)] {
        let call = crate::guard::Call::new(&stage.driver, about, Some(&stage.books), &pass);
        let result = call.run(|call| {
            if before {
                panic!("a fault of ours");
            }
            call.pass()?;
            panic!("a fault of ours");
        });
        assert_eq!((result, stage.calls("cuMemAlloc_v2")), (Ok(()), calls));
    }
    assert_eq!(
        stage
            .events()
            .iter()
            .filter(|event| event.kind == Kind::Fault)
            .count(),
        2
    );
}
