//! Wrong values and calls: one clear message from ours, the driver's own answer from a hooked call.

use super::*;
use crate::harness::{node::Setup, outcome::run, skip::skip};

#[test]
fn caps_that_mean_nothing_are_refused_with_one_clear_line() {
    let node = Node::start(Setup::quota(""));
    for value in [
        "0",
        "",
        "0m",
        "-1",
        "1e9",
        "12 GiB",
        "8",
        "-1GiB",
        "99999999999999TiB",
        "GiB",
        "1.5.2GiB",
    ] {
        let outcome = run(&mut node.tenant_command("t", value, "/bin/true"));
        assert_eq!(outcome.code, 64, "{value:?}: {outcome:?}");
        assert!(
            !outcome.stderr.trim().is_empty() && outcome.stdout.is_empty(),
            "{value:?}: {outcome:?}"
        );
    }
}

#[test]
fn a_quota_file_with_such_a_cap_starts_no_daemon() {
    for value in [
        "0",
        "\"\"",
        "\"0m\"",
        "\"-1\"",
        "\"1e9\"",
        "\"12 GiB\"",
        "8589934592",
    ] {
        let node = Node::bare(Setup::default());
        let config = node.directory().join("wrong.toml");
        std::fs::write(&config, format!("[defaults]\nmemory = {value}\n"))
            .expect("a quota file can be written");
        let outcome = run(node
            .stint(&["daemon", "--driver", "sim", "--config"])
            .arg(&config));
        assert_eq!(outcome.code, 78, "{value}: {outcome:?}");
        assert!(
            outcome.stderr.contains("wrong.toml:2"),
            "{value}: no file and line in {}",
            outcome.stderr
        );
    }
}

#[test]
fn a_private_node_that_cannot_start_says_why() {
    let place = tempfile::tempdir().expect("a directory can be made");
    let mut command = std::process::Command::new(crate::harness::artefacts::directory().join("bin/stint"));
    command.args(["run", "--driver", "sim", "--devices", "foo", "--", "true"]);
    let outcome = run(command.env("STINT_RUN_DIR", place.path().join("node")));
    assert_eq!(outcome.code, 125, "{outcome:?}");
    assert!(outcome.stderr.contains("no device model `foo`"), "{outcome:?}");
}

#[test]
fn only_device_memory_is_charged_whatever_the_unused_fields_hold() {
    let node = Node::start(Setup::cap("1GiB"));
    let bare = run(&mut node.bare_command(program("locations", Link::Cuda))).success();
    let capped = run(&mut node.capped_command(program("locations", Link::Cuda))).success();
    assert_eq!(bare, capped);
    assert!(
        capped.stdout.contains(&format!("device 0 {}", 64 * MIB)),
        "{}",
        capped.stdout
    );
}

#[test]
fn memcheck_finds_nothing_in_such_calls() {
    let valgrind = std::process::Command::new("valgrind").arg("--version").output();
    if valgrind.is_err() {
        return skip(
            "memcheck over host and device locations",
            "needs the package valgrind",
        );
    }
    let node = Node::start(Setup::cap("1GiB"));
    let mut command = node.capped_command("valgrind");
    command
        .args(["--quiet", "--error-exitcode=9", "--undef-value-errors=no", "--"])
        .arg(program("locations", Link::Cuda));
    let outcome = run(&mut command);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
}

#[test]
fn calls_made_while_the_process_ends_answer_as_without_us() {
    let node = Node::start(Setup::cap("4GiB"));
    let bare = run(&mut node.bare_command(program("late", Link::Cuda)));
    let capped = run(&mut node.capped_command(program("late", Link::Cuda)));
    assert_eq!(bare, capped);
    assert_eq!(capped.stdout.lines().count(), 6, "{}", capped.stdout);
}
