//! Ends of processes: whatever way one goes, what it held is the others' again, and they never notice.

use super::*;
use crate::harness::{long, node::Setup, wait::until};

/// Waits until the account shows no more than `most` bytes in use.
#[track_caller]
fn settled(node: &Node, most: u64) {
    until("the account gets back what the dead process held", || {
        let used = node.status()["tenants"]
            .as_array()?
            .iter()
            .filter_map(|t| t["devices"][0]["memory"]["used_bytes"].as_u64())
            .sum::<u64>();
        (used <= most).then_some(())
    });
}

#[test]
fn memory_of_a_finished_process_is_the_next_ones_however_it_ended() {
    let node = Node::start(Setup::cap("2GiB"));
    let rounds = if long() { 200 } else { 4 };
    for round in 0..rounds {
        for end in ["close", "exit", "_exit", "abort", "exec", "kill"] {
            let mut first = client(&node);
            assert_eq!(
                first.error(&format!("alloc {}", 1536 * MIB)),
                0,
                "round {round}, before {end}"
            );
            match end {
                "close" => assert_eq!(first.close(), 0),
                "kill" => first.kill(),
                other => {
                    first.tell(other);
                    if other != "exec" {
                        let _any_end = first.close();
                    } else {
                        // The process lives on as another program; its memory is gone all the same.
                        settled(&node, 0);
                    }
                }
            }
            settled(&node, 0);
        }
    }
    assert!(node.high_water(0) <= 2048 * MIB);
}

#[test]
fn daemon_and_device_agree_that_a_killed_process_holds_nothing() {
    let node = Node::start(Setup::cap("4GiB"));
    let mut session = client(&node);
    assert_eq!(session.error(&format!("alloc {}", 1024 * MIB)), 0);
    assert!(node.used(0) >= 1024 * MIB);
    let pid = session.pid();
    session.kill();
    settled(&node, 0);
    until("the device is empty", || (node.used(0) == 0).then_some(()));
    let status = node.status();
    let pids: Vec<_> = status["tenants"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|tenant| tenant["clients"].as_array().into_iter().flatten())
        .map(|client| client["pid"].clone())
        .collect();
    assert!(!pids.contains(&pid.into()), "{pids:?} still lists {pid}");
    let left: Vec<_> = node
        .events()
        .into_iter()
        .filter(|event| event["kind"] == "reclaimed" && event["pid"] == pid)
        .collect();
    assert_eq!(left.len(), 1, "one event says so");
}

#[test]
fn the_middle_one_dies_and_the_others_keep_their_charge() {
    let node = Node::start(Setup::cap("4GiB").option("--timing", "null"));
    let mut all: Vec<Session> = (0..3).map(|_| client(&node)).collect();
    for session in &mut all {
        assert_eq!(session.error(&format!("alloc {}", 512 * MIB)), 0);
    }
    all[1].kill();
    settled(&node, 2 * (512 * MIB + CONTEXT));
    let before = free(&mut all[0]);
    let pairs = if long() { 10_000 } else { 1_000 };
    for session in [0, 2] {
        assert_eq!(
            all[session].ask(&format!("churn {pairs} {}", 64 * MIB)),
            format!("0 {pairs}")
        );
    }
    assert_eq!(free(&mut all[0]), before);
    assert_eq!(free(&mut all[2]), before);
    assert_eq!(before, 4096 * MIB - 2 * (512 * MIB + CONTEXT));
}

#[test]
fn killing_tenants_in_the_middle_of_calls_hurts_nobody_else() {
    let node = Node::start(Setup::quota("").option("--timing", "null"));
    let mut neighbour = tenant(&node, "neighbour", "4GiB");
    let before = free(&mut neighbour);
    let kills = if long() { 500 } else { 30 };
    for _ in 0..kills {
        let mut victim = tenant(&node, "victim", "1GiB");
        victim.tell(&format!("churn 1000000 {}", 2 * MIB));
        // As long as the neighbour takes for its own work: a different point of the victim's loop each time.
        assert_eq!(neighbour.ask(&format!("churn 50 {}", 64 * MIB)), "0 50");
        victim.kill();
    }
    assert_eq!(free(&mut neighbour), before);
    drop(neighbour);
    settled(&node, 0);
    let mut heir = tenant(&node, "victim", "1GiB");
    assert_eq!(
        free(&mut heir),
        1024 * MIB - CONTEXT,
        "the killed ones left nothing charged"
    );
}

#[test]
fn a_stopped_client_holds_up_nobody() {
    let node = Node::start(Setup::cap("4GiB").option("--timing", "null"));
    let (mut stopped, mut other) = (client(&node), client(&node));
    stopped.tell(&format!("churn 1000000 {}", 2 * MIB));
    let signal = |name: &str| {
        crate::harness::outcome::run(
            std::process::Command::new("kill").args([name, &stopped.pid().to_string()]),
        )
        .success()
    };
    signal("-STOP");
    assert_eq!(other.ask(&format!("churn 100 {}", 64 * MIB)), "0 100");
    let mut newcomer = client(&node);
    assert_eq!(newcomer.ask(&format!("churn 100 {}", 64 * MIB)), "0 100");
    signal("-CONT");
}

#[test]
fn programs_go_on_with_their_limits_when_the_daemon_is_gone() {
    let mut node = Node::start(Setup::cap("1GiB"));
    let mut session = client(&node);
    assert_eq!(session.error(&format!("alloc {}", 256 * MIB)), 0);
    node.kill_daemon();
    assert_eq!(session.error(&format!("alloc {}", 256 * MIB)), 0);
    assert_eq!(session.error(&format!("alloc {}", 1024 * MIB)), OUT_OF_MEMORY);
    assert_eq!(session.error("free 0"), 0);
    assert_eq!(free(&mut session), 1024 * MIB - CONTEXT - 256 * MIB);
}
