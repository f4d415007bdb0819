//! Graphs: what they are made of, what a launch does, what can be changed afterwards.

use crate::harness::{alloc, begin, cu, on_a_node};
use crate::modules::kernel;
use crate::timeline::{QUIET, between, recorded, stream};
use driver::CudaError;
use driver::abi::*;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

pub const INVALID: Result<(), CudaError> = Err(CudaError::INVALID_VALUE);

pub fn graph() -> CUgraph {
    let mut graph = null_mut();
    cu!(cuGraphCreate(&mut graph, 0)).expect("graph");
    graph
}

/// The parameters of a launch of one small block.
pub fn params(function: CUfunction) -> CUDA_KERNEL_NODE_PARAMS_v1 {
    CUDA_KERNEL_NODE_PARAMS_v1 {
        func: function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 32,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: null_mut(),
        extra: null_mut(),
    }
}

pub fn add_kernel(graph: CUgraph, after: &[CUgraphNode], function: CUfunction) -> CUgraphNode {
    let mut node = null_mut();
    cu!(cuGraphAddKernelNode(
        &mut node,
        graph,
        after.as_ptr(),
        after.len(),
        &params(function)
    ))
    .expect("kernel node");
    node
}

pub fn add_empty(graph: CUgraph, after: &[CUgraphNode]) -> Result<CUgraphNode, CudaError> {
    let mut node = null_mut();
    cu!(cuGraphAddEmptyNode(&mut node, graph, after.as_ptr(), after.len())).map(|()| node)
}

pub fn add_set(
    graph: CUgraph,
    after: &[CUgraphNode],
    to: CUdeviceptr,
    value: u32,
    bytes: usize,
) -> CUgraphNode {
    let mut node = null_mut();
    let set = CUDA_MEMSET_NODE_PARAMS {
        dst: to,
        pitch: 0,
        value,
        elementSize: 1,
        width: bytes,
        height: 1,
    };
    let mut context = null_mut();
    cu!(cuCtxGetCurrent(&mut context)).expect("current");
    cu!(cuGraphAddMemsetNode(
        &mut node,
        graph,
        after.as_ptr(),
        after.len(),
        &set,
        context
    ))
    .expect("memset node");
    node
}

pub fn instantiate(graph: CUgraph, flags: u64) -> Result<CUgraphExec, CudaError> {
    let mut exec = null_mut();
    cu!(cuGraphInstantiateWithFlags(&mut exec, graph, flags)).map(|()| exec)
}

pub fn nodes(graph: CUgraph) -> Vec<CUgraphNode> {
    let mut count = 0;
    cu!(cuGraphGetNodes(graph, null_mut(), &mut count)).expect("count");
    let mut nodes = vec![null_mut(); count];
    cu!(cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count)).expect("nodes");
    nodes
}

pub fn kind(node: CUgraphNode) -> u32 {
    let mut kind = 99;
    cu!(cuGraphNodeGetType(node, &mut kind)).expect("type");
    kind
}

pub fn bytes(pointer: CUdeviceptr, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    cu!(cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), pointer, count)).expect("copy");
    bytes
}

on_a_node!(nodes_without_a_dependency_run_side_by_side, QUIET, || {
    begin();
    let long = kernel("sim_spin_us_500");
    let on = stream(1);
    let measured = |graph: CUgraph| {
        let exec = instantiate(graph, 0).expect("exec");
        let start = recorded(on);
        cu!(cuGraphLaunch(exec, on)).expect("launch");
        let took = between(start, recorded(on));
        cu!(cuGraphExecDestroy(exec)).expect("destroy");
        took
    };
    let chain = graph();
    let first = add_kernel(chain, &[], long);
    let second = add_kernel(chain, &[first], long);
    let took = measured(chain);
    assert!((1000.0..1100.0).contains(&took), "a chain of two: {took}");
    let fork = graph();
    let root = add_empty(fork, &[]).expect("root");
    let branches = [0; 4].map(|_| add_kernel(fork, &[root], long));
    add_empty(fork, &branches).expect("join");
    let took = measured(fork);
    assert!((500.0..600.0).contains(&took), "four branches: {took}");
    assert_eq!(kind(second), CU_GRAPH_NODE_TYPE_KERNEL);
});

on_a_node!(
    launches_of_one_graph_follow_each_other_whatever_the_streams,
    QUIET,
    || {
        begin();
        let graph = graph();
        add_kernel(graph, &[], kernel("sim_spin_us_500"));
        let exec = instantiate(graph, 0).expect("exec");
        let (a, b) = (stream(1), stream(1));
        let start = recorded(a);
        cu!(cuGraphLaunch(exec, a)).expect("launch");
        cu!(cuGraphLaunch(exec, b)).expect("launch");
        let took = between(start, recorded(b));
        assert!((1000.0..1200.0).contains(&took), "{took}");
    }
);

on_a_node!(a_launch_does_what_the_nodes_say_in_their_order, [], || {
    begin();
    let (from, to) = (alloc(4096), alloc(4096));
    let graph = graph();
    let set = add_set(graph, &[], from, 7, 4096);
    let mut copy = null_mut();
    // SAFETY: a struct of integers and pointers.
    let mut params: CUDA_MEMCPY3D = unsafe { std::mem::zeroed() };
    (params.srcMemoryType, params.srcDevice) = (CU_MEMORYTYPE_DEVICE, from);
    (params.dstMemoryType, params.dstDevice) = (CU_MEMORYTYPE_DEVICE, to);
    (params.WidthInBytes, params.Height, params.Depth) = (4096, 1, 1);
    cu!(cuGraphAddMemcpyNode(
        &mut copy,
        graph,
        &set,
        1,
        &params,
        null_mut()
    ))
    .expect("memcpy node");

    static CALLS: AtomicU32 = AtomicU32::new(0);
    extern "C" fn count(by: *mut c_void) {
        CALLS.fetch_add(by as usize as u32, Ordering::Relaxed);
    }
    let mut host = null_mut();
    let call = CUDA_HOST_NODE_PARAMS {
        function: count as *mut c_void,
        userData: 3 as *mut c_void,
    };
    cu!(cuGraphAddHostNode(&mut host, graph, &copy, 1, &call)).expect("host node");

    assert_eq!(bytes(to, 2), [0, 0], "describing does nothing");
    let exec = instantiate(graph, 0).expect("exec");
    cu!(cuGraphLaunch(exec, null_mut())).expect("launch");
    cu!(cuCtxSynchronize()).expect("wait");
    assert_eq!(bytes(to, 4096), [7; 4096]);
    assert_eq!(CALLS.load(Ordering::Relaxed), 3);

    // The graph may go: what was made of it stays.
    cu!(cuGraphDestroy(graph)).expect("destroy");
    assert_eq!(cu!(cuGraphDestroy(graph)), INVALID);
    cu!(cuGraphLaunch(exec, null_mut())).expect("launch");
    cu!(cuCtxSynchronize()).expect("wait");
    assert_eq!(CALLS.load(Ordering::Relaxed), 6);
    cu!(cuGraphExecDestroy(exec)).expect("destroy");
    assert_eq!(cu!(cuGraphLaunch(exec, null_mut())), INVALID);
});

on_a_node!(dependencies_are_added_told_and_removed, [], || {
    begin();
    let graph = graph();
    let a = add_empty(graph, &[]).expect("a");
    let b = add_empty(graph, &[a]).expect("b");
    let c = add_empty(graph, &[]).expect("c");
    assert_eq!(add_empty(graph, &[a, a]).err(), Some(CudaError::INVALID_VALUE));
    assert_eq!(cu!(cuGraphAddDependencies(graph, &a, &b, 1)), INVALID, "twice");
    assert_eq!(
        cu!(cuGraphAddDependencies(graph, &a, &a, 1)),
        INVALID,
        "on itself"
    );
    cu!(cuGraphAddDependencies(graph, &b, &c, 1)).expect("b before c");
    let mut count = 0;
    cu!(cuGraphGetEdges(graph, null_mut(), null_mut(), &mut count)).expect("edges");
    assert_eq!(count, 2);
    let (mut from, mut to) = ([null_mut(); 4], [null_mut(); 4]);
    count = 4;
    cu!(cuGraphGetEdges(
        graph,
        from.as_mut_ptr(),
        to.as_mut_ptr(),
        &mut count
    ))
    .expect("edges");
    assert_eq!(
        (count, &from[..3], &to[..3]),
        (2, &[a, b, null_mut()][..], &[b, c, null_mut()][..])
    );
    let mut dependents = [null_mut(); 1];
    count = 1;
    cu!(cuGraphNodeGetDependentNodes(
        a,
        dependents.as_mut_ptr(),
        &mut count
    ))
    .expect("dependents");
    assert_eq!((dependents[0], count), (b, 1));

    // A cycle is found when it is to be run.
    cu!(cuGraphAddDependencies(graph, &c, &a, 1)).expect("c before a");
    let (mut exec, mut culprit) = (null_mut(), null_mut());
    let made = cu!(cuGraphInstantiate_v2(
        &mut exec,
        graph,
        &mut culprit,
        null_mut(),
        0
    ));
    assert_eq!(made, INVALID);
    assert!([a, b, c].contains(&culprit));
    cu!(cuGraphRemoveDependencies(graph, &c, &a, 1)).expect("removed");
    assert_eq!(cu!(cuGraphRemoveDependencies(graph, &c, &a, 1)), INVALID);

    cu!(cuGraphDestroyNode(b)).expect("destroyed");
    assert_eq!(nodes(graph), [a, c]);
    let mut roots = [null_mut(); 3];
    count = 3;
    cu!(cuGraphGetRootNodes(graph, roots.as_mut_ptr(), &mut count)).expect("roots");
    assert_eq!((count, roots), (2, [a, c, null_mut()]));
});

on_a_node!(a_clone_knows_its_originals_and_goes_its_own_way, [], || {
    begin();
    let own = graph();
    let first = add_empty(own, &[]).expect("first");
    let inner = graph();
    add_empty(inner, &[]).expect("inner");
    let mut child = null_mut();
    cu!(cuGraphAddChildGraphNode(&mut child, own, &first, 1, inner)).expect("child");
    let mut clone = null_mut();
    cu!(cuGraphClone(&mut clone, own)).expect("clone");
    let mut found = null_mut();
    cu!(cuGraphNodeFindInClone(&mut found, child, clone)).expect("found");
    assert!(found != child && kind(found) == CU_GRAPH_NODE_TYPE_GRAPH);
    cu!(cuGraphDestroy(own)).expect("destroy");
    assert_eq!(nodes(clone).len(), 2);
    let mut its_child = null_mut();
    cu!(cuGraphChildGraphNodeGetGraph(found, &mut its_child)).expect("its child");
    assert_eq!(nodes(its_child).len(), 1);
    assert_eq!(
        cu!(cuGraphDestroy(its_child)),
        INVALID,
        "the node's, not the program's"
    );
    assert_eq!(nodes(inner).len(), 1, "a child is a copy");
});

on_a_node!(an_event_of_a_graph_orders_streams_outside_of_it, QUIET, || {
    begin();
    let event = crate::timeline::event();
    let graph = graph();
    let first = add_kernel(graph, &[], kernel("sim_spin_us_500"));
    let mut record = null_mut();
    cu!(cuGraphAddEventRecordNode(&mut record, graph, &first, 1, event)).expect("record node");
    add_kernel(graph, &[record], kernel("sim_spin_us_900"));
    let exec = instantiate(graph, 0).expect("exec");
    let (on, other) = (stream(1), stream(1));
    let start = recorded(on);
    cu!(cuGraphLaunch(exec, on)).expect("launch");
    cu!(cuStreamWaitEvent(other, event, 0)).expect("wait");
    let took = between(start, recorded(other));
    assert!((500.0..600.0).contains(&took), "{took}");
    let mut told = null_mut();
    cu!(cuGraphEventRecordNodeGetEvent(record, &mut told)).expect("event");
    assert_eq!(told, event);
});

on_a_node!(objects_of_the_program_live_as_long_as_their_graphs, [], || {
    begin();
    static GONE: AtomicU32 = AtomicU32::new(0);
    extern "C" fn gone(_: *mut c_void) {
        GONE.fetch_add(1, Ordering::SeqCst);
    }
    let graph = graph();
    let mut object = null_mut();
    cu!(cuUserObjectCreate(
        &mut object,
        null_mut(),
        gone as *mut c_void,
        1,
        1
    ))
    .expect("object");
    cu!(cuGraphRetainUserObject(graph, object, 1, 1)).expect("moved");
    let exec = instantiate(graph, 0).expect("exec");
    cu!(cuGraphDestroy(graph)).expect("destroy");
    assert_eq!(GONE.load(Ordering::SeqCst), 0, "the executable graph has it");
    cu!(cuGraphExecDestroy(exec)).expect("destroy");
    while GONE.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(cu!(cuUserObjectRetain(object, 1)), INVALID);
});

on_a_node!(what_the_stand_in_lacks_says_so, [], || {
    begin();
    let graph = graph();
    let mut node = null_mut();
    for kind in [8, 9, 12, 13, 14] {
        let mut params = CUgraphNodeParams {
            kind,
            reserved0: [0; 3],
            union: [0; 29],
            reserved2: 0,
        };
        assert_eq!(
            cu!(cuGraphAddNode(&mut node, graph, null(), 0, &mut params)),
            Err(CudaError::NOT_SUPPORTED),
            "type {kind}"
        );
    }
    let mut handle = 0;
    assert_eq!(
        cu!(cuGraphConditionalHandleCreate(
            &mut handle,
            graph,
            null_mut(),
            0,
            0
        )),
        Err(CudaError::NOT_SUPPORTED)
    );
    assert_eq!(
        instantiate(graph, 4).err(),
        Some(CudaError::NOT_SUPPORTED),
        "device launch"
    );
    assert_eq!(
        instantiate(graph, 5).err(),
        Some(CudaError::INVALID_VALUE),
        "and not both"
    );
    assert_eq!(instantiate(graph, 64).err(), Some(CudaError::INVALID_VALUE));
    for garbage in [null_mut(), 8 as *mut c_void, usize::MAX as *mut c_void] {
        assert_eq!(cu!(cuGraphDestroy(garbage)), INVALID);
        assert_eq!(cu!(cuGraphDestroyNode(garbage)), INVALID);
        assert_eq!(cu!(cuGraphExecDestroy(garbage)), INVALID);
    }
});
