//! Objects of the program that graphs keep alive.

use crate::graphs::{graph, instantiate};
use crate::harness::{begin, cu, on_a_node};
use driver::abi::*;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

static GONE: AtomicU32 = AtomicU32::new(0);

extern "C" fn gone(_: *mut c_void) {
    GONE.fetch_add(1, Ordering::SeqCst);
}

fn is_gone(object: CUuserObject) {
    let watchdog = Instant::now() + Duration::from_secs(60);
    while GONE.load(Ordering::SeqCst) == 0 {
        assert!(Instant::now() < watchdog, "never destroyed");
        std::thread::yield_now();
    }
    assert_eq!(GONE.load(Ordering::SeqCst), 1);
    assert!(
        cu!(cuUserObjectRetain(object, 1)).is_err(),
        "nobody can hold it any more"
    );
}

/// It can be held as long as somebody else holds it, and not after its last reference went, however late its function runs.
fn stays(object: CUuserObject) {
    cu!(cuUserObjectRetain(object, 1)).expect("somebody holds it");
    cu!(cuUserObjectRelease(object, 1)).expect("release");
    assert_eq!(GONE.load(Ordering::SeqCst), 0);
}

/// A graph that alone keeps an object alive.
fn keeper() -> (CUgraph, CUuserObject) {
    let graph = graph();
    let mut object = null_mut();
    let destroy = gone as *mut c_void;
    cu!(cuUserObjectCreate(&mut object, null_mut(), destroy, 1, 1)).expect("object");
    cu!(cuGraphRetainUserObject(graph, object, 1, 1)).expect("moved");
    (graph, object)
}

on_a_node!(objects_of_child_graphs_live_as_long_as_what_runs_them, [], || {
    begin();
    let ((child, object), parent) = (keeper(), graph());
    let mut node = null_mut();
    cu!(cuGraphAddChildGraphNode(&mut node, parent, null(), 0, child)).expect("child");
    let exec = instantiate(parent, 0).expect("exec");
    cu!(cuGraphDestroy(child)).expect("destroy");
    cu!(cuGraphDestroy(parent)).expect("destroy");
    stays(object);
    cu!(cuGraphExecDestroy(exec)).expect("destroy");
    is_gone(object);
});

on_a_node!(an_update_takes_the_objects_of_the_new_graph, [], || {
    begin();
    let (plain, (keeping, object)) = (graph(), keeper());
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
    stays(object);
    update(plain);
    is_gone(object);
});

on_a_node!(an_object_outlives_the_launch_that_may_use_it, [], || {
    begin();
    static OPEN: AtomicBool = AtomicBool::new(false);
    extern "C" fn gate(_: *mut c_void) {
        while !OPEN.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
    let (graph, object) = keeper();
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
    stays(object);
    OPEN.store(true, Ordering::SeqCst);
    is_gone(object);
});
