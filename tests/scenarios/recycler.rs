//! Blocks kept for the program's next request, on the stand-in, which counts every piece of work that begins on memory that is
//! in use (`simgpu/src/cuda/uses.rs`).

use super::*;
use crate::harness::{long, node::Setup, outcome::run};

/// What the stand-in knows of a process, over all devices.
#[track_caller]
fn truth_of(node: &Node, pid: i64, field: &str) -> u64 {
    let truth = node.truth();
    let rows = truth["processes"].as_array().expect("processes");
    let own = rows.iter().filter(|row| row["pid"].as_i64() == Some(pid));
    own.map(|row| row[field].as_u64().unwrap_or_else(|| panic!("no {field}")))
        .sum()
}

fn node(pool: &str) -> Node {
    let quota = format!("[defaults]\nper = \"user\"\nmemory = \"8GiB\"\npool = \"{pool}\"\n");
    Node::start(Setup::quota(quota).devices("h200:2").option("--check-uses", "on"))
}

/// Pairs of allocation and free of one run.
fn pairs() -> String {
    if long() { "20000" } else { "150" }.into()
}

#[test]
fn no_block_is_handed_out_while_work_on_it_is_in_flight() {
    for pool in ["preserve", "elide"] {
        let node = node(pool);
        for (seed, ways) in ["", "t", "p", "tp", "c", "tpc"].into_iter().enumerate() {
            let seed = (seed + 1).to_string();
            let outcome =
                run(node
                    .capped_command(program("recycle", Link::Cuda))
                    .args([&seed, &pairs(), ways]))
                .success();
            assert_eq!(outcome.number("errors"), 0, "{pool} {ways}");
            assert_eq!(outcome.number("spoilt"), 0, "{pool} {ways}: captures");
            let (pid, pairs) = (outcome.number("pid"), outcome.number("pairs"));
            let overlaps = truth_of(&node, pid, "overlaps");
            assert_eq!(overlaps, 0, "{pool} {ways}: handed out in use");
            let allocations = truth_of(&node, pid, "allocations");
            // During a capture everything is the driver's, and with a second device.
            assert!(
                ways.contains(['c', 'p']) || allocations < pairs.unsigned_abs() / 2,
                "{pool} {ways}: {allocations} allocations of the driver's for {pairs} pairs"
            );
        }
    }
}

#[test]
fn the_stand_in_counts_what_a_program_hands_out_too_early() {
    let node = node("off");
    let overlaps = |ways: &str| {
        let outcome = run(node
            .bare_command(program("recycle", Link::Cuda))
            .args(["1", &pairs(), ways]))
        .success();
        assert_eq!(outcome.number("errors"), 0, "{ways}");
        truth_of(&node, outcome.number("pid"), "overlaps")
    };
    for ways in ["", "p"] {
        assert_eq!(overlaps(ways), 0, "the driver's own memory, {ways}");
        assert!(overlaps(&format!("r{ways}")) > 0, "a reckless program, {ways}");
    }
}

/// Bytes that the account keeps for its programs' next requests, and bytes it uses.
fn idle_and_used(node: &Node) -> (u64, u64) {
    let status = node.status();
    let memory = &status["tenants"][0]["devices"][0]["memory"];
    let bytes = |name: &str| memory[name].as_u64().expect("bytes");
    (bytes("pool_idle_bytes"), bytes("used_bytes"))
}

#[test]
fn what_is_kept_is_shown_and_goes_when_it_is_switched_off_or_its_process_is_killed() {
    let node = node("preserve");
    let mut session = client(&node);
    let before = free(&mut session);
    let keep = |session: &mut Session, slot: u32| {
        assert_eq!(session.error(&format!("alloc {}", 8 * MIB)), 0);
        assert_eq!(session.error(&format!("free {slot}")), 0);
    };
    keep(&mut session, 0);
    assert_eq!(idle_and_used(&node), (8 * MIB, CONTEXT + 8 * MIB));
    assert_eq!(free(&mut session), before, "what is kept is free to its program");
    run(&mut node.stint(&["set", "default", "pool=off"])).success();
    assert_eq!(session.error(&format!("alloc {}", 2 * MIB)), 0);
    assert_eq!(session.error("free 1"), 0);
    assert_eq!(idle_and_used(&node), (0, CONTEXT));
    run(&mut node.stint(&["set", "default", "pool=elide"])).success();
    keep(&mut session, 2);
    assert_eq!(idle_and_used(&node).0, 8 * MIB);
    session.kill();
    crate::harness::wait::until("the dead process's memory is back", || {
        node.status()["tenants"]
            .as_array()
            .is_none_or(|tenants| {
                tenants
                    .iter()
                    .all(|tenant| tenant["clients"].as_array().is_none_or(Vec::is_empty))
            })
            .then_some(())
    });
    assert_eq!(node.used(0), 0);
}
