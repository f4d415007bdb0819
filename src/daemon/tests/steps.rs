//! The daemon is killed at each step of what it does (`src/daemon/step.rs`): as a process of its own, by a real SIGKILL. Whatever it had
//! begun, the next one finds every charge where it was and grants nothing twice.

use std::process::Command;

use super::*;
use crate::daemon::step::counted;
use crate::skip::skip;

/// Tells the executable that it is a daemon, and where.
const VARIABLE: &str = "STINT_TEST_DAEMON_OF";
const TEST: &str = "daemon::tests::steps::this_process_is_a_daemon";

pub fn daemon(run_dir: &Path) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
        .env(VARIABLE, run_dir);
    Process::of(command)
}

/// Does nothing in an ordinary run; in a process made by [`daemon`] it is the daemon.
#[test]
fn this_process_is_a_daemon() {
    let Some(run_dir) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        return;
    };
    println!("@ready");
    let mut running = None;
    for line in std::io::stdin().lines().map(Result::unwrap) {
        match line.split_once(' ') {
            Some(("start", at)) => {
                counted::die_at(at.parse().unwrap());
                let quota = Quota::read(QuotaFiles::named([run_dir.join("stint.toml")]), false).unwrap();
                let options = Options {
                    config: quota.config().unwrap(),
                    quota: Some(quota),
                    ..options(&run_dir, CAP)
                };
                running = Some(Daemon::start(options).unwrap());
                println!("@ok");
            }
            Some(("limit", most)) => {
                use rustix::process::{Resource, Rlimit, setrlimit};
                let (current, maximum) = (most.parse().ok(), most.parse().ok());
                setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
                println!("@ok");
            }
            _ => println!("@{}", counted::done()),
        }
    }
    drop(running);
}

/// Everything a daemon does, from its start: `None` where it dies on the way.
fn everything(node: &Path, daemon: &mut Process, at: u64, dying: Process) -> Option<()> {
    daemon.attempt(&format!("start {at}"))?;
    let _ = std::fs::set_permissions(
        node.join("stint.sock"),
        std::os::unix::fs::PermissionsExt::from_mode(0o666),
    );
    let mut clients = [Process::start(node), Process::start(node), Process::start(node)];
    // A client comes, another goes.
    clients[0].attempt("attach 1")?;
    dying.kill();
    clients[0].attempt("attach 1")?;
    // A launch with an account of its own, and one that lowers its own.
    clients[1]
        .attempt(r#"launch {"tenant":"lab","memory":"64MiB"}"#)
        .filter(|answer| answer.starts_with("lab"))?;
    clients[1].attempt("attach 1")?;
    clients[2].attempt("become 65534")?;
    clients[2]
        .attempt(r#"launch {"memory":"50MiB"}"#)
        .filter(|answer| answer.starts_with("default"))?;
    clients[2].attempt("attach 1")?;
    // Other rules, and the first again.
    for quota in [&*CAP.replace("256MiB", "512MiB"), CAP] {
        std::fs::write(node.join("stint.toml"), quota).unwrap();
        Connection::open(node).ok()?.reload().ok()?;
    }
    // Their ends, seen by a request that comes after.
    for client in clients {
        client.kill();
    }
    let mut last = Process::start(node);
    last.attempt("attach 1")?;
    Some(())
}

#[test]
fn killed_at_any_step_the_daemon_grants_nothing_twice_and_loses_nothing() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            "killed at any step the daemon grants nothing twice and loses nothing",
            "only root can become another user",
        );
    }
    let all = std::env::var_os("STINT_TEST_LONG").is_some();
    let mut at = 1;
    let mut killed = 0;
    loop {
        let dir = tempfile::tempdir().unwrap();
        let node = dir.path();
        keeper(node);
        std::fs::write(node.join("stint.toml"), CAP).unwrap();
        let mut first = daemon(node);
        assert_eq!(first.tell("start 0"), "ok");
        std::fs::set_permissions(node, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let (mut holder, mut dying) = (Process::start(node), Process::start(node));
        for client in [&mut holder, &mut dying] {
            client.tell("attach 1");
        }
        assert_eq!(holder.tell(&format!("reserve {}", 150 * MIB)), "ok");
        assert_eq!(dying.tell(&format!("reserve {}", 50 * MIB)), "ok");
        first.kill();

        let mut second = daemon(node);
        let survived = everything(node, &mut second, at, dying).is_some();
        second.kill();

        std::fs::write(node.join("stint.toml"), CAP).unwrap();
        let mut third = daemon(node);
        assert_eq!(third.tell("start 0"), "ok", "step {at}");
        let mut fresh = Process::start(node);
        assert_eq!(
            fresh.tell("attach 1"),
            "Admitted 2 devices cap 268435456",
            "step {at}"
        );
        assert_eq!(
            fresh.tell(&format!("reserve {}", 106 * MIB)),
            "ok",
            "step {at}: something was lost"
        );
        assert_eq!(
            fresh.tell("reserve 512"),
            "refused",
            "step {at}: something was granted twice"
        );
        holder.kill();
        until("what the adopted one held is back", || {
            fresh.attempt(&format!("reserve {}", 150 * MIB)).unwrap() == "ok"
        });
        let status = Connection::open(node).unwrap().status().unwrap();
        assert_eq!(status.tenants.len(), 1, "step {at}: an account was left over");
        third.kill();
        crate::keeper::end(node).unwrap();
        if survived {
            break;
        }
        killed += 1;
        assert!(at < 1000, "it never gets through");
        at += if all { 1 } else { 4 };
    }
    println!("killed at {killed} steps");
    assert!(killed >= 10, "{killed}");
}
