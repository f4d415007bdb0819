//! Random programs over the recycler, with work in flight that nobody waits for: what is handed out is never in use, nothing is
//! ever kept that the driver freed, and charges are exact whatever fails.

use core::ptr::null_mut;

use driver::CudaError;
use driver::abi::*;
use ledger::{Contents, Mode, Recycling};
use proptest::prelude::*;

use super::world::{CONTEXT, PRIMARY};
use super::*;
use crate::hooks::{capture, context};

const CAP: u64 = 512 * MIB;
const SIZES: [u64; 4] = [MIB, 2 * MIB, 3 * MIB + 7, 8 * MIB];

#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc(usize),
    /// Frees one of the blocks, perhaps while it is in use.
    Free(usize),
    FreeAsync(usize, usize),
    /// Work on a block, in one of the contexts.
    Work(usize, usize),
    Complete(usize),
    WaitForContext,
    WaitForStream(usize),
    Context,
    EndContext(usize),
    Use(usize),
    Begin(usize),
    End(usize),
    EndStream(usize),
    Large,
    Mode(Recycling),
    Cap(u64),
    Press,
    Fault(&'static str, u32),
}

fn step() -> impl Strategy<Value = Step> {
    let faults = [
        "cuMemAlloc_v2",
        "cuMemFree_v2",
        "cuCtxRecordEvent",
        "cuEventQuery",
        "cuEventCreate",
        "cuEventSynchronize",
        "cuCtxPushCurrent_v2",
        "cuCtxSynchronize",
        "cuStreamBeginCapture_v2",
        "cuStreamIsCapturing",
        "cuCtxDestroy_v2",
    ];
    let code = prop_oneof![
        Just(CudaError::INVALID_VALUE.code()),
        Just(CudaError::OUT_OF_MEMORY.code()),
        Just(CudaError::LAUNCH_FAILED.code())
    ];
    let mode =
        prop_oneof![1 => Just(Recycling::Off), 1 => Just(Recycling::Preserve), 3 => Just(Recycling::Elide)];
    prop_oneof![
        20 => (0..SIZES.len()).prop_map(Step::Alloc),
        20 => any::<usize>().prop_map(Step::Free),
        1 => (any::<usize>(), 0..3usize).prop_map(|(which, stream)| Step::FreeAsync(which, stream)),
        14 => (any::<usize>(), any::<usize>()).prop_map(|(which, context)| Step::Work(which, context)),
        12 => any::<usize>().prop_map(Step::Complete),
        2 => Just(Step::WaitForContext),
        1 => (0..3usize).prop_map(Step::WaitForStream),
        1 => Just(Step::Context),
        1 => any::<usize>().prop_map(Step::EndContext),
        2 => any::<usize>().prop_map(Step::Use),
        1 => (0..3usize).prop_map(Step::Begin),
        2 => (0..3usize).prop_map(Step::End),
        1 => (0..3usize).prop_map(Step::EndStream),
        1 => Just(Step::Large),
        1 => mode.prop_map(Step::Mode),
        1 => prop_oneof![Just(CAP), Just(CAP / 2)].prop_map(Step::Cap),
        1 => Just(Step::Press),
        1 => (proptest::sample::select(faults.to_vec()), code).prop_map(|(name, code)| Step::Fault(name, code)),
    ]
}

/// What a program holds: blocks with the context each was made in.
struct Program {
    blocks: Vec<(u64, usize)>,
    contexts: Vec<usize>,
}

fn at<T: Copy>(list: &[T], which: usize) -> Option<T> {
    (!list.is_empty()).then(|| list[which % list.len()])
}

impl Program {
    fn new() -> Program {
        Program {
            blocks: Vec::new(),
            contexts: vec![PRIMARY],
        }
    }

    fn alloc(&mut self, stage: &Stage, bytes: u64) {
        if let Ok(block) = alloc(stage, bytes) {
            let state = stage.state.lock().unwrap();
            assert!(
                !state.is_in_flight(block),
                "{block:#x} is handed out while work on it is in flight"
            );
            assert!(
                state.is_there(block),
                "{block:#x} is handed out and not the driver's any more"
            );
            assert!(
                self.blocks.iter().all(|(other, _)| *other != block),
                "{block:#x} is handed out twice"
            );
            let context = state.current;
            drop(state);
            self.blocks.push((block, context));
        }
    }

    fn take(&mut self, stage: &Stage, step: Step) {
        match step {
            Step::Alloc(size) => self.alloc(stage, SIZES[size]),
            Step::Large => self.alloc(stage, CAP / 2),
            Step::Free(which) => {
                let Some((block, _)) = at(&self.blocks, which) else {
                    return;
                };
                if free(stage, block).is_ok() {
                    self.blocks.retain(|(other, _)| *other != block);
                }
            }
            Step::FreeAsync(which, stream) => {
                let Some((block, _)) = at(&self.blocks, which) else {
                    return;
                };
                if free_async(stage, block, stream).is_ok() {
                    self.blocks.retain(|(other, _)| *other != block);
                }
            }
            Step::Work(which, context) => {
                let (Some((block, _)), Some(context)) =
                    (at(&self.blocks, which), at(&self.contexts, context))
                else {
                    return;
                };
                stage.state.lock().unwrap().submit(context, block);
            }
            Step::Complete(which) => stage.state.lock().unwrap().complete(which),
            Step::WaitForContext => {
                let _ = call!(*stage, cuCtxSynchronize => sync::context,);
            }
            Step::WaitForStream(stream) => {
                let _ = wait(stage, stream);
            }
            Step::Context => {
                let mut context = null_mut();
                if call!(*stage, cuCtxCreate_v2 => context::create, &raw mut context, 0, 0).is_ok() {
                    self.contexts.push(context as usize);
                }
            }
            Step::EndContext(which) => {
                let Some(context) = at(&self.contexts[1..], which) else {
                    return;
                };
                if call!(*stage, cuCtxDestroy_v2 => context::destroy, context as CUcontext).is_ok() {
                    self.contexts.retain(|other| *other != context);
                    self.blocks.retain(|(_, of)| *of != context);
                }
            }
            Step::Use(which) => {
                let Some(context) = at(&self.contexts, which) else {
                    return;
                };
                stage.state.lock().unwrap().current = context;
            }
            Step::Begin(stream) => {
                let stream = (stream + 0x70) as CUstream;
                let _ = call!(*stage, cuStreamBeginCapture_v2 => capture::begin, stream, 0);
            }
            Step::End(stream) => {
                let (stream, mut graph) = ((stream + 0x70) as CUstream, null_mut());
                let _ = call!(*stage, cuStreamEndCapture => capture::end, stream, &raw mut graph);
            }
            Step::EndStream(stream) => {
                let stream = stream + 0x70;
                stage.state.lock().unwrap().captures.remove(&stream);
                let _ = call!(*stage, cuStreamDestroy_v2 => sync::destroy, stream as CUstream);
            }
            Step::Mode(recycling) => stage.set_recycling(recycling, Contents::Keep),
            Step::Cap(cap) => stage.set_cap(cap, Mode::Enforce),
            Step::Press => stage.press(),
            Step::Fault(name, code) => stage.fail_next(name, code),
        }
    }

    /// Frees everything, and has everything that is kept given back.
    fn end(self, stage: &Stage) {
        {
            let mut state = stage.state.lock().unwrap();
            state.fault = None;
            state.captures.clear();
        }
        for stream in 0x70..0x73 {
            let _ = call!(*stage, cuStreamDestroy_v2 => sync::destroy, stream as CUstream);
        }
        stage.set_cap(CAP, Mode::Enforce);
        for (block, _) in self.blocks {
            free(stage, block).unwrap();
        }
        stage.set_recycling(Recycling::Off, Contents::Keep);
        let last = alloc(stage, MIB).unwrap();
        free(stage, last).unwrap();
        for context in self.contexts[1..].iter().copied() {
            call!(*stage, cuCtxDestroy_v2 => context::destroy, context as CUcontext).unwrap();
        }
        for stream in 0..3 {
            wait(stage, stream).unwrap();
        }
        call!(*stage, cuDevicePrimaryCtxRelease_v2 => context::release, 0).unwrap();
    }
}

fn check(stage: &Stage) -> Result<(), TestCaseError> {
    // A block freed in stream order is charged until the shim knows that it is gone.
    let (used, physical) = (stage.used(), stage.physical());
    prop_assert!(physical <= used, "{} there, {} charged", physical, used);
    prop_assert!(stage.peak() <= CAP);
    prop_assert_eq!(stage.state.lock().unwrap().spoilt, 0, "captures spoilt");
    prop_assert!(stage.class(Class::Idle) <= CAP / 10);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_handed_out_while_it_is_in_use(steps in prop::collection::vec(step(), 1..200)) {
        let stage = Stage::new(CAP, CONTEXT);
        stage.set_recycling(Recycling::Elide, Contents::Keep);
        let mut program = Program::new();
        for step in steps {
            program.take(&stage, step);
            check(&stage)?;
        }
        program.end(&stage);
        prop_assert_eq!((stage.used(), stage.physical()), (0, 0));
        prop_assert_eq!((stage.class(Class::Idle), stage.class(Class::Device)), (0, 0));
    }
}

/// Every driver call fails once, one after the other, in a program that recycles, waits, trims and ends contexts.
#[test]
fn whichever_driver_call_fails_nothing_leaks() {
    let program = |stage: &Stage, k: u32| -> bool {
        {
            let mut state = stage.state.lock().unwrap();
            state.fail_call = Some((k, CudaError::INVALID_VALUE.code()));
        }
        let mut program = Program::new();
        program.take(stage, Step::Context);
        for round in 0..3 {
            for size in 0..SIZES.len() {
                program.take(stage, Step::Alloc(size));
                program.take(stage, Step::Work(size, round));
            }
            for which in [0, 1, 0, 0] {
                program.take(stage, Step::Free(which));
            }
            program.take(stage, Step::Complete(0));
            if round == 1 {
                program.take(stage, Step::Begin(0));
                program.take(stage, Step::Alloc(0));
                program.take(stage, Step::End(0));
                program.take(stage, Step::WaitForContext);
            }
        }
        program.take(stage, Step::Large);
        program.take(stage, Step::EndContext(0));
        let reached = {
            let mut state = stage.state.lock().unwrap();
            state.fail_call.take().is_none()
        };
        assert_eq!(stage.used(), stage.physical(), "call {k}");
        program.end(stage);
        assert_eq!((stage.used(), stage.physical()), (0, 0), "call {k}");
        reached
    };
    for recycling in [Recycling::Preserve, Recycling::Elide] {
        let mut k = 1;
        loop {
            let stage = Stage::new(CAP, CONTEXT);
            stage.set_recycling(recycling, Contents::Keep);
            if !program(&stage, k) {
                break;
            }
            k += 1;
        }
        assert!(k > 60, "only {k} calls were made to fail");
    }
}

/// Threads that allocate, work and free in one context, beside one that begins and ends captures.
#[test]
fn threads_share_what_is_kept() {
    let stage = Stage::new(CAP, CONTEXT);
    stage.set_recycling(Recycling::Elide, Contents::Keep);
    let done = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for seed in 1..=3u64 {
            let (stage, done) = (&stage, &done);
            scope.spawn(move || {
                world::enter(&stage.state);
                let mut random = seed;
                let mut next = move || {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    random as usize
                };
                let mut program = Program::new();
                for _ in 0..3000 {
                    let step = match next() % 8 {
                        0..3 => Step::Alloc(next() % 3),
                        3 => Step::Work(next(), 0),
                        4 => Step::Complete(next()),
                        _ => Step::Free(next()),
                    };
                    program.take(stage, step);
                    assert!(stage.used() <= CAP);
                }
                for (block, _) in program.blocks {
                    free(stage, block).unwrap();
                }
                done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            });
        }
        let (stage, done) = (&stage, &done);
        scope.spawn(move || {
            world::enter(&stage.state);
            let mut program = Program::new();
            while done.load(std::sync::atomic::Ordering::Relaxed) < 3 {
                program.take(stage, Step::Begin(0));
                program.take(stage, Step::End(0));
                std::thread::yield_now();
            }
        });
    });
    assert_eq!(stage.state.lock().unwrap().spoilt, 0);
    assert_eq!(stage.used(), stage.physical());
    Program::new().end(&stage);
    assert_eq!((stage.used(), stage.physical()), (0, 0));
}
