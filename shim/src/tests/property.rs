//! Random programs: whatever they do and whatever fails, what is charged covers what is there, stays within the cap, and is
//! gone when all is freed.

use core::ptr::null_mut;

use driver::CudaError;
use driver::abi::*;
use proptest::prelude::*;

use super::world::CONTEXT;
use super::{MIB, Stage, call, default_pool, world};
use crate::hooks::{array, context, graph, memory, pool, sync, vmm};

const CAP: u64 = 64 * MIB;

#[derive(Clone, Copy, Debug)]
enum Step {
    Alloc(u64),
    Managed(u64),
    Pitch(u64, u64),
    Async(u64),
    Create(u64),
    /// An array of this width and height.
    Array(usize, usize),
    Sparse,
    DestroyArray(usize),
    /// Maps a handle to a tile of an array, or unmaps the tile, in a stream.
    Tile(usize, usize, bool),
    Context,
    /// Frees one of the pointers, by either call; perhaps for the second time.
    Free(usize, bool),
    FreeUnknown,
    /// Releases, maps or unmaps one of the handles.
    Release(usize),
    Map(usize),
    Unmap(usize),
    Retain(usize),
    DestroyContext(usize),
    Wait(usize),
    WaitForContext,
    Trim,
    /// An executable graph with two allocation nodes; launches, ends or trims.
    Graph(u64, u64),
    Launch(usize, usize),
    EndGraph(usize),
    TrimGraphs,
    /// The next call of a function fails.
    Fault(&'static str),
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![1..2 * MIB, 1..20 * MIB, 1u64..10_000];
    let faults = [
        "cuMemAlloc_v2",
        "cuMemFree_v2",
        "cuMemAllocAsync",
        "cuMemFreeAsync",
        "cuMemCreate",
        "cuMemRelease",
        "cuMemMap",
        "cuMemUnmap",
        "cuCtxCreate_v2",
        "cuStreamSynchronize",
        "cuMemPoolGetAttribute",
        "cuMemAllocPitch_v2",
        "cuCtxGetDevice",
        "cuArray3DCreate_v2",
        "cuArrayGetMemoryRequirements",
        "cuArrayDestroy",
        "cuMemMapArrayAsync",
        "cuGraphLaunch",
        "cuGraphInstantiateWithFlags",
        "cuGraphNodeGetType",
        "cuDeviceGetGraphMemAttribute",
        "cuDeviceGraphMemTrim",
    ];
    prop_oneof![
        6 => bytes.clone().prop_map(Step::Alloc),
        2 => bytes.clone().prop_map(Step::Managed),
        2 => (1..5000u64, 1..3000u64).prop_map(|(width, height)| Step::Pitch(width, height)),
        5 => bytes.clone().prop_map(Step::Async),
        2 => (bytes.clone(), bytes).prop_map(|(first, second)| Step::Graph(first, second)),
        4 => (any::<usize>(), 0usize..3).prop_map(|(which, stream)| Step::Launch(which, stream)),
        1 => any::<usize>().prop_map(Step::EndGraph),
        1 => Just(Step::TrimGraphs),
        2 => (1..6u64).prop_map(|pages| Step::Create(pages * 2 * MIB)),
        4 => (1..2000usize, 0..2000usize).prop_map(|(width, height)| Step::Array(width, height)),
        1 => Just(Step::Sparse),
        3 => any::<usize>().prop_map(Step::DestroyArray),
        3 => (any::<usize>(), any::<usize>(), any::<bool>()).prop_map(|(array, handle, maps)| Step::Tile(array, handle, maps)),
        1 => Just(Step::Context),
        10 => (any::<usize>(), any::<bool>()).prop_map(|(which, by_stream)| Step::Free(which, by_stream)),
        1 => Just(Step::FreeUnknown),
        2 => any::<usize>().prop_map(Step::Release),
        2 => any::<usize>().prop_map(Step::Map),
        2 => any::<usize>().prop_map(Step::Unmap),
        1 => any::<usize>().prop_map(Step::Retain),
        1 => any::<usize>().prop_map(Step::DestroyContext),
        3 => (0usize..3).prop_map(Step::Wait),
        1 => Just(Step::WaitForContext),
        1 => Just(Step::Trim),
        2 => proptest::sample::select(faults.to_vec()).prop_map(Step::Fault),
    ]
}

/// What a program holds.
#[derive(Default)]
struct Program {
    pointers: Vec<u64>,
    handles: Vec<u64>,
    mappings: Vec<u64>,
    arrays: Vec<usize>,
    contexts: Vec<usize>,
    graphs: Vec<usize>,
    next_address: u64,
}

fn form(width: usize, height: usize, flags: u32) -> CUDA_ARRAY3D_DESCRIPTOR {
    CUDA_ARRAY3D_DESCRIPTOR {
        Width: width,
        Height: height,
        Depth: 0,
        Format: 0x20,
        NumChannels: 1,
        Flags: flags,
    }
}

fn at<T: Copy>(list: &[T], which: usize) -> Option<T> {
    (!list.is_empty()).then(|| list[which % list.len()])
}

impl Program {
    fn take(&mut self, stage: &Stage, step: Step) {
        let mut pointer = 0;
        match step {
            Step::Alloc(bytes) => {
                let made = call!(stage, cuMemAlloc_v2 => memory::alloc, &raw mut pointer, bytes as usize);
                self.pointers.extend(made.ok().map(|()| pointer));
            }
            Step::Managed(bytes) => {
                let made = call!(stage, cuMemAllocManaged => memory::alloc_managed, &raw mut pointer, bytes as usize, 1);
                self.pointers.extend(made.ok().map(|()| pointer));
            }
            Step::Pitch(width, height) => {
                let mut pitch = 0;
                let made = call!(stage, cuMemAllocPitch_v2 => memory::alloc_pitch, &raw mut pointer, &raw mut pitch, width as usize, height as usize, 4);
                self.pointers.extend(made.ok().map(|()| pointer));
            }
            Step::Async(bytes) => {
                let made = call!(stage, cuMemAllocAsync => pool::alloc, &raw mut pointer, bytes as usize, null_mut());
                self.pointers.extend(made.ok().map(|()| pointer));
            }
            Step::Create(bytes) => {
                // SAFETY: a struct of integers and a pointer.
                let mut properties: CUmemAllocationProp = unsafe { core::mem::zeroed() };
                properties.location.kind = CU_MEM_LOCATION_TYPE_DEVICE;
                let made = call!(stage, cuMemCreate => vmm::create, &raw mut pointer, bytes as usize, &raw const properties, 0);
                self.handles.extend(made.ok().map(|()| pointer));
            }
            Step::Array(width, height) => {
                let mut array = null_mut();
                let descriptor = form(width, height, 0);
                let made = call!(stage, cuArray3DCreate_v2 => array::create_3d, &raw mut array, &raw const descriptor);
                self.arrays.extend(made.ok().map(|()| array as usize));
            }
            Step::Sparse => {
                let mut array = null_mut();
                let descriptor = form(1024, 1024, CUDA_ARRAY3D_SPARSE);
                let made = call!(stage, cuArray3DCreate_v2 => array::create_3d, &raw mut array, &raw const descriptor);
                self.arrays.extend(made.ok().map(|()| array as usize));
            }
            Step::DestroyArray(which) => {
                let Some(array) = at(&self.arrays, which) else {
                    return;
                };
                let _ = call!(stage, cuArrayDestroy => array::destroy, array as CUarray);
            }
            Step::Tile(which, handle, maps) => {
                let (Some(array), Some(handle)) = (at(&self.arrays, which), at(&self.handles, handle)) else {
                    return;
                };
                // SAFETY: a struct of integers and a pointer.
                let mut info: CUarrayMapInfo = unsafe { core::mem::zeroed() };
                info.resource = array as CUarray;
                info.subresource.words[1] = (which % 2) as u32;
                info.memOperationType = if maps {
                    CU_MEM_OPERATION_TYPE_MAP
                } else {
                    CU_MEM_OPERATION_TYPE_UNMAP
                };
                info.memHandle = handle;
                let _ =
                    call!(stage, cuMemMapArrayAsync => array::map, &raw mut info, 1, (which % 3) as CUstream);
            }
            Step::Context => {
                let mut context = null_mut();
                let made = call!(stage, cuCtxCreate_v2 => context::create, &raw mut context, 0, 0);
                self.contexts.extend(made.ok().map(|()| context as usize));
            }
            Step::Free(which, by_stream) => {
                let Some(pointer) = at(&self.pointers, which) else {
                    return;
                };
                let _ = if by_stream {
                    call!(stage, cuMemFreeAsync => pool::free, pointer, (which % 3) as CUstream)
                } else {
                    call!(stage, cuMemFree_v2 => memory::free, pointer)
                };
            }
            Step::FreeUnknown => {
                let _ = call!(stage, cuMemFree_v2 => memory::free, 0xdead_beef);
            }
            Step::Release(which) => {
                let Some(handle) = at(&self.handles, which) else {
                    return;
                };
                let _ = call!(stage, cuMemRelease => vmm::release, handle);
            }
            Step::Map(which) => {
                let Some(handle) = at(&self.handles, which) else {
                    return;
                };
                self.next_address += 64 * MIB;
                let address = self.next_address;
                if call!(stage, cuMemMap => vmm::map, address, (2 * MIB) as usize, 0, handle, 0).is_ok() {
                    self.mappings.push(address);
                }
            }
            Step::Unmap(which) => {
                let Some(address) = at(&self.mappings, which) else {
                    return;
                };
                let _ = call!(stage, cuMemUnmap => vmm::unmap, address, (2 * MIB) as usize);
            }
            Step::Retain(which) => {
                let Some(address) = at(&self.mappings, which) else {
                    return;
                };
                let mut handle = 0;
                if call!(stage, cuMemRetainAllocationHandle => vmm::retain, &raw mut handle, address as *mut _)
                    .is_ok()
                {
                    self.handles.push(handle);
                }
            }
            Step::DestroyContext(which) => {
                let Some(context) = at(&self.contexts, which) else {
                    return;
                };
                let _ = call!(stage, cuCtxDestroy_v2 => context::destroy, context as CUcontext);
            }
            Step::Wait(stream) => {
                let _ = call!(stage, cuStreamSynchronize => sync::stream, stream as CUstream);
            }
            Step::WaitForContext => {
                let _ = call!(stage, cuCtxSynchronize => sync::context,);
            }
            Step::Trim => {
                let pool = default_pool(stage);
                let _ = call!(stage, cuMemPoolTrimTo => pool::trim, pool, 0);
            }
            Step::Graph(first, second) => {
                let graph = stage.state.lock().unwrap().graph(&[first, second]);
                let mut exec = null_mut();
                let made = call!(stage, cuGraphInstantiateWithFlags => graph::instantiate_with_flags, &raw mut exec, graph, 0);
                self.graphs.extend(made.ok().map(|()| exec as usize));
            }
            Step::Launch(which, stream) => {
                if let Some(exec) = at(&self.graphs, which) {
                    let _ =
                        call!(stage, cuGraphLaunch => graph::launch, exec as CUgraphExec, stream as CUstream);
                }
            }
            Step::EndGraph(which) => {
                if let Some(exec) = at(&self.graphs, which) {
                    let _ = call!(stage, cuGraphExecDestroy => graph::destroy, exec as CUgraphExec);
                }
            }
            Step::TrimGraphs => {
                let _ = call!(stage, cuDeviceGraphMemTrim => graph::trim, 0);
            }
            Step::Fault(name) => stage.fail_next(name, CudaError::UNKNOWN.code()),
        }
    }

    /// Gives everything back, as a tidy program would at its end.
    fn end(&mut self, stage: &Stage) {
        stage.state.lock().unwrap().fault = None;
        let own = core::mem::take(&mut self.pointers);
        for pointer in own {
            let _ = call!(stage, cuMemFree_v2 => memory::free, pointer);
        }
        for address in core::mem::take(&mut self.mappings) {
            let _ = call!(stage, cuMemUnmap => vmm::unmap, address, (2 * MIB) as usize);
        }
        for handle in core::mem::take(&mut self.handles) {
            while call!(stage, cuMemRelease => vmm::release, handle).is_ok() {}
        }
        for context in core::mem::take(&mut self.contexts) {
            let _ = call!(stage, cuCtxDestroy_v2 => context::destroy, context as CUcontext);
        }
        let _ = call!(stage, cuDeviceGraphMemTrim => graph::trim, 0);
        for stream in 0..3 {
            let _ = call!(stage, cuStreamSynchronize => sync::stream, stream as CUstream);
        }
        let _ = call!(stage, cuCtxSynchronize => sync::context,);
        let _ = call!(stage, cuDevicePrimaryCtxRelease_v2 => context::release, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_charged_covers_what_is_there(shares in any::<bool>(), steps in prop::collection::vec(step(), 1..120)) {
        let stage = Stage::new(CAP, CONTEXT);
        stage.state.lock().unwrap().graphs.shares = shares;
        let mut program = Program::default();
        for step in steps {
            program.take(&stage, step);
            let (used, physical) = (stage.used(), stage.physical());
            prop_assert!(physical <= used, "after {:?}: {} there, {} charged", step, physical, used);
            prop_assert!(used <= CAP);
        }
        prop_assert!(stage.state.lock().unwrap().peak <= CAP);
        program.end(&stage);
        prop_assert_eq!((stage.used(), stage.physical()), (0, 0));
    }
}

/// The same with several threads in one process: each frees what another allocated.
#[test]
fn threads_of_one_process_share_the_books() {
    let stage = Stage::new(CAP, CONTEXT);
    let shared = std::sync::Mutex::new(Vec::<u64>::new());
    std::thread::scope(|scope| {
        for seed in 1..=4u64 {
            let (stage, shared) = (&stage, &shared);
            scope.spawn(move || {
                world::enter(&stage.state);
                let mut random = seed;
                let mut next = move || {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    random
                };
                let mut program = Program::default();
                for _ in 0..3000 {
                    let bytes = 1 + next() % (6 * MIB);
                    let step = match next() % 8 {
                        0 | 1 => Step::Alloc(bytes),
                        2 => Step::Alloc(bytes % 5000 + 1),
                        3 => Step::Async(bytes),
                        4 => Step::Wait((next() % 3) as usize),
                        _ => Step::Free(next() as usize, next() % 3 == 0),
                    };
                    program.pointers = core::mem::take(&mut *shared.lock().unwrap());
                    if let Step::Free(which, _) = step {
                        let Some(pointer) = at(&program.pointers, which) else {
                            continue;
                        };
                        let rest = program.pointers.iter().copied().filter(|other| *other != pointer);
                        shared.lock().unwrap().extend(rest);
                        program.pointers = vec![pointer];
                        program.take(stage, step);
                    } else {
                        shared.lock().unwrap().append(&mut program.pointers);
                        program.take(stage, step);
                        shared.lock().unwrap().append(&mut program.pointers);
                    }
                    assert!(stage.used() <= CAP);
                }
            });
        }
    });
    assert!(stage.peak() <= CAP);
    assert!(stage.physical() <= stage.used());
    let mut program = Program {
        pointers: shared.into_inner().unwrap(),
        ..Program::default()
    };
    program.end(&stage);
    assert_eq!((stage.used(), stage.physical()), (0, 0));
}
