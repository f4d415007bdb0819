//! The ways programs start further programs: fork, vfork, exec, posix_spawn, and very many short ones.

use super::*;
use crate::harness::{
    long,
    node::Setup,
    outcome::{Outcome, run},
    wait::until,
};

#[track_caller]
fn processes(node: &Node, words: &[&str]) -> Outcome {
    run(node.capped_command(program("processes", Link::Cuda)).args(words)).success()
}

/// Pids the daemon lists as clients.
#[track_caller]
fn clients(node: &Node) -> Vec<u64> {
    let status = node.status();
    let tenants = status["tenants"].as_array().into_iter().flatten();
    tenants
        .flat_map(|tenant| tenant["clients"].as_array().into_iter().flatten())
        .filter_map(|client| client["pid"].as_u64())
        .collect()
}

#[test]
fn workers_forked_before_the_first_call_are_clients_of_their_own() {
    let node = Node::start(Setup::cap("16GiB"));
    assert_eq!(
        processes(&node, &["prefork", "32", "67108864"]).number("good"),
        32
    );
    until("no client is left", || clients(&node).is_empty().then_some(()));
}

#[test]
fn a_child_forked_after_the_first_call_gets_what_the_driver_says() {
    let node = Node::start(Setup::cap("1GiB"));
    let bare = run(node
        .bare_command(program("processes", Link::Cuda))
        .arg("after-init"))
    .success();
    let capped = processes(&node, &["after-init"]);
    assert_eq!(bare, capped);
    assert_eq!(capped.number("child_alloc"), 3, "CUDA_ERROR_NOT_INITIALIZED");
    assert_eq!(capped.number("parent_alloc"), 0, "the parent goes on");
}

#[test]
fn children_that_become_another_program_are_clients_of_their_own() {
    let node = Node::start(Setup::cap("4GiB"));
    for how in ["fork-exec", "vfork-exec", "spawn"] {
        let bare = run(node
            .bare_command(program("processes", Link::Cuda))
            .args([how, "1048576"]))
        .success();
        let capped = processes(&node, &[how, "1048576"]);
        assert_eq!(
            capped, bare,
            "{how}: no descriptor of ours is inherited, nothing else differs"
        );
        assert_eq!(
            (capped.number("child_end"), capped.number("parent_alloc")),
            (0, 0),
            "{how}"
        );
        let refused = processes(&node, &[how, &(8u64 << 30).to_string()]);
        assert_eq!(refused.number("leaf"), 2, "{how}: the child has the same cap");
    }
}

#[test]
fn a_process_that_execs_itself_again_and_again_holds_only_its_last_memory() {
    let node = Node::start(Setup::cap("1GiB"));
    let half = (512 * MIB).to_string();
    let outcome = processes(&node, &["exec-chain", "20", &half]);
    assert_eq!(
        outcome.stdout.lines().filter(|line| *line == "alloc=0").count(),
        21,
        "{}",
        outcome.stdout
    );
    assert!(node.high_water(0) <= 1024 * MIB);
}

#[test]
fn the_daemon_lists_one_client_per_process() {
    let node = Node::start(Setup::cap("16GiB"));
    let mut sessions: Vec<Session> = (0..5).map(|_| client(&node)).collect();
    let mut expected: Vec<u64> = sessions.iter().map(|session| session.pid().into()).collect();
    for session in &mut sessions {
        assert_eq!(session.error("init"), 0, "a second cuInit is no second client");
    }
    expected.sort_unstable();
    let mut listed = clients(&node);
    listed.sort_unstable();
    assert_eq!(listed, expected);
}

#[test]
fn thousands_of_short_processes_use_nothing_up() {
    let node = Node::start(Setup::cap("4GiB"));
    let count = if long() { 5000 } else { 1100 }; // more than an account has slots
    let at_once = 32;
    for _ in 0..count / at_once {
        assert_eq!(
            processes(&node, &["prefork", &at_once.to_string(), "1048576"]).number("good"),
            at_once
        );
    }
    until("no client is left", || clients(&node).is_empty().then_some(()));
    let mut session = client(&node);
    assert_eq!(free(&mut session), 4096 * MIB - CONTEXT);
}

#[test]
fn the_daemon_lists_all_of_many_that_start_at_once() {
    let node = Node::start(Setup::cap("64GiB"));
    let count = if long() { 300 } else { 60 };
    let mut sessions: Vec<Session> = (0..count)
        .map(|_| Session::start(&mut node.capped_command(program("steps", Link::Cuda))))
        .collect();
    for session in &mut sessions {
        session.tell("init");
    }
    for session in &mut sessions {
        assert_eq!(session.answer(), "0");
    }
    assert_eq!(clients(&node).len(), count);
}
