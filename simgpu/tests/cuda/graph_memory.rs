//! Memory that graphs allocate: where it is, how long, and what it costs the device.

use crate::graphs::{add_empty, add_kernel, add_set, bytes, graph, instantiate, kind, nodes};
use crate::harness::{MIB, alloc, begin, cu, free_bytes, on_a_node};
use crate::modules::kernel;
use crate::timeline::stream;
use driver::CudaError;
use driver::abi::*;
use std::ptr::{null, null_mut};

const INVALID: Result<(), CudaError> = Err(CudaError::INVALID_VALUE);

/// An allocation node after `after`, and its address.
fn add_alloc(graph: CUgraph, after: &[CUgraphNode], size: usize) -> (CUgraphNode, CUdeviceptr) {
    // SAFETY: a struct of integers and pointers.
    let mut params: CUDA_MEM_ALLOC_NODE_PARAMS = unsafe { std::mem::zeroed() };
    params.poolProps.allocType = 1;
    params.poolProps.location = CUmemLocation {
        kind: CU_MEM_LOCATION_TYPE_DEVICE,
        id: 0,
    };
    params.bytesize = size;
    let mut node = null_mut();
    cu!(cuGraphAddMemAllocNode(
        &mut node,
        graph,
        after.as_ptr(),
        after.len(),
        &mut params
    ))
    .expect("alloc node");
    (node, params.dptr)
}

fn add_free(graph: CUgraph, after: &[CUgraphNode], pointer: CUdeviceptr) -> Result<CUgraphNode, CudaError> {
    let mut node = null_mut();
    cu!(cuGraphAddMemFreeNode(
        &mut node,
        graph,
        after.as_ptr(),
        after.len(),
        pointer
    ))
    .map(|()| node)
}

fn attribute(which: u32) -> usize {
    let mut value = 0u64;
    cu!(cuDeviceGetGraphMemAttribute(0, which, (&raw mut value).cast())).expect("attribute");
    value as usize
}

/// Used and reserved, and the highest of each.
fn attributes() -> [usize; 4] {
    [attribute(0), attribute(2), attribute(1), attribute(3)]
}

fn run(exec: CUgraphExec) -> Result<(), CudaError> {
    cu!(cuGraphLaunch(exec, null_mut()))?;
    cu!(cuCtxSynchronize())
}

on_a_node!(
    memory_comes_with_the_first_launch_and_goes_with_trimming,
    [],
    || {
        begin();
        let before = free_bytes();
        let graph = graph();
        let (node, pointer) = add_alloc(graph, &[], 5 * MIB);
        add_free(graph, &[node], pointer).expect("free node");
        let exec = instantiate(graph, 0).expect("exec");
        assert_eq!((free_bytes(), attributes()), (before, [0; 4]), "nothing yet");
        run(exec).expect("launch");
        assert_eq!(before - free_bytes(), 6 * MIB);
        assert_eq!(attributes(), [6 * MIB; 4]);
        run(exec).expect("again");
        assert_eq!(attributes(), [6 * MIB; 4], "the same memory");
        cu!(cuDeviceGraphMemTrim(0)).expect("trim");
        assert_eq!((free_bytes(), attributes()), (before, [0, 0, 6 * MIB, 6 * MIB]));
        run(exec).expect("it takes it again");
        cu!(cuGraphExecDestroy(exec)).expect("destroy");
        cu!(cuGraphDestroy(graph)).expect("destroy");
        assert_eq!(attributes()[..2], [0, 6 * MIB], "kept for the next graph");
        cu!(cuDeviceGraphMemTrim(0)).expect("trim");
        assert_eq!(free_bytes(), before);
        let mut zero = 0u64;
        for high in [1, 3] {
            cu!(cuDeviceSetGraphMemAttribute(0, high, (&raw mut zero).cast())).expect("reset");
        }
        assert_eq!(attributes(), [0; 4]);
        zero = 1;
        for which in 0..5 {
            assert_eq!(
                cu!(cuDeviceSetGraphMemAttribute(0, which, (&raw mut zero).cast())),
                INVALID
            );
        }
    }
);

on_a_node!(what_ended_graphs_left_is_used_by_the_next, [], || {
    begin();
    let make = |size| {
        let graph = graph();
        let (node, pointer) = add_alloc(graph, &[], size);
        add_free(graph, &[node], pointer).expect("free node");
        (graph, instantiate(graph, 0).expect("exec"))
    };
    let (graph, exec) = make(8 * MIB);
    run(exec).expect("launch");
    cu!(cuGraphDestroy(graph)).expect("destroy");
    cu!(cuGraphExecDestroy(exec)).expect("destroy");
    let (_, small) = make(2 * MIB);
    run(small).expect("launch");
    assert_eq!(attributes()[..2], [2 * MIB, 8 * MIB]);
    let (_, large) = make(10 * MIB);
    run(large).expect("launch");
    assert_eq!(attributes()[..2], [12 * MIB, 18 * MIB]);
});

on_a_node!(an_allocation_lives_until_it_is_freed_by_whomever, [], || {
    begin();
    let own = graph();
    let (_, pointer) = add_alloc(own, &[], 2 * MIB);
    let exec = instantiate(own, 0).expect("exec");
    assert_eq!(cu!(cuMemFree_v2(pointer)), INVALID, "not allocated yet");
    assert_eq!(cu!(cuMemsetD8_v2(pointer, 1, 8)), INVALID, "nor there");
    run(exec).expect("launch");
    cu!(cuMemsetD8_v2(pointer, 4, 64)).expect("usable outside");
    assert_eq!(bytes(pointer, 3), [4; 3]);
    assert_eq!(run(exec), INVALID, "still allocated");
    cu!(cuMemFree_v2(pointer)).expect("free");
    assert_eq!(cu!(cuMemFree_v2(pointer)), INVALID, "twice");
    run(exec).expect("launch");
    cu!(cuMemFreeAsync(pointer, null_mut())).expect("free in stream order");
    run(exec).expect("launch");
    let other = graph();
    add_free(other, &[], pointer).expect("free node of another graph");
    assert_eq!(
        add_free(own, &[], pointer).err(),
        Some(CudaError::INVALID_VALUE),
        "one of them only"
    );
    let freeing = instantiate(other, 0).expect("exec");
    run(freeing).expect("freed");
    assert_eq!(run(freeing), INVALID, "nothing to free");
    // The address is the node's for ever, and the allocation outlives its graphs.
    run(exec).expect("launch");
    cu!(cuGraphDestroy(own)).expect("destroy");
    cu!(cuGraphExecDestroy(exec)).expect("destroy");
    cu!(cuDeviceGraphMemTrim(0)).expect("trim");
    cu!(cuMemsetD8_v2(pointer, 9, 64)).expect("still there");
    assert_eq!(attributes()[..2], [2 * MIB; 2]);
    cu!(cuMemFree_v2(pointer)).expect("free");
    assert_eq!(attributes()[..2], [0, 2 * MIB]);
});

on_a_node!(a_graph_may_free_what_its_last_launch_left, [], || {
    begin();
    let graph = graph();
    let (_, pointer) = add_alloc(graph, &[], 2 * MIB);
    let exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH).expect("exec");
    for _ in 0..3 {
        run(exec).expect("launch");
    }
    cu!(cuMemFree_v2(pointer)).expect("free");
    run(exec).expect("launch");
    let mut flags = 0;
    cu!(cuGraphExecGetFlags(exec, &mut flags)).expect("flags");
    assert_eq!(flags, 1);
});

on_a_node!(graphs_with_memory_are_not_copied_and_run_once, [], || {
    begin();
    let own = graph();
    let (node, pointer) = add_alloc(own, &[], 2 * MIB);
    let last = add_free(own, &[node], pointer).expect("free node");
    let mut other = null_mut();
    assert_eq!(cu!(cuGraphClone(&mut other, own)), INVALID);
    assert_eq!(cu!(cuGraphDestroyNode(node)), INVALID);
    assert_eq!(cu!(cuGraphRemoveDependencies(own, &node, &last, 1)), INVALID);
    let parent = graph();
    assert_eq!(
        cu!(cuGraphAddChildGraphNode(&mut other, parent, null(), 0, own)),
        INVALID
    );
    let exec = instantiate(own, 0).expect("exec");
    assert_eq!(
        instantiate(own, 0).err(),
        Some(CudaError::INVALID_VALUE),
        "a second one"
    );
    cu!(cuGraphExecDestroy(exec)).expect("destroy");
    // It may be moved into a node, and is no longer the program's.
    let mut params = CUgraphNodeParams {
        kind: CU_GRAPH_NODE_TYPE_GRAPH,
        reserved0: [0; 3],
        union: [0; 29],
        reserved2: 0,
    };
    (params.union[0], params.union[1]) = (own as u64, 1);
    cu!(cuGraphAddNode(&mut other, parent, null(), 0, &mut params)).expect("moved");
    assert_eq!(cu!(cuGraphDestroy(own)), INVALID);
    let exec = instantiate(parent, 0).expect("exec");
    run(exec).expect("launch");
    assert_eq!(attribute(0), 2 * MIB);
    assert!(add_empty(own, &[]).is_ok(), "other nodes may be added");
});

on_a_node!(captured_allocations_become_nodes, [], || {
    begin();
    let on = stream(1);
    let before = free_bytes();
    let mut pointer = 0;
    cu!(cuStreamBeginCapture_v2(on, 0)).expect("begin");
    cu!(cuMemAllocAsync(&mut pointer, 3 * MIB, on)).expect("captured");
    cu!(cuMemsetD8Async(pointer, 3, 64, on)).expect("captured");
    cu!(cuMemFreeAsync(pointer, on)).expect("captured");
    assert_eq!(cu!(cuMemFreeAsync(pointer, on)), INVALID, "twice");
    let mut graph = null_mut();
    cu!(cuStreamEndCapture(on, &mut graph)).expect("a graph");
    let kinds: Vec<u32> = nodes(graph).into_iter().map(kind).collect();
    assert_eq!(
        kinds,
        [
            CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            CU_GRAPH_NODE_TYPE_MEMSET,
            CU_GRAPH_NODE_TYPE_MEM_FREE
        ]
    );
    assert_eq!(before, free_bytes(), "capturing takes nothing");
    // SAFETY: a struct of integers and pointers.
    let mut told: CUDA_MEM_ALLOC_NODE_PARAMS = unsafe { std::mem::zeroed() };
    cu!(cuGraphMemAllocNodeGetParams(nodes(graph)[0], &mut told)).expect("params");
    assert_eq!((told.bytesize, told.dptr), (3 * MIB, pointer));
    let exec = instantiate(graph, 0).expect("exec");
    run(exec).expect("launch");
    assert_eq!(before - free_bytes(), 4 * MIB);
});

on_a_node!(a_full_device_refuses_the_launch_or_the_upload, [], || {
    begin();
    let graph = graph();
    let (first, _) = add_alloc(graph, &[], 2 * MIB);
    add_alloc(graph, &[first], free_bytes());
    let exec = instantiate(graph, 0).expect("making it takes nothing");
    let refused = Err(CudaError::OUT_OF_MEMORY);
    assert_eq!(cu!(cuGraphUpload(exec, null_mut())), refused);
    assert_eq!(cu!(cuGraphLaunch(exec, null_mut())), refused);
    cu!(cuGraphExecDestroy(exec)).expect("destroy");
    let mut answer = CUDA_GRAPH_INSTANTIATE_PARAMS {
        flags: CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD,
        hUploadStream: null_mut(),
        hErrNode_out: null_mut(),
        result_out: 9,
    };
    let mut exec = null_mut();
    assert_eq!(
        cu!(cuGraphInstantiateWithParams(&mut exec, graph, &mut answer)),
        refused
    );
    assert_eq!(answer.result_out, 1);
    cu!(cuDeviceGraphMemTrim(0)).expect("trim");
    assert_eq!(attributes()[..2], [0, 0]);
});

on_a_node!(an_upload_brings_the_memory_before_the_launch, [], || {
    begin();
    let graph = graph();
    add_alloc(graph, &[], 2 * MIB);
    let exec = instantiate(graph, 0).expect("exec");
    cu!(cuGraphUpload(exec, null_mut())).expect("upload");
    assert_eq!(attributes()[..2], [2 * MIB; 2]);
    run(exec).expect("launch");
    assert_eq!(attributes()[..2], [2 * MIB; 2]);
});

on_a_node!(
    graphs_ended_while_they_run_leave_their_memory_to_the_next,
    [],
    || {
        begin();
        let before = free_bytes();
        let long = kernel("sim_spin_ms_2");
        for _ in 0..5 {
            let graph = graph();
            let (node, pointer) = add_alloc(graph, &[], 8 * MIB);
            let busy = add_kernel(graph, &[node], long);
            add_free(graph, &[busy], pointer).expect("free node");
            let exec = instantiate(graph, 0).expect("exec");
            cu!(cuGraphLaunch(exec, null_mut())).expect("launch");
            cu!(cuGraphExecDestroy(exec)).expect("destroy");
            cu!(cuGraphDestroy(graph)).expect("destroy");
            cu!(cuCtxSynchronize()).expect("done");
            assert_eq!(attribute(2), 8 * MIB, "no more than one of them");
        }
        cu!(cuDeviceGraphMemTrim(0)).expect("trim");
        assert_eq!((free_bytes(), attributes()[..2].to_vec()), (before, vec![0, 0]));
    }
);

on_a_node!(trimming_leaves_a_beginning_launch_its_memory, [], || {
    begin();
    let other = alloc(8 * MIB);
    let graph = graph();
    let (node, pointer) = add_alloc(graph, &[], 2 * MIB);
    let mut last = node;
    for _ in 0..4 {
        // The host is busy with it between the first look at the memory and the launch.
        last = add_set(graph, &[last], other, 1, 8 * MIB);
    }
    last = add_set(graph, &[last], pointer, 2, MIB);
    add_free(graph, &[last], pointer).expect("free node");
    let exec = instantiate(graph, 0).expect("exec");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                cu!(cuDeviceGraphMemTrim(0)).expect("trim");
            }
        });
        for _ in 0..100 {
            let launched = run(exec);
            if launched.is_err() {
                done.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            launched.expect("launch");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
});
