//! What can be changed in an executable graph, and what a node tells of its parameters.

use crate::graphs::{INVALID, add_empty, add_set, bytes, graph, instantiate, kind, nodes, params};
use crate::harness::{alloc, begin, cu, on_a_node};
use crate::modules::kernel;
use crate::timeline::{QUIET, stream};
use driver::CudaError;
use driver::abi::*;
use std::ptr::{null, null_mut};

on_a_node!(
    an_executable_graph_is_changed_in_parts_or_as_a_whole,
    QUIET,
    || {
        begin();
        let to = alloc(4096);
        let build = |value| {
            let graph = graph();
            let set = add_set(graph, &[], to, value, 64);
            add_empty(graph, &[set]).expect("empty");
            (graph, set)
        };
        let run = |exec| {
            cu!(cuGraphLaunch(exec, null_mut())).expect("launch");
            bytes(to, 1)[0]
        };
        let (graph, set) = build(1);
        let exec = instantiate(graph, 0).expect("exec");
        assert_eq!(run(exec), 1);
        let (other, _) = build(2);
        let mut info = CUgraphExecUpdateResultInfo {
            result: 9,
            errorNode: null_mut(),
            errorFromNode: null_mut(),
        };
        cu!(cuGraphExecUpdate_v2(exec, other, &mut info)).expect("update");
        assert_eq!((info.result, run(exec)), (0, 2));

        let mut params = CUDA_MEMSET_NODE_PARAMS {
            dst: to,
            pitch: 0,
            value: 3,
            elementSize: 1,
            width: 64,
            height: 1,
        };
        let mut context = null_mut();
        cu!(cuCtxGetCurrent(&mut context)).expect("current");
        cu!(cuGraphExecMemsetNodeSetParams(exec, set, &params, context)).expect("set in exec");
        assert_eq!(run(exec), 3);
        cu!(cuGraphMemsetNodeGetParams(set, &mut params)).expect("params");
        assert_eq!(params.value, 1, "the graph itself is as it was");
        cu!(cuGraphNodeSetEnabled(exec, set, 0)).expect("disable");
        cu!(cuMemsetD8_v2(to, 9, 64)).expect("set");
        assert_eq!(run(exec), 9, "a disabled node does nothing");

        // Another form is refused, and told why.
        let longer = build(4).0;
        let extra = add_empty(longer, &[]).expect("extra");
        let refused = cu!(cuGraphExecUpdate_v2(exec, longer, &mut info));
        assert_eq!(
            (refused, info.result),
            (Err(CudaError::GRAPH_EXEC_UPDATE_FAILURE), 2)
        );
        cu!(cuGraphDestroyNode(extra)).expect("destroyed");
        let of_others = self::graph();
        let first = add_empty(of_others, &[]).expect("first");
        add_empty(of_others, &[first]).expect("second");
        let refused = cu!(cuGraphExecUpdate_v2(exec, of_others, &mut info));
        assert_eq!(
            (refused, info.result),
            (Err(CudaError::GRAPH_EXEC_UPDATE_FAILURE), 3)
        );
        assert_eq!(info.errorNode, first);
    }
);

on_a_node!(arguments_of_a_kernel_node_are_copied, [], || {
    begin();
    let mut module = null_mut();
    let text = c".version 8.0\n.target sm_75\n.visible .entry k(.param .u64 a, .param .u32 b) { ret; }";
    cu!(cuModuleLoadData(&mut module, text.as_ptr().cast())).expect("PTX");
    let mut function = null_mut();
    cu!(cuModuleGetFunction(&mut function, module, c"k".as_ptr())).expect("kernel");
    let graph = graph();
    let mut node = null_mut();
    assert_eq!(
        cu!(cuGraphAddKernelNode(
            &mut node,
            graph,
            null(),
            0,
            &params(function)
        )),
        INVALID,
        "it has parameters"
    );
    let (mut a, mut b) = (0x1234_5678_9abc_u64, 77u32);
    let mut list: [*mut c_void; 2] = [(&raw mut a).cast(), (&raw mut b).cast()];
    let given = CUDA_KERNEL_NODE_PARAMS_v1 {
        kernelParams: list.as_mut_ptr(),
        ..params(function)
    };
    cu!(cuGraphAddKernelNode(&mut node, graph, null(), 0, &given)).expect("kernel node");
    (a, b) = (0, 0);
    assert_eq!((a, b), (0, 0));
    let mut told = params(null_mut());
    cu!(cuGraphKernelNodeGetParams(node, &mut told)).expect("params");
    assert_eq!((told.func, told.blockDimX), (function, 32));
    // SAFETY: two pointers, to the copies of the two arguments.
    let copies = unsafe {
        let list = told.kernelParams;
        (
            (*list).cast::<u64>().read_unaligned(),
            (*list.add(1)).cast::<u32>().read_unaligned(),
        )
    };
    assert_eq!(copies, (0x1234_5678_9abc, 77));
    let mut whole = CUgraphNodeParams {
        kind: 99,
        reserved0: [0; 3],
        union: [0; 29],
        reserved2: 0,
    };
    cu!(cuGraphNodeGetParams(node, &mut whole)).expect("params");
    assert_eq!(
        (whole.kind, whole.union[0]),
        (CU_GRAPH_NODE_TYPE_KERNEL, function as u64)
    );
    let mut twin = null_mut();
    cu!(cuGraphAddNode_v2(&mut twin, graph, &node, null(), 1, &mut whole)).expect("the same again");
    assert_eq!(kind(twin), CU_GRAPH_NODE_TYPE_KERNEL);
});

on_a_node!(a_graph_cannot_be_moved_into_itself, [], || {
    begin();
    let (outer, inner) = (graph(), graph());
    let mut node = null_mut();
    cu!(cuGraphAddChildGraphNode(&mut node, outer, null(), 0, inner)).expect("child");
    let mut within = null_mut();
    cu!(cuGraphChildGraphNodeGetGraph(node, &mut within)).expect("its graph");
    for into in [outer, within] {
        let mut params = CUgraphNodeParams {
            kind: CU_GRAPH_NODE_TYPE_GRAPH,
            reserved0: [0; 3],
            union: [0; 29],
            reserved2: 0,
        };
        (params.union[0], params.union[1]) = (outer as u64, 1);
        assert_eq!(
            cu!(cuGraphAddNode(&mut node, into, null(), 0, &mut params)),
            INVALID
        );
    }
    instantiate(outer, 0).expect("it has no cycle");
    cu!(cuGraphDestroy(outer)).expect("destroy");
});

on_a_node!(
    a_cooperative_node_stays_one_when_its_parameters_change,
    [],
    || {
        begin();
        let function = kernel("sim_spin_us_100");
        let on = stream(1);
        cu!(cuStreamBeginCapture_v2(on, 0)).expect("begin");
        cu!(cuLaunchCooperativeKernel(
            function,
            1,
            1,
            1,
            1024,
            1,
            1,
            0,
            on,
            null_mut()
        ))
        .expect("captured");
        let mut graph = null_mut();
        cu!(cuStreamEndCapture(on, &mut graph)).expect("a graph");
        let node = nodes(graph)[0];
        let exec = instantiate(graph, 0).expect("exec");
        cu!(cuGraphLaunch(exec, on)).expect("launch");
        // Too many blocks to run side by side, which only a cooperative launch minds.
        let large = CUDA_KERNEL_NODE_PARAMS_v1 {
            gridDimX: 1 << 20,
            ..params(function)
        };
        cu!(cuGraphExecKernelNodeSetParams(exec, node, &large)).expect("in the executable graph");
        let refused = Err(CudaError::COOPERATIVE_LAUNCH_TOO_LARGE);
        assert_eq!(cu!(cuGraphLaunch(exec, on)), refused);
        cu!(cuGraphKernelNodeSetParams(node, &large)).expect("in the graph");
        let exec = instantiate(graph, 0).expect("exec");
        assert_eq!(cu!(cuGraphLaunch(exec, on)), refused);
    }
);
