//! Ways to come in: whatever a login leaves of the environment, the node is the same.

use super::*;
use crate::harness::{
    outcome::{run, start},
    skip::skip,
};

#[test]
fn every_login_has_the_same_cap() {
    let Some(node) = node("logins on an installed node") else {
        return;
    };
    let steps = steps();
    let with = |mut command: Command, words: &[&str]| {
        command.args(words);
        command
    };
    let ways: [(&str, Command); 7] = [
        ("an empty environment", node.user_command(TENANT, &steps)),
        ("su -", with(node.command("su"), &["-", TENANT.1, "-c", &steps])),
        (
            "su",
            with(
                node.command("su"),
                &["-m", "-s", "/bin/sh", TENANT.1, "-c", &steps],
            ),
        ),
        (
            "cron's environment",
            with(
                node.user_command(TENANT, "env"),
                &[
                    "-i",
                    "SHELL=/bin/sh",
                    "HOME=/",
                    "LOGNAME=tenant",
                    "sh",
                    "-c",
                    &steps,
                ],
            ),
        ),
        (
            "another session",
            with(node.user_command(TENANT, "setsid"), &["-w", &steps]),
        ),
        (
            "another name",
            with(
                node.user_command(TENANT, "bash"),
                &["-c", &format!("exec -a kworker {steps}")],
            ),
        ),
        (
            "a lower priority",
            with(node.user_command(TENANT, "nice"), &[&steps]),
        ),
    ];
    for (way, mut command) in ways {
        let session = capped(way, &mut command);
        assert_eq!(
            charged(&node, TENANT.1),
            512 * MIB + CONTEXT,
            "{way}: the user's own account"
        );
        drop(session);
        until("its memory is back", || {
            (charged(&node, TENANT.1) == 0).then_some(())
        });
    }
}

#[test]
fn no_variable_loosens_a_cap() {
    let Some(node) = node("variables on an installed node") else {
        return;
    };
    let own = "/run/users/tenant/own";
    // A node of the tenant's own, on the same stand-in's libraries, which grants everything.
    node.sh(&format!("mkdir -m 700 {own} && chown {0}:{0} {own}", TENANT.0));
    let mut command = node.user_command(TENANT, "env");
    command.args([
        &format!("STINT_RUN_DIR={own}"),
        "/run/art/bin/stint",
        "daemon",
        "--driver",
        "sim",
    ]);
    let mut private = start(&mut command);
    until("the tenant's own daemon answers or ends", || {
        let answers = node.sh(&format!("test -S {own}/stint.sock && echo yes || true"));
        (answers == "yes\n" || private.ended().is_some()).then_some(())
    });
    let foreign = inside("interposer", Link::Shared);
    let overriding = inside("overrider", Link::Shared);
    let preload = "/run/art/preload/$LIB/libstint.so";
    let lists: [&[&str]; 13] = [
        &[
            "-u",
            "STINT_RUN_DIR",
            "-u",
            "LD_PRELOAD",
            "-u",
            "LD_LIBRARY_PATH",
            "-u",
            "CUDA_VISIBLE_DEVICES",
        ],
        &[&format!("STINT_RUN_DIR={own}")],
        &["STINT_RUN_DIR="],
        &[&format!("XDG_RUNTIME_DIR={own}")],
        &["CUDA_VISIBLE_DEVICES=0"],
        &["CUDA_DEVICE_MEMORY_LIMIT=100g", "CUDA_DEVICE_MEMORY_LIMIT_0=100g"],
        &["CUDA_DISABLE_CONTROL=true", "CUDA_DEVICE_SM_LIMIT=0"],
        &["STINT_LOG=off", "STINT_MODE=observe", "STINT_DISABLE=1"],
        &["LD_LIBRARY_PATH=/usr/lib:/nowhere"],
        &[&format!("LD_PRELOAD={foreign}")],
        &[&format!("LD_PRELOAD={overriding}")],
        &[&format!("LD_PRELOAD={foreign}:{preload}")],
        &[&format!("LD_PRELOAD={preload}:{foreign}")],
    ];
    for list in lists {
        let mut command = node.user_command(TENANT, "env");
        let session = capped(&format!("{list:?}"), command.args(list).arg(steps()));
        assert_eq!(charged(&node, TENANT.1), 512 * MIB + CONTEXT, "{list:?}");
        drop(session);
        until("its memory is back", || {
            (charged(&node, TENANT.1) == 0).then_some(())
        });
    }
    drop(private);
    for words in [["keeper", "--end"], ["sim", "stop"]] {
        let mut stop = node.user_command(TENANT, "env");
        stop.args([&format!("STINT_RUN_DIR={own}"), "/run/art/bin/stint"]);
        run(stop.args(words));
    }
}

#[test]
fn a_program_that_changes_its_user_is_billed_to_who_started_it() {
    let Some(node) = node("setuid programs on an installed node") else {
        return;
    };
    let program = "/run/users/setuid";
    node.sh(&format!(
        "cp {} {program} && chown {}:0 {program} && chmod 4755 {program}",
        steps(),
        NEIGHBOUR.0
    ));
    // The loader's secure mode: no variable counts, the cache does.
    let mut command = node.user_command(TENANT, "env");
    command.args([
        "STINT_RUN_DIR=/nowhere",
        "LD_LIBRARY_PATH=/run/art/sim/13/lib",
        program,
    ]);
    let session = capped("setuid", &mut command);
    assert_eq!(charged(&node, TENANT.1), 512 * MIB + CONTEXT);
    assert_eq!(charged(&node, NEIGHBOUR.1), 0);
    drop(session);
}

#[test]
fn in_namespaces_of_its_own_a_tenant_keeps_its_cap() {
    let Some(node) = node("namespaces on an installed node") else {
        return;
    };
    let lists: [&[&str]; 5] = [
        &["--user", "--map-root-user"],
        &["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"],
        &[
            "--user",
            "--map-root-user",
            "--time",
            "--boottime",
            "1000000",
            "--fork",
        ],
        &["--user", "--map-root-user", "--ipc", "--uts", "--net", "--cgroup"],
        &["--user", "--map-user", "1025"],
    ];
    for list in lists {
        let probe = run(node.user_command(TENANT, "unshare").args(list).arg("true"));
        if probe.code != 0 {
            skip(&format!("a tenant in namespaces {list:?}"), &probe.stderr);
            continue;
        }
        let mut command = node.user_command(TENANT, "unshare");
        let session = capped(&format!("{list:?}"), command.args(list).arg(steps()));
        assert_eq!(charged(&node, TENANT.1), 512 * MIB + CONTEXT, "{list:?}");
        drop(session);
        until("its memory is back", || {
            (charged(&node, TENANT.1) == 0).then_some(())
        });
    }
    // Who may mount can hide the node from the shim, and is seen.
    let hide = "mkdir -p /run/hidden/sim && mount --bind /run/stint/sim /run/hidden/sim && mount -t tmpfs none /run/stint \
                && STINT_RUN_DIR=/run/hidden exec \"$@\"";
    let mut command = node.command("unshare");
    command.args(["--mount", "sh", "-c", hide, "sh"]).arg(steps());
    let mut session = begin(Session::start(&mut command));
    assert_eq!(session.error(&format!("alloc {}", 2048 * MIB)), 0);
    reported_session(&node, "a hidden node", &session);
}
