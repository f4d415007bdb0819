//! Graphs that allocate: charged from the first launch to a trimming, refused where the driver would refuse, given back by death.

use super::*;
use crate::harness::{node::Setup, wait::until};

/// Bytes that the daemon says the one account uses.
fn charged(node: &Node) -> u64 {
    node.status()["tenants"][0]["devices"][0]["memory"]["used_bytes"]
        .as_u64()
        .expect("used_bytes")
}

#[test]
fn what_graphs_hold_is_charged_exactly() {
    let node = Node::start(Setup::cap("1GiB"));
    let mut session = client(&node);
    for (call, slot) in [("graph", 0), ("captured", 1)] {
        let before = node.used(0);
        assert_eq!(session.ask(&format!("{call} {}", 96 * MIB)), format!("0 {slot}"));
        assert_eq!(
            (node.used(0), charged(&node)),
            (before + 96 * MIB, before + 96 * MIB)
        );
        assert_eq!(session.ask(&format!("again {slot}")), "0");
        assert_eq!(
            (node.used(0), charged(&node)),
            (before + 96 * MIB, before + 96 * MIB),
            "the same memory"
        );
    }
    for slot in [0, 1] {
        assert_eq!(session.ask(&format!("free {slot}")), "0");
    }
    assert_eq!(charged(&node), CONTEXT + 192 * MIB, "kept for the next graph");
    assert_eq!(session.ask("trim"), "0");
    assert_eq!((node.used(0), charged(&node)), (CONTEXT, CONTEXT));
    assert_eq!(session.close(), 0);
}

#[test]
fn idle_memory_of_graphs_makes_room_for_others() {
    let node = Node::start(Setup::cap("1GiB"));
    let mut session = client(&node);
    assert_eq!(session.ask(&format!("graph {}", 512 * MIB)), "0 0");
    assert_eq!(
        session.error(&format!("alloc {}", 768 * MIB)),
        OUT_OF_MEMORY,
        "in use"
    );
    assert_eq!(session.ask("free 0"), "0");
    assert_eq!(session.error(&format!("alloc {}", 768 * MIB)), 0, "idle");
    assert_eq!(session.error(&format!("graph {}", 512 * MIB)), OUT_OF_MEMORY);
    assert!(node.high_water(0) <= 1024 * MIB);
}

#[test]
fn a_killed_process_leaves_no_graph_memory() {
    let node = Node::start(Setup::cap("1GiB"));
    let mut session = client(&node);
    assert_eq!(session.ask(&format!("captured {}", 512 * MIB)), "0 0");
    session.kill();
    until("its memory is nobody's", || {
        let gone = node.used(0) == 0
            && node.status()["tenants"][0]["devices"][0]["memory"]["used_bytes"]
                .as_u64()
                .unwrap_or(0)
                == 0;
        gone.then_some(())
    });
    let mut next = client(&node);
    assert_eq!(next.ask(&format!("graph {}", 896 * MIB)), "0 0");
    assert_eq!(charged(&node), node.used(0));
}
