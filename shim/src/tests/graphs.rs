//! What the hooks promise about the memory of graphs.

use core::ptr::null_mut;

use driver::CudaError;
use driver::abi::*;
use ledger::slot::Class;

use super::world::CONTEXT;
use super::*;
use crate::hooks::{array, context, graph};

fn make(stage: &Stage, sizes: &[u64]) -> Result<CUgraphExec, CudaError> {
    let made = stage.state.lock().unwrap().graph(sizes);
    let mut exec = null_mut();
    call!(stage, cuGraphInstantiateWithFlags => graph::instantiate_with_flags, &raw mut exec, made, 0)
        .map(|()| exec)
}

fn launch(stage: &Stage, exec: CUgraphExec, stream: usize) -> CuResult {
    call!(stage, cuGraphLaunch => graph::launch, exec, stream as CUstream)
}

fn destroy(stage: &Stage, exec: CUgraphExec) -> CuResult {
    call!(stage, cuGraphExecDestroy => graph::destroy, exec)
}

fn trim(stage: &Stage) -> CuResult {
    call!(stage, cuDeviceGraphMemTrim => graph::trim, 0)
}

/// Has graph memory grow once, after which the shim knows in which steps this driver's does.
fn know_steps(stage: &Stage) {
    let exec = make(stage, &[MIB]).unwrap();
    launch(stage, exec, 0).unwrap();
    destroy(stage, exec).unwrap();
    trim(stage).unwrap();
    assert_eq!(stage.used(), CONTEXT);
}

#[test]
fn a_graph_is_charged_from_its_first_launch_until_a_trimming() {
    let stage = Stage::new(100 * MIB, CONTEXT);
    let exec = make(&stage, &[3 * MIB, MIB]).unwrap();
    assert_eq!(stage.used(), CONTEXT, "making it takes nothing");
    for stream in [0, 0, 7] {
        launch(&stage, exec, stream).unwrap();
        stage.assert_exact();
        assert_eq!(stage.class(Class::Graph), 6 * MIB);
    }
    destroy(&stage, exec).unwrap();
    assert_eq!(stage.class(Class::Graph), 6 * MIB, "the driver keeps it");
    trim(&stage).unwrap();
    stage.assert_exact();
    assert_eq!(stage.used(), CONTEXT);
}

#[test]
fn a_launch_that_does_not_fit_is_refused_before_the_driver_is_asked() {
    let stage = Stage::new(40 * MIB, CONTEXT);
    know_steps(&stage);
    let exec = make(&stage, &[30 * MIB]).unwrap();
    let block = alloc(&stage, 6 * MIB).unwrap();
    let before = stage.calls("cuGraphLaunch");
    assert_eq!(launch(&stage, exec, 0), Err(CudaError::OUT_OF_MEMORY));
    assert_eq!(
        call!(stage, cuGraphUpload => graph::upload, exec, null_mut()),
        Err(CudaError::OUT_OF_MEMORY)
    );
    assert_eq!(stage.calls("cuGraphLaunch"), before);
    assert_eq!(stage.events().len(), 2, "one for each");
    stage.assert_exact();
    free(&stage, block).unwrap();
    launch(&stage, exec, 0).unwrap();
    stage.assert_exact();
    assert!(stage.state.lock().unwrap().peak <= 40 * MIB);
}

#[test]
fn an_upload_at_the_making_is_charged_or_refused_there() {
    let stage = Stage::new(64 * MIB, CONTEXT);
    know_steps(&stage);
    let upload = |sizes: &[u64]| {
        let made = stage.state.lock().unwrap().graph(sizes);
        let mut exec = null_mut();
        let mut parameters: CUDA_GRAPH_INSTANTIATE_PARAMS = zeroed();
        parameters.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
        call!(stage, cuGraphInstantiateWithParams => graph::instantiate_with_params, &raw mut exec, made, &raw mut parameters)
            .map(|()| exec)
    };
    let exec = upload(&[20 * MIB]).unwrap();
    stage.assert_exact();
    assert_eq!(stage.class(Class::Graph), 20 * MIB);
    launch(&stage, exec, 0).unwrap();
    stage.assert_exact();
    assert_eq!(upload(&[60 * MIB]).err(), Some(CudaError::OUT_OF_MEMORY));
    assert!(stage.state.lock().unwrap().peak <= 64 * MIB);
    // What the driver makes of it does not fit: the program gets no graph, and nothing stays.
    stage.state.lock().unwrap().growth = 64 * MIB;
    let before = stage.calls("cuGraphExecDestroy");
    assert_eq!(upload(&[30 * MIB]).err(), Some(CudaError::OUT_OF_MEMORY));
    assert_eq!(stage.calls("cuGraphExecDestroy"), before + 1);
    assert_eq!((stage.used(), stage.physical()), (CONTEXT, CONTEXT));
}

#[test]
fn memory_of_idle_graphs_goes_before_anybody_is_refused() {
    let stage = Stage::new(64 * MIB, CONTEXT);
    let exec = make(&stage, &[40 * MIB]).unwrap();
    for _ in 0..3 {
        launch(&stage, exec, 0).unwrap();
    }
    assert_eq!(
        stage.calls("cuDeviceGraphMemTrim"),
        0,
        "launched again, it needs no more"
    );
    let block = alloc(&stage, 30 * MIB).unwrap();
    stage.assert_exact();
    assert!(stage.events().is_empty(), "nobody was refused");
    assert_eq!(
        launch(&stage, exec, 0),
        Err(CudaError::OUT_OF_MEMORY),
        "now it is full"
    );
    free(&stage, block).unwrap();
    launch(&stage, exec, 0).unwrap();
    stage.assert_exact();
}

#[test]
fn graphs_that_share_memory_never_pass_the_cap_when_they_stop() {
    let stage = Stage::new(64 * MIB, CONTEXT);
    know_steps(&stage);
    stage.state.lock().unwrap().graphs.shares = true;
    let execs: Vec<CUgraphExec> = (0..4).map(|_| make(&stage, &[20 * MIB]).unwrap()).collect();
    for exec in &execs {
        launch(&stage, *exec, 1).unwrap();
        assert!(stage.physical() <= stage.used());
    }
    for stream in 1..=4 {
        // One stream each: that needs more than there is, and some trimming in between.
        let _ = launch(&stage, execs[stream - 1], stream);
        assert!(stage.physical() <= stage.used() && stage.used() <= 64 * MIB);
    }
    assert!(stage.state.lock().unwrap().peak <= 64 * MIB);
}

#[test]
fn graphs_made_and_ended_without_end_are_not_refused() {
    for shares in [false, true] {
        let stage = Stage::new(64 * MIB, CONTEXT);
        stage.state.lock().unwrap().graphs.shares = shares;
        for round in 0..200u64 {
            let exec = make(&stage, &[(1 + round % 9) * MIB]).unwrap();
            launch(&stage, exec, (round % 3) as usize).unwrap();
            assert!(stage.physical() <= stage.used(), "round {round}");
            destroy(&stage, exec).unwrap();
        }
        assert!(stage.events().is_empty());
        assert!(stage.state.lock().unwrap().peak <= 64 * MIB);
    }
}

#[test]
fn a_driver_that_adds_much_at_a_time_never_passes_the_cap() {
    let stage = Stage::new(64 * MIB, CONTEXT);
    stage.state.lock().unwrap().growth = 32 * MIB;
    let first = make(&stage, &[MIB]).unwrap();
    launch(&stage, first, 0).unwrap();
    stage.assert_exact();
    let second = make(&stage, &[MIB]).unwrap();
    launch(&stage, second, 0).unwrap();
    stage.assert_exact();
    assert!(stage.state.lock().unwrap().peak <= 64 * MIB);
    // It would fit by what it needs, and does not by what the driver makes of it: it never runs.
    let (third, before) = (make(&stage, &[33 * MIB]).unwrap(), stage.calls("cuGraphLaunch"));
    assert_eq!(launch(&stage, third, 0), Err(CudaError::OUT_OF_MEMORY));
    assert_eq!((stage.calls("cuGraphLaunch"), stage.events().len()), (before, 1));
    stage.assert_exact();
    assert_eq!(stage.used(), CONTEXT);
    launch(&stage, first, 0).unwrap();
    stage.assert_exact();
}

/// A launch in the midst of another thread's trimming counts in either epoch.
#[test]
fn a_launch_beside_a_trimming_is_charged() {
    for moment in [false, true] {
        let stage = std::sync::Arc::new(Stage::new(100 * MIB, CONTEXT));
        know_steps(&stage);
        let exec = make(&stage, &[10 * MIB]).unwrap() as usize;
        launch(&stage, exec as CUgraphExec, 0).unwrap();
        let other = stage.clone();
        let launched = move || {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    world::enter(&other.state);
                    launch(&other, exec as CUgraphExec, 0).unwrap();
                });
            });
        };
        let mut state = stage.state.lock().unwrap();
        let moments = if moment {
            &mut state.before
        } else {
            &mut state.after
        };
        moments.insert("cuDeviceGraphMemTrim", Box::new(launched));
        drop(state);
        trim(&stage).unwrap();
        assert!(stage.physical() <= stage.used());
        launch(&stage, exec as CUgraphExec, 0).unwrap();
        assert!(
            stage.physical() <= stage.used(),
            "{} of {}",
            stage.used(),
            stage.physical()
        );
        destroy(&stage, exec as CUgraphExec).unwrap();
        trim(&stage).unwrap();
        assert_eq!(stage.used(), CONTEXT);
    }
}

#[test]
fn whatever_call_fails_nothing_is_left_and_nothing_uncounted() {
    for name in [
        "cuGraphGetNodes",
        "cuGraphNodeGetType",
        "cuGraphMemAllocNodeGetParams",
        "cuGraphInstantiateWithFlags",
        "cuGraphLaunch",
        "cuGraphUpload",
        "cuDeviceGetGraphMemAttribute",
        "cuDeviceGraphMemTrim",
        "cuGraphExecDestroy",
        "cuThreadExchangeStreamCaptureMode",
    ] {
        let stage = Stage::new(100 * MIB, CONTEXT);
        know_steps(&stage);
        stage.fail_next(name, CudaError::UNKNOWN.code());
        let covered = || assert!(stage.physical() <= stage.used(), "{name}");
        let exec = make(&stage, &[3 * MIB])
            .or_else(|_| make(&stage, &[3 * MIB]))
            .unwrap();
        covered();
        if launch(&stage, exec, 0).is_err() {
            launch(&stage, exec, 0).unwrap();
        }
        covered();
        let _ = trim(&stage);
        covered();
        launch(&stage, exec, 0).unwrap();
        covered();
        if destroy(&stage, exec).is_err() {
            destroy(&stage, exec).unwrap();
        }
        trim(&stage).unwrap();
        assert_eq!((stage.used(), stage.physical()), (CONTEXT, CONTEXT), "{name}");
    }
}

#[test]
fn a_launch_in_a_capture_is_the_drivers_to_answer() {
    let stage = Stage::new(64 * MIB, CONTEXT);
    // Foreseen are 64 MiB, which do not fit.
    let exec = make(&stage, &[40 * MIB]).unwrap();
    stage.state.lock().unwrap().graphs.captures = true;
    assert_eq!(launch(&stage, exec, 1), Err(CudaError::INVALID_VALUE));
    assert_eq!(
        (stage.calls("cuGraphUpload"), stage.calls("cuGraphLaunch")),
        (0, 1)
    );
    assert_eq!(stage.used(), CONTEXT);
    stage.state.lock().unwrap().graphs.captures = false;
    launch(&stage, exec, 1).unwrap();
    stage.assert_exact();
}

#[test]
fn calls_of_our_own_are_made_where_no_capture_minds() {
    let stage = Stage::new(64 * MIB, CONTEXT);
    let mut own = null_mut();
    let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
        Width: 1024,
        Height: 1024,
        Depth: 0,
        Format: 0x20,
        NumChannels: 1,
        Flags: 0,
    };
    call!(stage, cuArray3DCreate_v2 => array::create_3d, &raw mut own, &raw const descriptor).unwrap();
    let exec = make(&stage, &[30 * MIB]).unwrap();
    launch(&stage, exec, 0).unwrap();
    let block = alloc_async(&stage, MIB).unwrap();
    free_async(&stage, block, 0).unwrap();
    // Trims both, to make room.
    alloc(&stage, 50 * MIB).unwrap();
    let made = stage.state.lock().unwrap().graphs.unsafe_calls.clone();
    assert_eq!(made, ["cuArray3DCreate_v2"], "the program's own call alone");
}

/// The driver grows by 8 MiB at a time, and one such step does not fit beside a graph that runs.
#[test]
fn a_launch_that_fits_only_by_what_it_needs_ends_though_trimming_takes_nothing() {
    let stage = Stage::new(64 * MIB, CONTEXT);
    stage.state.lock().unwrap().growth = 8 * MIB;
    know_steps(&stage);
    let (first, second) = (
        make(&stage, &[8 * MIB]).unwrap(),
        make(&stage, &[2 * MIB]).unwrap(),
    );
    launch(&stage, first, 1).unwrap();
    stage.state.lock().unwrap().graphs.running.insert(1);
    let room = 64 * MIB - stage.used();
    let block = alloc(&stage, room - 4 * MIB).unwrap();
    assert_eq!(launch(&stage, second, 0), Err(CudaError::OUT_OF_MEMORY));
    stage.assert_exact();
    launch(&stage, first, 1).expect("it has what it needs");
    stage.assert_exact();
    free(&stage, block).unwrap();
    launch(&stage, second, 0).unwrap();
    stage.assert_exact();
}

#[test]
fn a_graph_that_runs_is_launched_again_after_trimming_took_nothing() {
    let stage = Stage::new(64 * MIB, CONTEXT);
    know_steps(&stage);
    let exec = make(&stage, &[30 * MIB]).unwrap();
    launch(&stage, exec, 1).unwrap();
    stage.state.lock().unwrap().graphs.running.insert(1);
    let room = 64 * MIB - stage.used();
    let block = alloc(&stage, room - 2 * MIB).unwrap();
    assert_eq!(alloc(&stage, 8 * MIB), Err(CudaError::OUT_OF_MEMORY));
    trim(&stage).unwrap();
    launch(&stage, exec, 1).unwrap();
    stage.assert_exact();
    free(&stage, block).unwrap();
    stage.state.lock().unwrap().graphs.running.clear();
    trim(&stage).unwrap();
    assert_eq!(stage.used(), CONTEXT);
    launch(&stage, exec, 1).unwrap();
    stage.assert_exact();
}

/// Trimming would be the only way to be rid of what ended graphs needed, and it takes the memory of those that are still there.
#[test]
fn what_ended_graphs_needed_is_not_reserved_again() {
    for shares in [false, true] {
        let stage = Stage::new(64 * MIB, CONTEXT);
        know_steps(&stage);
        let trimmed = stage.calls("cuDeviceGraphMemTrim");
        stage.state.lock().unwrap().graphs.shares = shares;
        for _ in 0..50 {
            let exec = make(&stage, &[20 * MIB]).unwrap();
            launch(&stage, exec, 0).unwrap();
            destroy(&stage, exec).unwrap();
        }
        assert_eq!(stage.calls("cuDeviceGraphMemTrim"), trimmed);
        stage.assert_exact();
    }
}

/// It lets go of nothing, as it still runs: another graph needs memory of its own beside it.
#[test]
fn what_an_ended_graph_shared_counts_until_it_has_run() {
    let stage = Stage::new(64 * MIB, CONTEXT);
    know_steps(&stage);
    stage.state.lock().unwrap().graphs.shares = true;
    let [stays, ends] = [0; 2].map(|_| make(&stage, &[20 * MIB]).unwrap());
    launch(&stage, stays, 1).unwrap();
    launch(&stage, ends, 1).unwrap();
    stage.state.lock().unwrap().graphs.running.insert(1);
    destroy(&stage, ends).unwrap();
    let room = 64 * MIB - stage.used();
    alloc(&stage, room - 2 * MIB).unwrap();
    assert_eq!(launch(&stage, stays, 2), Err(CudaError::OUT_OF_MEMORY));
    assert!(stage.state.lock().unwrap().peak <= 64 * MIB);
}

#[test]
fn memory_of_graphs_goes_with_the_primary_context() {
    let stage = Stage::new(64 * MIB, CONTEXT);
    let exec = make(&stage, &[20 * MIB]).unwrap();
    launch(&stage, exec, 0).unwrap();
    call!(stage, cuDevicePrimaryCtxReset_v2 => context::reset, 0).unwrap();
    assert_eq!((stage.used(), stage.physical()), (0, 0));
    let mut own = null_mut();
    call!(stage, cuDevicePrimaryCtxRetain => context::retain, &raw mut own, 0).unwrap();
    let exec = make(&stage, &[20 * MIB]).unwrap();
    launch(&stage, exec, 0).unwrap();
    stage.assert_exact();
}

#[test]
fn a_graph_uploaded_at_its_making_has_its_memory_at_the_first_launch() {
    let stage = Stage::new(64 * MIB, CONTEXT);
    know_steps(&stage);
    let made = stage.state.lock().unwrap().graph(&[30 * MIB]);
    let mut exec = null_mut();
    let mut parameters: CUDA_GRAPH_INSTANTIATE_PARAMS = zeroed();
    parameters.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    call!(stage, cuGraphInstantiateWithParams => graph::instantiate_with_params, &raw mut exec, made, &raw mut parameters)
        .unwrap();
    let trimmed = stage.calls("cuDeviceGraphMemTrim");
    launch(&stage, exec, 0).unwrap();
    assert_eq!(stage.calls("cuDeviceGraphMemTrim"), trimmed);
    stage.assert_exact();
}
