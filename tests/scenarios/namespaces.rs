//! Tenants in namespaces of their own: the kernel tells the daemon who they are, and their own numbers are what they see.

use super::*;
use crate::harness::{node::Setup, outcome::run, skip::skip, wait::until};

/// Whether `unshare` with these options works for us; else one line says so.
fn allowed(what: &str, options: &[&str]) -> bool {
    let mut command = std::process::Command::new("unshare");
    let outcome = run(command.args(options).arg("true"));
    if outcome.code != 0 {
        skip(what, &outcome.stderr);
    }
    outcome.code == 0
}

/// The pid, in the daemon's namespace, of the client of `tenant` that holds `bytes`.
#[track_caller]
fn outer_pid(node: &Node, tenant: &str, bytes: u64) -> String {
    let status = node.status();
    let entries = status["tenants"].as_array().into_iter().flatten();
    let clients = entries
        .filter(|entry| entry["name"] == tenant)
        .flat_map(|entry| entry["clients"].as_array().into_iter().flatten());
    clients
        .filter(|client| client["used_bytes"] == bytes)
        .map(|client| client["pid"].to_string())
        .next()
        .unwrap_or_else(|| panic!("no client of {tenant} holds {bytes}: {status:#}"))
}

/// Waits until a process that starts now has another start time than any before: those are in hundredths of a second, and
/// in a namespace of its own the twin has little else to tell a tenant's processes apart by.
fn next_instant() {
    let uptime = || {
        let text = std::fs::read_to_string("/proc/uptime").expect("there is a clock");
        let seconds = text
            .split_ascii_whitespace()
            .next()
            .and_then(|word| word.parse::<f64>().ok());
        (seconds.expect("a number") * 100.0) as u64
    };
    let before = uptime();
    until("the clock moves on", || (uptime() > before + 1).then_some(()));
}

/// A client of tenant `ours` started by way of `words`, which holds `bytes`.
#[track_caller]
fn inside(node: &Node, words: &[&str], bytes: u64) -> Session {
    let mut command = node.tenant_command("ours", "4GiB", words[0]);
    command.args(&words[1..]).arg(program("steps", Link::Cuda));
    next_instant();
    let mut session = begin(Session::start(&mut command));
    assert_eq!(session.error(&format!("alloc {bytes}")), 0);
    session
}

#[test]
fn a_tenant_in_a_pid_namespace_is_listed_by_its_own_numbers_and_alone() {
    let options = ["--pid", "--fork", "--mount-proc"];
    if !allowed("NVML in a pid namespace", &options) {
        return;
    }
    let node = Node::start(Setup::quota(""));
    let mut theirs = tenant(&node, "theirs", "4GiB");
    assert_eq!(theirs.error(&format!("alloc {}", 512 * MIB)), 0);
    let mut outside = inside(&node, &["env"], 128 * MIB);
    let mut first = inside(&node, &[&["unshare"], &options[..]].concat(), 256 * MIB);
    let leader = outer_pid(&node, "ours", 256 * MIB + CONTEXT);
    let enter = ["nsenter", "--target", &leader, "--pid", "--mount"];
    let mut second = inside(&node, &enter, 320 * MIB);
    let numbers = [first.numbers("pid")[0], second.numbers("pid")[0]];
    assert_eq!(numbers[0], 1, "the first of its namespace");

    let mut expected = vec![
        (numbers[0], 256 * MIB + CONTEXT),
        (numbers[1], 320 * MIB + CONTEXT),
    ];
    expected.sort_unstable();
    for session in [&mut first, &mut second] {
        assert_eq!(listed(session), expected);
    }
    let third = (outside.numbers("pid")[0], 128 * MIB + CONTEXT);
    let outer = |bytes| outer_pid(&node, "ours", bytes).parse().expect("a pid");
    let mut all = vec![
        third,
        (outer(256 * MIB + CONTEXT), 256 * MIB + CONTEXT),
        (outer(320 * MIB + CONTEXT), 320 * MIB + CONTEXT),
    ];
    all.sort_unstable();
    assert_eq!(
        listed(&mut outside),
        all,
        "from above, its namespace's own numbers of all of the tenant's"
    );

    let mut bare = bare(&node);
    let everybody = listed(&mut bare);
    assert_eq!(
        everybody.len(),
        5,
        "the driver itself lists whoever has a context: {everybody:?}"
    );
}

#[test]
fn a_tenant_in_a_time_namespace_is_capped_and_listed_all_the_same() {
    let options = ["--time", "--boottime", "1000000", "--fork"];
    if !allowed("NVML in a time namespace", &options) {
        return;
    }
    let node = Node::start(Setup::quota(""));
    let mut session = inside(&node, &[&["unshare"], &options[..]].concat(), 256 * MIB);
    let own = session.numbers("pid")[0];
    assert_eq!(listed(&mut session), [(own, 256 * MIB + CONTEXT)]);
    assert_eq!(session.error(&format!("alloc {}", 4096 * MIB)), OUT_OF_MEMORY);
}

/// What NVML lists on device 0: pid and bytes, in order.
#[track_caller]
fn listed(session: &mut Session) -> Vec<(u64, u64)> {
    let numbers = session.numbers("listed 0");
    assert_eq!(numbers[0], 0, "NVML's error");
    let mut list: Vec<_> = numbers[1..].chunks(2).map(|pair| (pair[0], pair[1])).collect();
    list.sort_unstable();
    list
}
