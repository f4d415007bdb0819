//! The daemon is killed, stopped, and started again, alone and under load: its clients notice nothing, and nothing is granted
//! twice. What the record, the descriptors and single steps are to it is tested beside the code, in `src/daemon/tests/restarts.rs`.

use std::{collections::BTreeMap, process::Command};

use super::*;
use crate::harness::{
    long,
    node::Setup,
    outcome::{self, run},
    skip::skip,
    wait::until,
};

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
        let outcome = loop {
            if let Some(outcome) = running.ended() {
                break outcome.success();
            }
            node.restart_daemon();
        };
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
    let mut refused = Session::start(&mut node.capped_command(program("steps", Link::Cuda)));
    assert_ne!(refused.ask("init"), "0");
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
