//! Who a process is taken for: by its user, its control group, its container, its batch job, and what each may ask.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::*;
use crate::harness::{
    installed::{Installed, NEIGHBOUR, TENANT, inside},
    outcome::run,
    skip::skip,
    wait::until,
};

/// A container's id.
const ID: &str = "3f1c0a4b5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708";

/// A directory of control groups of this test's own; what is in it is removed when dropped.
struct Groups {
    top: PathBuf,
    /// Its path as processes in it show it.
    path: String,
}

impl Groups {
    /// In the unified hierarchy, wherever this machine has it; `None`, and one line for `what`, where we may make none.
    fn make(what: &str, name: &str) -> Option<Groups> {
        let path = format!("/stint-{name}-{}", std::process::id());
        for root in ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"] {
            let top = Path::new(root).join(&path[1..]);
            if Path::new(root).join("cgroup.procs").exists() && fs::create_dir(&top).is_ok() {
                return Some(Groups { top, path });
            }
        }
        skip(what, "no control group can be made here");
        None
    }

    /// Makes a group and those above it.
    #[track_caller]
    fn group(&self, below: &str) -> PathBuf {
        let group = self.top.join(below);
        fs::create_dir_all(&group).expect("a control group can be made");
        group
    }

    /// A program of `user` in `group`, told its steps.
    #[track_caller]
    fn session(&self, node: &Installed, group: &Path, user: (u32, &str)) -> Session {
        let join = format!("echo 0 > {}/cgroup.procs; exec \"$@\"", group.display());
        let mut command = node.command("sh");
        command.args(["-ec", &join, "sh", "setpriv"]);
        let number = user.0.to_string();
        command.args(["--reuid", &number, "--regid", &number, "--clear-groups", "--"]);
        begin(Session::start(command.arg(steps())))
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        fn remove(directory: &Path) {
            let below = fs::read_dir(directory).into_iter().flatten().flatten();
            for entry in below.filter(|entry| entry.path().is_dir()) {
                remove(&entry.path());
            }
            let _not_empty = fs::remove_dir(directory);
        }
        remove(&self.top);
    }
}

fn steps() -> String {
    inside("steps", Link::Cuda)
}

/// The account with a client of this pid, as the daemon shows it.
#[track_caller]
fn account_of(node: &Installed, pid: u32) -> String {
    let status = node.status();
    let accounts = status["tenants"].as_array().into_iter().flatten();
    let mut found = accounts.filter(|account| {
        let mut clients = account["clients"].as_array().into_iter().flatten();
        clients.any(|client| client["pid"] == pid)
    });
    let account = found
        .next()
        .unwrap_or_else(|| panic!("no client {pid} in {status:#}"));
    account["account"].as_str().expect("a name").to_owned()
}

/// Bytes in use of an account; `None`: there is none of that name.
fn used(node: &Installed, account: &str) -> Option<u64> {
    let status = node.status();
    let mut accounts = status["tenants"].as_array().into_iter().flatten();
    let found = accounts.find(|entry| entry["account"] == account)?;
    found["devices"][0]["memory"]["used_bytes"].as_u64()
}

/// Bytes the stand-in says are in use on its device.
fn really_used(node: &Installed) -> u64 {
    let used: &Value = &node.truth()["devices"][0]["used_bytes"];
    used.as_u64().expect("used_bytes")
}

#[test]
fn users_may_read_and_lower_what_they_have_and_nothing_else() {
    let Some(node) = Installed::start("what users may ask", "[defaults]\nmemory = \"1GiB\"\n") else {
        return;
    };
    let stint = |words: &[&str]| {
        let mut command = node.user_command(TENANT, "/run/art/bin/stint");
        command.args(words);
        command
    };
    for verb in [
        &["status"][..],
        &["status", "--json"],
        &["events"],
        &["reap", "--dry-run"],
    ] {
        run(&mut stint(verb)).success();
    }
    let with = |words: &[&str]| {
        let mut session = begin(Session::start(stint(words).arg("--").arg(steps())));
        free(&mut session) + CONTEXT
    };
    assert_eq!(with(&["run"]), 1024 * MIB);
    assert_eq!(with(&["run", "-m", "512MiB"]), 512 * MIB);
    assert_eq!(with(&["run", "-t", "default", "-m", "1GiB"]), 1024 * MIB);
    for refused in [
        &["run", "-m", "1025MiB"][..],
        &["run", "-m", "all"],
        &["run", "-t", "other"],
    ] {
        let outcome = run(stint(refused).args(["--", "true"]));
        assert_eq!(outcome.code, 77, "{refused:?}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
    let elsewhere = run(stint(&[
        "run",
        "--run-dir",
        "/run/tmp/own",
        "--driver",
        "sim",
        "--",
        "true",
    ])
    .arg("x"));
    assert_eq!(
        elsewhere.code, 125,
        "no node of its own beside the machine's: {}",
        elsewhere.stderr
    );
    run(&mut {
        let mut root = node.stint(&["run", "-t", "other", "-m", "4GiB", "--", "true"]);
        root.arg("x");
        root
    })
    .success();
}

#[test]
fn a_caller_in_a_namespace_or_with_very_many_connections_is_turned_away() {
    let Some(node) = Installed::start("bounds of the admin socket", "") else {
        return;
    };
    let options = ["--user", "--map-root-user", "--"];
    let probe = run(node.user_command(TENANT, "unshare").args(options).arg("true"));
    if probe.code == 0 {
        let mut command = node.user_command(TENANT, "unshare");
        let outcome = run(command.args(options).args(["/run/art/bin/stint", "status"]));
        assert_eq!(
            outcome.code, 77,
            "root of a namespace is not root here: {}",
            outcome.stderr
        );
    } else {
        skip("a caller in a user namespace", &probe.stderr);
    }
    let many = inside("callers", Link::Nothing);
    let count = |mut command: Command| {
        let outcome = run(command.args(["/run/stint/stint.sock", "40"])).success();
        (outcome.number("answered"), outcome.number("refused"))
    };
    assert_eq!(count(node.user_command(TENANT, &many)), (32, 8));
    assert_eq!(
        count(node.user_command(NEIGHBOUR, &many)),
        (32, 8),
        "each user has its own bound"
    );
    assert_eq!(count(node.command(&many)), (40, 0), "root has none");
    // A command that runs has none open: more of them than connections do not keep their user from asking.
    let words = ["run", "--", "sh", "-c", "echo in; read x"];
    let begin = || {
        let mut command = node.user_command(TENANT, "/run/art/bin/stint");
        Session::start(command.args(words))
    };
    let mut commands: Vec<Session> = (0..34).map(|_| begin()).collect();
    for command in &mut commands {
        assert_eq!(command.answer(), "in");
    }
    let mut status = node.user_command(TENANT, "/run/art/bin/stint");
    run(status.arg("status")).success();
}

#[test]
fn numbers_taken_in_a_user_namespace_are_billed_to_who_made_it() {
    let what = "further numbers of a user";
    let Some(node) = Installed::start(what, "[defaults]\nmemory = \"1GiB\"\n") else {
        return;
    };
    let probe = run(node.user_command(TENANT, "unshare").args(["--user", "true"]));
    if probe.code != 0 {
        skip(what, &probe.stderr);
        return;
    }
    // What newuidmap does for users with an entry in /etc/subuid: numbers 1 to 9 inside are 500001 to 500009 here.
    let other = "echo in; read x; exec setpriv --reuid 1 --regid 1 --clear-groups \"$@\"";
    let mut command = node.user_command(TENANT, "unshare");
    command.args(["--user", "sh", "-c", other, "sh"]).arg(steps());
    let mut session = Session::start(&mut command);
    assert_eq!(session.answer(), "in");
    let map = |file: &str| {
        fs::write(
            format!("/proc/{}/{file}", session.pid()),
            format!("0 {} 1\n1 500001 9\n", TENANT.0),
        )
        .unwrap_or_else(|error| panic!("{file}: {error}"));
    };
    map("uid_map");
    map("gid_map");
    session.tell("go");
    let mut session = begin(session);
    let status = fs::read_to_string(format!("/proc/{}/status", session.pid())).expect("it lives");
    assert!(status.contains("Uid:\t500001\t"), "{status}");
    assert_eq!(account_of(&node, session.pid()), "default/tenant");
    assert_eq!(session.error(&format!("alloc {}", 512 * MIB)), 0);
    let mut outside = begin(Session::start(&mut node.user_command(TENANT, steps())));
    assert_eq!(
        free(&mut outside),
        512 * MIB - 2 * CONTEXT,
        "one account for both"
    );
}

#[test]
fn jobs_containers_and_services_are_told_by_their_control_groups() {
    let what = "identity by control group";
    let Some(groups) = Groups::make(what, "kinds") else {
        return;
    };
    let quota = format!(
        "[defaults]\nmemory = \"1GiB\"\n\
         [tenants.batch]\nmatch = [{{ slurm_job = \"47*\" }}]\nper = \"job\"\nmemory = \"512MiB\"\n\
         [tenants.boxes]\nmatch = [{{ container = {{ id = \"3f1c*\" }} }}]\nper = \"container\"\nmemory = \"256MiB\"\n\
         [tenants.api]\nmatch = [{{ cgroup = \"{}/api-*.service\" }}]\nper = \"tenant\"\nmemory = \"768MiB\"\n",
        groups.path
    );
    let Some(node) = Installed::start(what, &quota) else {
        return;
    };
    let job = groups.group("slurm/uid_1024/job_4711/step_0");
    let other_job = groups.group("slurm/uid_1024/job_9/step_0");
    let container = groups.group(&format!("system.slice/docker-{ID}.scope/inner"));
    let service = groups.group("api-1.service/worker");
    // A part of the tree that a user was given, where it gives a group the name of a container.
    let delegated = groups.group("user.slice");
    std::os::unix::fs::chown(&delegated, Some(TENANT.0), Some(TENANT.0)).expect("a group can be given away");
    let forged = delegated.join(format!("docker-{ID}.scope"));
    run(node.user_command(TENANT, "mkdir").arg(&forged)).success();

    let rows: [(&Path, (u32, &str), &str, u64); 6] = [
        (&job, TENANT, "batch/job:4711", 512),
        (&job, NEIGHBOUR, "batch/job:4711", 512),
        (&other_job, TENANT, "default/tenant", 1024),
        (&container, TENANT, "boxes/container:3f1c0a4b5d6e", 256),
        (&service, TENANT, "api", 768),
        (&forged, TENANT, "default/tenant", 1024),
    ];
    for (group, user, account, cap) in rows {
        let mut session = groups.session(&node, group, user);
        assert_eq!(account_of(&node, session.pid()), account, "{}", group.display());
        assert_eq!(free(&mut session) + CONTEXT, cap * MIB, "{}", group.display());
    }
}

#[test]
fn when_a_jobs_control_group_is_removed_its_account_and_charges_are_gone() {
    let what = "the end of a control group";
    let Some(groups) = Groups::make(what, "ends") else {
        return;
    };
    let quota = "[node]\nunknown = \"report\"\n[tenants.batch]\nmatch = [{ slurm_job = \"*\" }]\nper = \"job\"\nmemory = \"2GiB\"\n";
    let Some(node) = Installed::start(what, quota) else {
        return;
    };
    let (first, second) = (
        groups.group("slurm/uid_1024/job_1"),
        groups.group("slurm/uid_1024/job_2"),
    );
    let mut parent = groups.session(&node, &first, TENANT);
    let mut child = groups.session(&node, &first, TENANT);
    let mut moved = groups.session(&node, &second, TENANT);
    for session in [&mut parent, &mut child, &mut moved] {
        assert_eq!(session.error(&format!("alloc {}", 512 * MIB)), 0);
    }
    assert_eq!(used(&node, "batch/job:1"), Some(2 * (512 * MIB + CONTEXT)));

    parent.kill();
    child.kill();
    until("what they held is back, while the job's group is there", || {
        (used(&node, "batch/job:1") == Some(0)).then_some(())
    });
    until("the group can be removed", || fs::remove_dir(&first).ok());
    until("the account is gone", || {
        used(&node, "batch/job:1").is_none().then_some(())
    });

    // A process that root moved elsewhere keeps what it holds, and its account as long as it lives.
    fs::write(groups.top.join("cgroup.procs"), moved.pid().to_string()).expect("a process can be moved");
    until("the group can be removed", || fs::remove_dir(&second).ok());
    until("the end of the group is told", || {
        let text = "the control group of account batch/job:2 has gone";
        let told = node
            .events()
            .into_iter()
            .any(|event| event["detail"]["what"] == text);
        told.then_some(())
    });
    assert_eq!(used(&node, "batch/job:2"), Some(512 * MIB + CONTEXT));
    assert_eq!(
        moved.error(&format!("alloc {}", 512 * MIB)),
        0,
        "its cap is what it was"
    );
    moved.kill();
    until("the account is gone with its last client", || {
        used(&node, "batch/job:2").is_none().then_some(())
    });
    until("the device is empty", || (really_used(&node) == 0).then_some(()));
}

#[test]
fn those_nobody_means_run_uncapped_and_are_listed() {
    let quota = "[node]\nunknown = \"report\"\n[tenants.lab]\nmatch = [{ group = \"neighbour\" }]\nmemory = \"1GiB\"\n";
    let Some(node) = Installed::start("unknown = \"report\"", quota) else {
        return;
    };
    let mut meant = begin(Session::start(&mut node.user_command(NEIGHBOUR, steps())));
    assert_eq!(free(&mut meant), 1024 * MIB - CONTEXT);
    assert_eq!(account_of(&node, meant.pid()), "lab/neighbour");
    let mut unknown = begin(Session::start(&mut node.user_command(TENANT, steps())));
    assert_eq!(unknown.error(&format!("alloc {}", 4096 * MIB)), 0);
    let listed = until("the audit finds it", || {
        let status = node.status();
        let mut all = status["unattached"].as_array()?.iter();
        all.find(|one| one["pid"] == unknown.pid()).cloned()
    });
    assert_eq!(
        (&listed["user"], &listed["command"]),
        (&"tenant".into(), &"steps-cuda".into())
    );
    assert_eq!(listed["used_bytes"], 4096 * MIB + CONTEXT);
}
