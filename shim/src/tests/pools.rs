//! What the hooks promise about stream-ordered pools.

use core::ptr::null_mut;

use driver::CudaError;
use driver::abi::*;
use ledger::slot::Class;

use super::world::CONTEXT;
use super::*;
use crate::hooks::pool;

#[test]
fn a_pool_is_charged_by_what_it_has_reserved() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let block = alloc_async(&stage, 3 * MIB).unwrap();
    stage.assert_exact();
    free_async(&stage, block, 0).unwrap();
    assert_eq!(
        stage.class(Class::Pool),
        4 * MIB,
        "the pool keeps it until somebody waits"
    );
    wait(&stage, 0).unwrap();
    stage.assert_exact();
    assert_eq!(stage.class(Class::Pool), 0);
}

#[test]
fn what_a_pool_keeps_idle_is_trimmed_before_a_refusal() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let block = alloc_async(&stage, 3 * MIB).unwrap();
    let mut threshold = u64::MAX;
    let pool = default_pool(&stage);
    let value = (&raw mut threshold).cast();
    call!(stage, cuMemPoolSetAttribute => pool::set_attribute, pool, 4, value).unwrap();
    let large = alloc_async(&stage, 80 * MIB).unwrap();
    free_async(&stage, large, 0).unwrap();
    wait(&stage, 0).unwrap();
    assert_eq!(stage.class(Class::Pool), 84 * MIB, "it may keep all");
    let plain = alloc(&stage, 40 * MIB).unwrap();
    stage.assert_exact();
    let again = alloc_async(&stage, 30 * MIB).unwrap();
    assert!(stage.events().is_empty(), "nobody was refused");
    for pointer in [block, again] {
        free_async(&stage, pointer, 0).unwrap();
    }
    free(&stage, plain).unwrap();
    assert!(stage.physical() <= stage.used() && stage.used() <= 100 * MIB);
}

#[test]
fn a_pool_that_grows_in_larger_steps_is_learnt_and_never_above_the_cap() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    stage.state.lock().unwrap().growth = 32 * MIB;
    let first = alloc_async(&stage, MIB).unwrap();
    stage.assert_exact();
    let mut blocks = vec![first];
    // 81 of 94 MiB: the step for the last one is made of what the pool held idle.
    blocks.extend((0..1000).map_while(|_| alloc_async(&stage, 20 * MIB).ok()));
    assert_eq!(blocks.len(), 5);
    stage.assert_exact();
    assert!(
        stage.state.lock().unwrap().peak <= 100 * MIB,
        "the step was reserved beforehand"
    );
    for block in blocks {
        free_async(&stage, block, 0).unwrap();
    }
    wait(&stage, 0).unwrap();
    stage.assert_exact();
}

#[test]
fn the_first_growth_of_all_never_passes_the_cap() {
    let stage = Stage::new(20 * MIB, CONTEXT);
    stage.state.lock().unwrap().growth = 32 * MIB;
    assert_eq!(alloc_async(&stage, MIB), Err(CudaError::OUT_OF_MEMORY));
    assert_eq!((stage.used(), stage.physical()), (CONTEXT, CONTEXT));
    assert_eq!(stage.calls("cuMemAllocAsync"), 0, "not even for a moment");
    assert_eq!(stage.events().len(), 1);
}

#[test]
fn a_driver_whose_pools_grow_by_less_is_known_after_the_first() {
    let stage = Stage::new(48 * MIB, CONTEXT);
    let first = alloc_async(&stage, 3 * MIB).unwrap();
    stage.assert_exact();
    assert_eq!(stage.class(Class::Pool), 4 * MIB);
    // 38 MiB are left, and each step takes two.
    let rest: Vec<u64> = (0..100)
        .map_while(|_| alloc_async(&stage, 2 * MIB).ok())
        .collect();
    assert_eq!(rest.len(), 19);
    stage.assert_exact();
    assert_eq!(stage.used(), 48 * MIB);
    for block in rest.into_iter().chain([first]) {
        free_async(&stage, block, 0).unwrap();
    }
    wait(&stage, 0).unwrap();
    assert_eq!(stage.used(), CONTEXT);
}

/// Another thread's wait may have shrunk the pool since its charge was last looked at: what it grew by is not the difference.
#[test]
fn a_growth_seen_of_a_pool_that_shrank_meanwhile_teaches_nothing() {
    let stage = Stage::new(200 * MIB, CONTEXT);
    stage.state.lock().unwrap().growth = 32 * MIB;
    let small = alloc_async(&stage, 3 * MIB).unwrap();
    let first = alloc_async(&stage, 31 * MIB).unwrap();
    assert_eq!(stage.class(Class::Pool), 64 * MIB);
    free_async(&stage, first, 0).unwrap();
    // The driver gives back what it can, and nobody tells us.
    stage.state.lock().unwrap().wait_unseen();
    let mut blocks = vec![small];
    // It grows by 32 MiB for each; the charge, by 4 for the second.
    blocks.extend([33 * MIB, 31 * MIB].map(|bytes| alloc_async(&stage, bytes).unwrap()));
    stage.assert_exact();
    assert_eq!(stage.class(Class::Pool), 68 * MIB);
    let plain = alloc(&stage, 120 * MIB).unwrap();
    assert_eq!(alloc_async(&stage, 4 * MIB), Err(CudaError::OUT_OF_MEMORY));
    assert!(
        stage.state.lock().unwrap().peak <= 200 * MIB,
        "not even for a moment"
    );
    free(&stage, plain).unwrap();
    for block in blocks {
        free_async(&stage, block, 0).unwrap();
    }
    wait(&stage, 0).unwrap();
    stage.assert_exact();
}

/// A pool that once grew by much is no reason to refuse for ever what fits.
#[test]
fn a_growth_foreseen_that_does_not_fit_is_tried_by_the_need() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    know_steps(&stage);
    stage.state.lock().unwrap().growth = 64 * MIB;
    know_steps(&stage);
    stage.state.lock().unwrap().growth = 2 * MIB;
    let plain = alloc(&stage, 60 * MIB).unwrap();
    // 34 MiB are left, and 64 are foreseen.
    let small = alloc_async(&stage, 3 * MIB).unwrap();
    assert!(stage.events().is_empty(), "nobody was refused");
    stage.assert_exact();
    // The need fits, but what the driver makes of it does not.
    stage.state.lock().unwrap().growth = 64 * MIB;
    assert_eq!(alloc_async(&stage, 3 * MIB), Err(CudaError::OUT_OF_MEMORY));
    assert_eq!(stage.events().len(), 1);
    stage.assert_exact();
    assert!(stage.peak() <= 100 * MIB, "nor was it charged");
    free(&stage, plain).unwrap();
    free_async(&stage, small, 0).unwrap();
    wait(&stage, 0).unwrap();
    assert_eq!((stage.used(), stage.physical()), (CONTEXT, CONTEXT));
}

/// Growth that the driver tells of before its call returns is covered by the call's own reservation.
#[test]
fn growth_under_way_is_not_charged_twice() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    know_steps(&stage);
    let (started, has_started) = std::sync::mpsc::channel();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let grown: world::Meanwhile = Box::new(move || {
        started.send(()).unwrap();
        may_go.recv().unwrap();
    });
    stage.state.lock().unwrap().after.insert("cuMemAllocAsync", grown);
    std::thread::scope(|scope| {
        let stage = &stage;
        scope.spawn(move || {
            world::enter(&stage.state);
            alloc_async(stage, 40 * MIB).unwrap();
        });
        has_started.recv().unwrap();
        let pool = default_pool(stage);
        call!(stage, cuMemPoolTrimTo => pool::trim, pool, 0).unwrap();
        let charged = stage.used();
        let beside = alloc(stage, 50 * MIB);
        go.send(()).unwrap();
        assert_eq!(charged, CONTEXT + 40 * MIB);
        beside.unwrap();
    });
    stage.assert_exact();
}

#[test]
fn growth_beyond_the_cap_that_nobody_foresaw_is_undone() {
    let stage = Stage::new(50 * MIB, CONTEXT);
    stage.state.lock().unwrap().growth = 64 * MIB;
    assert_eq!(alloc_async(&stage, MIB), Err(CudaError::OUT_OF_MEMORY));
    assert_eq!((stage.used(), stage.physical()), (CONTEXT, CONTEXT));
    assert!(stage.peak() <= 50 * MIB);
}

#[test]
fn a_destroyed_pool_counts_until_its_last_pointer_is_gone() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let mut properties: CUmemPoolProps = zeroed();
    properties.location.kind = CU_MEM_LOCATION_TYPE_DEVICE;
    let mut handle = null_mut();
    call!(stage, cuMemPoolCreate => pool::create, &raw mut handle, &raw const properties).unwrap();
    let mut pointer = 0;
    call!(stage, cuMemAllocFromPoolAsync => pool::alloc_from, &raw mut pointer, 5 << 20, handle, null_mut())
        .unwrap();
    call!(stage, cuMemPoolDestroy => pool::destroy, handle).unwrap();
    stage.assert_exact();
    free_async(&stage, pointer, 0).unwrap();
    stage.assert_exact();
    assert_eq!(stage.used(), CONTEXT);
}

#[test]
fn a_pool_in_host_memory_is_not_charged() {
    let stage = Stage::new(20 * MIB, CONTEXT);
    let mut properties: CUmemPoolProps = zeroed();
    properties.location.kind = CU_MEM_LOCATION_TYPE_HOST;
    let mut handle = null_mut();
    call!(stage, cuMemPoolCreate => pool::create, &raw mut handle, &raw const properties).unwrap();
    let mut pointer = 0;
    call!(stage, cuMemAllocFromPoolAsync => pool::alloc_from, &raw mut pointer, 500 << 20, handle, null_mut())
        .unwrap();
    free_async(&stage, pointer, 0).unwrap();
    assert_eq!(stage.used(), CONTEXT);
}

/// One thread asks what a pool has reserved; before it acts on the answer, another's allocation makes the pool grow.
#[test]
fn an_answer_that_is_out_of_date_lowers_nothing() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let old = alloc_async(&stage, 10 * MIB).unwrap();
    free_async(&stage, old, 0).unwrap();
    let (started, has_started) = std::sync::mpsc::channel();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let (done, is_done) = std::sync::mpsc::channel();
    let in_driver: world::Meanwhile = Box::new(move || {
        started.send(()).unwrap();
        may_go.recv().unwrap();
    });
    stage
        .state
        .lock()
        .unwrap()
        .before
        .insert("cuMemAllocAsync", in_driver);
    std::thread::scope(|scope| {
        let stage = &stage;
        scope.spawn(move || {
            world::enter(&stage.state);
            alloc_async(stage, 40 * MIB).unwrap();
            done.send(()).unwrap();
        });
        has_started.recv().unwrap();
        let answered: world::Meanwhile = Box::new(move || {
            go.send(()).unwrap();
            is_done.recv().unwrap();
        });
        stage
            .state
            .lock()
            .unwrap()
            .after
            .insert("cuMemPoolGetAttribute", answered);
        let pool = default_pool(stage);
        call!(stage, cuMemPoolTrimTo => pool::trim, pool, 0).unwrap();
    });
    assert_eq!(
        (stage.used(), stage.physical()),
        (CONTEXT + 40 * MIB, CONTEXT + 40 * MIB)
    );
}
