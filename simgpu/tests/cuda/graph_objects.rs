//! Objects of the program that graphs keep alive.

use crate::graphs::{graph, instantiate};
use crate::harness::{begin, cu, on_a_node};
use driver::abi::*;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

static GONE: AtomicU32 = AtomicU32::new(0);

extern "C" fn gone(_: *mut c_void) {
    GONE.fetch_add(1, Ordering::SeqCst);
}

fn is_gone(count: u32) {
    while GONE.load(Ordering::SeqCst) < count {
        std::thread::yield_now();
    }
    stays(count);
}

/// Long enough for a function that is called too early to be seen.
fn stays(count: u32) {
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(GONE.load(Ordering::SeqCst), count);
}

/// A graph that alone keeps an object alive.
fn keeper() -> CUgraph {
    let graph = graph();
    let mut object = null_mut();
    let destroy = gone as *mut c_void;
    cu!(cuUserObjectCreate(&mut object, null_mut(), destroy, 1, 1)).expect("object");
    cu!(cuGraphRetainUserObject(graph, object, 1, 1)).expect("moved");
    graph
}

on_a_node!(objects_of_child_graphs_live_as_long_as_what_runs_them, [], || {
    begin();
    let (child, parent) = (keeper(), graph());
    let mut node = null_mut();
    cu!(cuGraphAddChildGraphNode(&mut node, parent, null(), 0, child)).expect("child");
    let exec = instantiate(parent, 0).expect("exec");
    cu!(cuGraphDestroy(child)).expect("destroy");
    cu!(cuGraphDestroy(parent)).expect("destroy");
    stays(0);
    cu!(cuGraphExecDestroy(exec)).expect("destroy");
    is_gone(1);
});

on_a_node!(an_update_takes_the_objects_of_the_new_graph, [], || {
    begin();
    let (plain, keeping) = (graph(), keeper());
    let exec = instantiate(plain, 0).expect("exec");
    let update = |to| {
        let mut info = CUgraphExecUpdateResultInfo {
            result: 9,
            errorNode: null_mut(),
            errorFromNode: null_mut(),
        };
        cu!(cuGraphExecUpdate_v2(exec, to, &mut info)).expect("update");
    };
    update(keeping);
    cu!(cuGraphDestroy(keeping)).expect("destroy");
    stays(0);
    update(plain);
    is_gone(1);
});

on_a_node!(an_object_outlives_the_launch_that_may_use_it, [], || {
    begin();
    static OPEN: AtomicBool = AtomicBool::new(false);
    extern "C" fn gate(_: *mut c_void) {
        while !OPEN.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
    let graph = keeper();
    let mut node = null_mut();
    let host = CUDA_HOST_NODE_PARAMS {
        function: gate as *mut c_void,
        userData: null_mut(),
    };
    cu!(cuGraphAddHostNode(&mut node, graph, null(), 0, &host)).expect("host node");
    let exec = instantiate(graph, 0).expect("exec");
    cu!(cuGraphLaunch(exec, null_mut())).expect("launch");
    cu!(cuGraphExecDestroy(exec)).expect("destroy");
    cu!(cuGraphDestroy(graph)).expect("destroy");
    stays(0);
    OPEN.store(true, Ordering::SeqCst);
    is_gone(1);
});
