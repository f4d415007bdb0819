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
    assert_eq!(outcome.code, 64, "{outcome:?}");
    assert_eq!(
        outcome.stderr,
        "stint: --devices: no device model `foo`; there are h200, h100, a100, l4, t4\n"
    );
    // The node's process leaves the telling to who asked: else it would stand there twice now and then.
    let mut command = std::process::Command::new(crate::harness::artefacts::directory().join("bin/stint"));
    command.args(["private-node", "--driver", "sim", "--devices", "foo"]);
    let outcome = run(command.env("STINT_RUN_DIR", place.path().join("node")));
    assert_eq!((outcome.code, outcome.stderr.as_str()), (64, ""), "{outcome:?}");
    assert!(outcome.stdout.contains("no device model"), "{outcome:?}");
}

#[test]
fn a_command_that_cannot_be_run_is_told_from_one_that_is_not_there() {
    let node = Node::start(Setup::quota(""));
    for (command, code, told) in [
        (
            "no-such-command",
            127,
            "stint: no-such-command: there is no such command\n",
        ),
        (
            "/etc/passwd",
            126,
            "stint: /etc/passwd: it cannot be executed: Permission denied (os error 13)\n",
        ),
    ] {
        let outcome = run(&mut node.stint(&["run", "--", command]));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (code, told));
    }
}

#[test]
fn a_command_with_a_process_group_of_its_own_ends_as_without_us() {
    let node = Node::start(Setup::quota(""));
    for (command, code) in [
        (&["setsid", "true"] as &[&str], 0),
        (&["timeout", "60", "sh", "-c", "exit 3"], 3),
    ] {
        let outcome = run(node.stint(&["run", "--"]).args(command));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (code, ""), "{command:?}");
    }
}

#[test]
fn an_empty_variable_names_no_run_directory_and_help_is_of_the_program_that_does_the_work() {
    let node = Node::unstarted(Setup::default());
    let outcome = run(node.stint(&["status"]).env("STINT_RUN_DIR", ""));
    assert_ne!(outcome.code, 64, "{outcome:?}");
    let help = run(&mut node.stint(&["sim", "start", "--help"])).success();
    assert!(help.stdout.contains("--time-scale"), "{help:?}");
}

#[test]
fn devices_that_a_running_stand_in_does_not_have_are_not_ignored() {
    let node = Node::bare(Setup::default());
    for (words, code) in [
        (
            &["daemon", "--driver", "sim", "--devices", "h200:2"] as &[&str],
            1,
        ),
        (
            &["run", "--driver", "sim", "--devices", "h200:2", "--", "true"],
            125,
        ),
    ] {
        let outcome = run(&mut node.stint(words));
        assert_eq!(outcome.code, code, "{outcome:?}");
        assert!(
            outcome.stderr.contains("a stand-in node with h200:1 runs at")
                && outcome.stderr.contains("not one with h200:2"),
            "{outcome:?}"
        );
    }
    let same = ["run", "--driver", "sim", "--devices", "h200:1", "--", "true"];
    run(&mut node.stint(&same)).success();
}

#[test]
fn devices_a_command_shall_see_must_be_there() {
    let node = Node::start(Setup::quota("").devices("h200:2"));
    for list in ["2", "0,0", "GPU-ffffffff", ""] {
        let outcome = run(&mut node.stint(&["run", "--gpus", list, "--", "true"]));
        assert_eq!(outcome.code, 64, "{list}: {outcome:?}");
        assert!(outcome.stderr.starts_with("stint: --gpus: "), "{outcome:?}");
    }
    let words = [
        "run",
        "--gpus",
        "1,0",
        "--",
        "sh",
        "-c",
        "echo $CUDA_VISIBLE_DEVICES",
    ];
    let status = node.status();
    let uuid = |device: usize| status["devices"][device]["uuid"].as_str().expect("a UUID");
    assert_eq!(
        run(&mut node.stint(&words)).success().stdout,
        format!("{},{}\n", uuid(1), uuid(0))
    );
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
