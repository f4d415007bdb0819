//! The daemon is killed, stopped, and started again, alone and under load: its clients notice nothing, and nothing is granted
//! twice. What the record, the descriptors and single steps are to it is tested beside the code, in `src/daemon/tests/restarts.rs`.

use std::{
    collections::BTreeMap,
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::net::UnixDatagram,
    },
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::*;
use crate::harness::{
    long,
    node::Setup,
    outcome::{self, run},
    skip::skip,
    wait::until,
};

/// Most that a restart may take for a process that begins meanwhile to be admitted for sure: half of what it waits.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sends `name`d signal to a process.
#[track_caller]
fn signal(name: &str, pid: u32) {
    run(Command::new("kill").args([name, &pid.to_string()])).success();
}

/// Bytes of device 0 by pid: what the stand-in knows, and what the daemon shows of its clients. Processes that hold nothing
/// are left out.
#[track_caller]
fn truth_and_ledger(node: &Node) -> (BTreeMap<u64, u64>, BTreeMap<u64, u64>) {
    let used = |of: &serde_json::Value| {
        let pair = (of["pid"].as_u64()?, of["used_bytes"].as_u64()?);
        (pair.1 > 0).then_some(pair)
    };
    let truth = node.truth();
    let status = node.status();
    let processes = truth["processes"].as_array().into_iter().flatten();
    let tenants = status["tenants"].as_array().into_iter().flatten();
    let clients = tenants.flat_map(|tenant| tenant["clients"].as_array().into_iter().flatten());
    (
        processes.filter_map(used).collect(),
        clients.filter_map(used).collect(),
    )
}

/// The process that keeps the node's descriptors.
fn keeper(node: &Node) -> Option<u32> {
    let wanted = [
        "keeper".as_bytes(),
        b"--run-dir",
        node.directory().as_os_str().as_encoded_bytes(),
    ];
    std::fs::read_dir("/proc")
        .expect("/proc is there")
        .flatten()
        .find_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).skip(1).take(3).collect();
            (words == wanted).then_some(pid)
        })
}

#[test]
fn a_stopped_client_at_its_cap_is_adopted_before_another_gets_a_granule() {
    let mut node = Node::start(Setup::cap("1GiB"));
    let mut old = client(&node);
    assert_eq!(old.error(&format!("alloc {}", 1024 * MIB - CONTEXT)), 0);
    signal("-STOP", old.pid());
    node.restart_daemon();
    let mut fresh = Session::start(&mut node.capped_command(program("steps", Link::Cuda)));
    assert_eq!(fresh.ask("init"), "0");
    assert_eq!(fresh.error("context 0"), OUT_OF_MEMORY, "not even a context");
    signal("-CONT", old.pid());
    assert_eq!(old.error("free 0"), 0);
    assert_eq!(fresh.error("context 0"), 0);
    let (truth, ledger) = truth_and_ledger(&node);
    assert_eq!(truth, ledger);
    assert_eq!(ledger.len(), 2);
}

#[test]
fn a_stopped_daemon_costs_its_clients_nothing() {
    let node = Node::start(Setup::cap("4GiB").option("--timing", "null"));
    let (mut one, mut other) = (client(&node), client(&node));
    signal("-STOP", node.daemon_pid());
    let rounds = if long() { 3000 } else { 30 };
    for _ in 0..rounds {
        one.tell(&format!("churn 100 {}", 64 * MIB));
        other.tell(&format!("churn 100 {}", 2 * MIB));
        assert_eq!((one.answer(), other.answer()), ("0 100".into(), "0 100".into()));
    }
    assert_eq!(
        one.error(&format!("alloc {}", 4096 * MIB)),
        OUT_OF_MEMORY,
        "the cap holds"
    );
    signal("-CONT", node.daemon_pid());
    drop(one);
    until("the daemon goes on where it was", || {
        let (truth, ledger) = truth_and_ledger(&node);
        (truth == ledger && ledger.len() == 1).then_some(())
    });
}

#[test]
fn clients_under_load_notice_no_restart_and_the_ledger_is_the_truth() {
    let (clients, restarts) = if long() { (50, 20) } else { (12, 4) };
    let mut node = Node::start(Setup::quota("").option("--timing", "null"));
    let mut tenants: Vec<Session> = (0..clients)
        .map(|number| tenant(&node, &format!("t{}", number % 5), "4GiB"))
        .collect();
    for session in &mut tenants {
        assert_eq!(session.error(&format!("alloc {}", 64 * MIB)), 0);
    }
    for _ in 0..restarts {
        for session in &mut tenants {
            session.tell(&format!("churn 2000 {}", 32 * MIB));
        }
        node.restart_daemon();
        for session in &mut tenants {
            assert_eq!(session.answer(), "0 2000");
        }
        let (truth, ledger) = truth_and_ledger(&node);
        assert_eq!(truth, ledger);
        assert_eq!(ledger.len(), clients);
    }
    // Whoever has gone is gone, and who comes finds its own tenant.
    tenants.truncate(clients / 2);
    let mut fresh = tenant(&node, "t0", "4GiB");
    assert_eq!(fresh.error(&format!("alloc {}", 4096 * MIB)), OUT_OF_MEMORY);
    until("the others' memory is back", || {
        let (truth, ledger) = truth_and_ledger(&node);
        (truth == ledger && ledger.len() == clients / 2 + 1).then_some(())
    });
}

#[test]
fn a_killed_keeper_is_replaced_and_an_idle_one_leaves() {
    let mut node = Node::start(Setup::cap("1GiB"));
    let mut old = client(&node);
    assert_eq!(old.error(&format!("alloc {}", 256 * MIB)), 0);
    let first = until("there is a keeper", || keeper(&node));
    signal("-KILL", first);
    until("another takes its place", || {
        keeper(&node).filter(|pid| *pid != first)
    });
    until("the daemon says so", || {
        node.events()
            .iter()
            .find(|event| event["detail"]["what"].to_string().contains("a new one holds"))
            .map(|_| ())
    });
    node.restart_daemon();
    let mut fresh = client(&node);
    assert_eq!(
        fresh.error(&format!("alloc {}", 1024 * MIB - 2 * CONTEXT - 255 * MIB)),
        OUT_OF_MEMORY
    );
    node.kill_daemon();
    assert!(keeper(&node).is_some(), "it stays for its clients");
    drop((old, fresh));
    until("it leaves with the last of them", || {
        keeper(&node).is_none().then_some(())
    });
}

#[test]
fn processes_come_and_go_in_every_way_while_the_daemon_is_restarted() {
    let mut node = Node::start(Setup::cap("16GiB"));
    let rounds = if long() { 150 } else { 2 };
    let chain: &[&str] = &["exec-chain", "20", "67108864"];
    let workers: &[&str] = &["prefork", "32", "67108864"];
    let children: &[&str] = &["spawn", "1048576"];
    for words in [chain, children]
        .into_iter()
        .chain(std::iter::repeat_n(workers, rounds))
    {
        let mut command = node.capped_command(program("processes", Link::Cuda));
        let mut running = outcome::start(command.args(words));
        let mut longest = Duration::ZERO;
        let outcome = loop {
            if let Some(outcome) = running.ended() {
                break outcome;
            }
            let begin = Instant::now();
            node.restart_daemon();
            longest = longest.max(begin.elapsed());
        };
        if longest > PATIENCE {
            // Whoever came meanwhile was turned away, as `absent` says. The books are looked at below all the same.
            println!("{words:?}: the machine is so slow that a restart took {longest:?}");
            continue;
        }
        let outcome = outcome.success();
        match words[0] {
            "prefork" => assert_eq!(outcome.number("good"), 32),
            "spawn" => assert_eq!(
                (outcome.number("child_end"), outcome.number("parent_alloc")),
                (0, 0)
            ),
            _ => assert_eq!(
                outcome.stdout.lines().filter(|line| *line == "alloc=0").count(),
                21,
                "{}",
                outcome.stdout
            ),
        }
    }
    until("no client is left", || {
        truth_and_ledger(&node).1.is_empty().then_some(())
    });
    assert_eq!(node.used(0), 0);
}

#[test]
fn a_full_disk_admits_nobody_and_costs_no_client_anything() {
    if !rustix::process::geteuid().is_root() {
        return skip("a full disk", "only root can mount a small one");
    }
    let mut node = Node::start(Setup {
        disk: Some("64k"),
        ..Setup::cap("1GiB")
    });
    let filler = node.directory().join("filler");
    let mut old = client(&node);
    assert_eq!(old.error(&format!("alloc {}", 256 * MIB)), 0);
    std::fs::write(&filler, vec![0; 1 << 20]).expect_err("the disk is full");
    // The record fills the page it has.
    let mut admitted = Vec::new();
    let mut refused = loop {
        let mut session = Session::start(&mut node.capped_command(program("steps", Link::Cuda)));
        if session.ask("init") != "0" {
            break session;
        }
        admitted.push(session);
        assert!(admitted.len() < 64, "the disk does not fill");
    };
    let said = node
        .events()
        .iter()
        .any(|event| event["detail"]["message"].to_string().contains("No space left"));
    assert!(said, "{:?}", node.events());
    assert_eq!(old.error(&format!("alloc {}", 256 * MIB)), 0, "who is in goes on");
    node.restart_daemon();
    assert_eq!(old.error(&format!("alloc {}", 1024 * MIB)), OUT_OF_MEMORY);
    std::fs::remove_file(&filler).expect("the filler can be removed");
    assert_eq!(refused.ask("init"), "0", "asked again, it is admitted");
    let (truth, ledger) = truth_and_ledger(&node);
    assert_eq!(truth, ledger);
}

#[test]
fn a_command_makes_no_node_of_its_own_in_the_place_of_one_whose_daemon_is_away() {
    let mut node = Node::start(Setup::default());
    node.kill_daemon();
    let mut in_vain = node.tenant_command("late", "1GiB", "true");
    let outcome = run(&mut in_vain);
    assert_eq!(outcome.code, 125);
    assert!(outcome.stderr.contains("no daemon answers"), "{}", outcome.stderr);
    node.start_daemon();
    assert_eq!(run(&mut in_vain).code, 0);
}

/// One account for all.
const ONE_CAP: &str = "[defaults]\nper = \"tenant\"\nmemory = \"1GiB\"\n";

/// What systemd is to a daemon: a socket it tells things, and a store for descriptors.
struct ServiceManager {
    socket: UnixDatagram,
    path: PathBuf,
    said: Vec<String>,
    stored: BTreeMap<String, OwnedFd>,
}

impl ServiceManager {
    fn new(directory: &Path) -> ServiceManager {
        let path = directory.join("notify");
        ServiceManager {
            socket: UnixDatagram::bind(&path).expect("a socket can be bound"),
            path,
            said: Vec::new(),
            stored: BTreeMap::new(),
        }
    }

    /// Starts the daemon of `node` with what is stored, as systemd does: from descriptor 3 on.
    fn start(&self, node: &Node) -> outcome::Running {
        let config = node.directory().join("stint.toml");
        std::fs::write(&config, ONE_CAP).expect("a quota file can be written");
        let mut script = String::new();
        for (number, fd) in (3..).zip(self.stored.values()) {
            script += &format!(
                "exec {number}<>/proc/{}/fd/{}; ",
                std::process::id(),
                fd.as_raw_fd()
            );
        }
        let names: Vec<&str> = self.stored.keys().map(String::as_str).collect();
        if !names.is_empty() {
            script += &format!(
                "export LISTEN_PID=$$ LISTEN_FDS={} LISTEN_FDNAMES='{}'; ",
                names.len(),
                names.join(":")
            );
        }
        script += "exec \"$0\" daemon --driver sim --config \"$1\"";
        let stint = node.stint(&[]);
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(stint.get_program()).arg(config);
        command.env("STINT_RUN_DIR", node.directory());
        command
            .env("NOTIFY_SOCKET", &self.path)
            .env("WATCHDOG_USEC", "400000");
        outcome::start(&mut command)
    }

    /// Waits until the daemon has said `what` once more.
    #[track_caller]
    fn hear(&mut self, what: &str) {
        until(what, || {
            self.listen();
            let heard = self
                .said
                .iter()
                .position(|said| said.lines().any(|line| line.starts_with(what)));
            heard.map(|at| drop(self.said.drain(..=at)))
        });
    }

    fn listen(&mut self) {
        loop {
            let mut bytes = [0; 4096];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut into = [std::io::IoSliceMut::new(&mut bytes)];
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let Ok(message) = recvmsg(&self.socket, &mut into, &mut control, flags) else {
                return;
            };
            let fd = control.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
                _ => None,
            });
            let text = String::from_utf8_lossy(&bytes[..message.bytes]).into_owned();
            let name = text
                .lines()
                .find_map(|line| line.strip_prefix("FDNAME="))
                .map(str::to_owned);
            match (name, fd) {
                (Some(name), Some(fd)) => drop(self.stored.insert(name, fd)),
                (Some(name), None) if text.contains("FDSTOREREMOVE=1") => drop(self.stored.remove(&name)),
                _ => self.said.push(text),
            }
        }
    }
}

#[test]
fn systemd_keeps_the_descriptors_and_hears_how_the_daemon_is() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            "descriptors kept by systemd",
            "only root can open another process's descriptors",
        );
    }
    let node = Node::bare(Setup::default());
    let mut systemd = ServiceManager::new(node.directory());
    let mut daemon = systemd.start(&node);
    systemd.hear("READY=1");
    let mut old = client(&node);
    assert_eq!(old.error(&format!("alloc {}", 512 * MIB)), 0);
    systemd.hear("STATUS=1 clients in 1 accounts");
    systemd.hear("WATCHDOG=1");
    assert_eq!(systemd.stored.len(), 2, "{:?}", systemd.stored);
    assert!(
        systemd.stored.keys().all(|name| name.ends_with(".default")),
        "{:?}",
        systemd.stored
    );
    assert!(keeper(&node).is_none(), "one that keeps is enough");

    for how in ["-KILL", "-TERM"] {
        signal(how, daemon.pid());
        until("the daemon has ended", || daemon.ended());
        systemd.listen();
        assert_eq!(
            systemd.said.iter().any(|said| said.contains("STOPPING=1")),
            how == "-TERM"
        );
        systemd.said.clear();
        daemon = systemd.start(&node);
        systemd.hear("READY=1");
        let (truth, ledger) = truth_and_ledger(&node);
        assert_eq!(truth, ledger);
        assert_eq!(ledger.len(), 1);
    }
    let mut fresh = client(&node);
    assert_eq!(fresh.error(&format!("alloc {}", 512 * MIB)), OUT_OF_MEMORY);
    signal("-HUP", daemon.pid());
    systemd.hear("RELOADING=1");
    systemd.hear("READY=1");
}

#[test]
fn what_a_keeper_holds_goes_over_to_systemd() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            "descriptors that go over to systemd",
            "only root can open another process's descriptors",
        );
    }
    let mut node = Node::start(Setup::quota(ONE_CAP));
    let mut old = client(&node);
    assert_eq!(old.error(&format!("alloc {}", 512 * MIB)), 0);
    node.kill_daemon();
    assert!(keeper(&node).is_some());
    let mut systemd = ServiceManager::new(node.directory());
    let _daemon = systemd.start(&node);
    systemd.hear("READY=1");
    assert_eq!(systemd.stored.len(), 2, "{:?}", systemd.stored);
    let (truth, ledger) = truth_and_ledger(&node);
    assert_eq!((&truth, ledger.len()), (&ledger, 1));
    let mut fresh = client(&node);
    assert_eq!(fresh.error(&format!("alloc {}", 512 * MIB)), OUT_OF_MEMORY);
    until("the keeper has left", || keeper(&node).is_none().then_some(()));
}
