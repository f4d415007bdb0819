//! Processes whose parents have ended: named, ended on request, and never taken for another.

use std::process::Command;

use serde_json::Value;

use super::*;
use crate::harness::{
    installed::{Installed, NEIGHBOUR, TENANT, inside},
    node::Setup,
    outcome::run,
    skip::skip,
    wait::until,
};

fn signal(name: &str, pid: u32) {
    run(Command::new("kill").args([name, &pid.to_string()])).success();
}

fn lives(pid: u32) -> bool {
    // A zombie has ended.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// What `stint reap` prints with these options, and its exit code; `command` is `stint`.
#[track_caller]
fn reap(mut command: Command, options: &[&str]) -> (Vec<Value>, i32, String) {
    let outcome = run(command.args(["reap", "--json"]).args(options));
    let report: Value = serde_json::from_str(&outcome.stdout).expect("a report");
    assert_eq!(report["schema"], "stint.reap/v1");
    let orphans = report["orphans"].as_array().expect("a list").clone();
    (orphans, outcome.code, outcome.stderr)
}

/// A program told its steps, the child of a shell that leads a session; both by pid. `before` runs in the shell first.
#[track_caller]
fn child_of_a_shell(node: &Installed, before: &str) -> (Session, u32, u32) {
    let script = format!("{before} \"$@\" <&3 3<&- & exec 3<&-; echo $$; echo $!; wait");
    let mut command = node.user_command(TENANT, "setsid");
    command.args(["sh", "-c", &format!("exec 3<&0; {script}"), "sh"]);
    let mut session = Session::start(command.arg(inside("steps", Link::Cuda)));
    let number = |session: &mut Session| session.answer().parse().expect("a number");
    let (shell, child) = (number(&mut session), number(&mut session));
    let mut session = begin(session);
    assert_eq!(session.error(&format!("alloc {}", 512 * MIB)), 0);
    (session, shell, child)
}

#[test]
fn a_process_whose_parent_was_killed_is_named_and_can_be_ended() {
    let Some(node) = Installed::start("orphans on an installed node", "[defaults]\nmemory = \"8GiB\"\n")
    else {
        return;
    };
    let stint = |user| match user {
        None => node.stint(&[]),
        Some(user) => node.user_command(user, "/run/art/bin/stint"),
    };
    let (_first, shell, orphan) = child_of_a_shell(&node, "");
    let (_second, nohups_shell, meant) = child_of_a_shell(&node, "trap '' HUP;");
    let (_third, stubborn_shell, stubborn) = child_of_a_shell(&node, "trap '' TERM;");
    let (_fourth, _living_shell, kept) = child_of_a_shell(&node, "");
    assert_eq!(
        reap(stint(None), &["--dry-run"]).0,
        [] as [Value; 0],
        "everybody has a parent"
    );

    for shell in [shell, nohups_shell, stubborn_shell] {
        signal("-KILL", shell);
    }
    let found = until("the orphans are found", || {
        let (found, code, _) = reap(stint(Some(NEIGHBOUR)), &["--dry-run"]);
        assert_eq!(code, 0);
        (found.len() == 3).then_some(found)
    });
    let of = |pid: u32| found.iter().find(|one| one["pid"] == pid).expect("it is listed");
    for (pid, outcome) in [(orphan, "found"), (meant, "spared"), (stubborn, "found")] {
        assert_eq!(of(pid)["outcome"], outcome);
        assert_eq!(of(pid)["user"], "tenant");
        assert_eq!(of(pid)["used_bytes"], 512 * MIB + CONTEXT);
        assert_eq!(of(pid)["why"], "its session's leader has ended");
        assert!(lives(pid), "nothing is ended by a look");
    }
    let shown = run(stint(Some(NEIGHBOUR)).arg("status")).success().stdout;
    let sentence = format!("orphan: pid {orphan} (tenant, steps-cuda) holds 576 MiB, known for ");
    assert!(shown.contains(&sentence), "{shown}");

    let (_, code, stderr) = reap(stint(Some(NEIGHBOUR)), &[]);
    assert_eq!(code, 77, "{stderr}");
    assert!([orphan, meant, stubborn].into_iter().all(lives));

    let (ended, code, stderr) = reap(stint(Some(TENANT)), &[]);
    assert_eq!(code, 0, "{stderr}");
    let outcome = |pid: u32| {
        let one = ended.iter().find(|one| one["pid"] == pid);
        one.map(|one| one["outcome"].clone()).expect("it is listed")
    };
    assert_eq!(
        [orphan, meant, stubborn].map(outcome),
        ["ended", "spared", "killed"].map(Value::from)
    );
    assert!(!lives(orphan) && !lives(stubborn));
    assert!(
        lives(meant) && lives(kept),
        "who ignores SIGHUP and who has a parent are left alone"
    );
    until("what they held is back", || {
        let used = node.status()["tenants"][0]["devices"][0]["memory"]["used_bytes"].as_u64();
        (used == Some(2 * (512 * MIB + CONTEXT))).then_some(())
    });
    signal("-KILL", meant);
}

#[test]
fn what_outlives_its_launch_is_an_orphan() {
    let node = Node::start(Setup::quota(""));
    let script = "exec 3<&0; \"$@\" <&3 3<&- & exec 3<&-; echo $!; wait";
    let mut command = node.tenant_command("lab", "2GiB", "sh");
    command
        .args(["-c", script, "sh"])
        .arg(program("steps", Link::Cuda));
    let mut session = Session::start(&mut command);
    let child: u32 = session.answer().parse().expect("a number");
    let mut session = begin(session);
    assert_eq!(session.error(&format!("alloc {}", 256 * MIB)), 0);
    signal("-KILL", session.pid());
    let found = until("it is found", || {
        let (found, ..) = reap(node.stint(&[]), &["--dry-run"]);
        (!found.is_empty()).then_some(found)
    });
    assert_eq!(found[0]["pid"], child);
    assert_eq!(found[0]["why"], "the `stint run` it was started by has ended");
    assert_eq!(reap(node.stint(&[]), &[]).0[0]["outcome"], "ended");
    assert!(!lives(child));
}

/// The dead client's number belongs to somebody else by the time the daemon looks.
#[test]
fn a_recycled_pid_is_another_process() {
    let mut node = Node::start(Setup::cap("2GiB"));
    let successor = |pid: u32, node: &Node| {
        let mut command = node.capped_command(program("successor", Link::Nothing));
        command.arg(pid.to_string()).arg(program("steps", Link::Cuda));
        Session::start(&mut command)
    };
    let probe = run(Command::new(program("successor", Link::Nothing)).args(["4194303", "true"]));
    if probe.code == 77 {
        skip("recycled process numbers", &probe.stderr);
        return;
    }
    let daemon = node.daemon_pid();
    let mut dead = client(&node);
    assert_eq!(dead.error(&format!("alloc {}", 1024 * MIB)), 0);
    let pid = dead.pid();
    signal("-STOP", daemon);
    dead.kill();
    let mut heir = successor(pid, &node);
    assert_eq!(heir.ask("pid"), pid.to_string());
    signal("-CONT", daemon);
    let used = |node: &Node| node.status()["tenants"][0]["devices"][0]["memory"]["used_bytes"].as_u64();
    until("what the dead one held is back", || {
        (used(&node) == Some(0)).then_some(())
    });
    assert!(lives(pid), "its heir was not touched");
    let mut heir = begin(heir);
    assert_eq!(heir.error(&format!("alloc {}", 512 * MIB)), 0);
    assert_eq!(
        used(&node),
        Some(512 * MIB + CONTEXT),
        "and is a client of its own"
    );

    // The same across a restart: what the daemon's list says of the number is about the dead one.
    node.kill_daemon();
    heir.kill();
    let mut second = successor(pid, &node);
    assert_eq!(second.ask("pid"), pid.to_string());
    node.start_daemon();
    let mut second = begin(second);
    assert_eq!(
        free(&mut second),
        2048 * MIB - CONTEXT,
        "the dead one's charge is not its heir's"
    );
    assert!(reap(node.stint(&[]), &[]).0.is_empty());
    assert!(lives(pid));
}
