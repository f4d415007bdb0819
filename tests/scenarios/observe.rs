//! A node without a quota file, a node that only observes, and what becomes of programs no daemon answers.

use super::*;
use crate::harness::{node::Setup, outcome::run, session::Session, wait::until};

#[test]
fn without_a_quota_file_everybody_is_shown_with_device_memory_and_idle_time() {
    let node = Node::start(Setup::quota("").devices("h200:2"));
    let mut session = client(&node);
    assert_eq!(session.error(&format!("alloc {}", 512 * MIB)), 0);
    assert_eq!(session.error("launch 3"), 0);
    let shown = until("the launches are seen", || {
        let status = node.status();
        let client = status["tenants"][0]["clients"][0].clone();
        client["last_launch_at"].is_string().then_some(client)
    });
    assert_eq!(shown["devices"][0]["index"], 0);
    assert_eq!(
        shown["devices"].as_array().map(Vec::len),
        Some(1),
        "it holds nothing of the other"
    );
    assert_eq!(shown["used_bytes"].as_u64(), Some(512 * MIB + CONTEXT));
    assert!(shown["user"].is_string() && shown["shim"].is_string(), "{shown}");
    let table = run(&mut node.stint(&["top"])).success().stdout;
    for part in ["DEVICE", "LAST LAUNCH", "ago", "576 MiB"] {
        assert!(table.contains(part), "{part}: {table}");
    }
}

#[test]
fn a_process_outside_is_named_once_with_user_program_and_bytes() {
    let node = Node::start(Setup::quota(""));
    let mut stranger = bare(&node);
    assert_eq!(stranger.error(&format!("alloc {}", 256 * MIB)), 0);
    let pid = u64::from(stranger.pid());
    let shown = until("it is seen with what it holds", || {
        let status = node.status();
        let entry = status["unattached"]
            .as_array()?
            .iter()
            .find(|entry| entry["pid"] == pid)?
            .clone();
        (entry["used_bytes"].as_u64()? >= 256 * MIB).then_some(entry)
    });
    assert_eq!(shown["device"], 0);
    assert!(shown["user"].is_string() && shown["since"].is_string(), "{shown}");
    assert!(
        shown["command"].as_str().expect("a command").starts_with("steps"),
        "{shown}"
    );
    let events = || {
        node.events()
            .into_iter()
            .filter(|event| event["kind"] == "unattached")
            .count()
    };
    assert_eq!(events(), 1);
    let why = run(&mut node.stint(&["why", &pid.to_string()])).success().stdout;
    assert!(
        why.contains("is nobody's client") && why.contains("stint run"),
        "{why}"
    );
    let uptime = node.status()["uptime_seconds"].as_u64();
    until("two more looks", || {
        (node.status()["uptime_seconds"].as_u64() >= uptime.map(|up| up + 3)).then_some(())
    });
    assert_eq!(events(), 1, "told once, however long it stays");
    stranger.kill();
    until("it is gone", || {
        node.status()["unattached"].as_array()?.is_empty().then_some(())
    });
}

#[test]
fn an_observing_node_refuses_nothing_and_tells_what_it_would_have() {
    let mut node = Node::start(Setup::quota(
        "[node]\nmode = \"observe\"\n[defaults]\nmemory = \"256MiB\"\n",
    ));
    let mut greedy = client(&node);
    for _ in 0..8 {
        assert_eq!(
            greedy.error(&format!("alloc {}", 128 * MIB)),
            0,
            "nothing is refused"
        );
    }
    let account = &node.status()["tenants"][0];
    assert_eq!(account["enforced"], false);
    assert_eq!(
        account["devices"][0]["memory"]["used_bytes"].as_u64(),
        Some(1024 * MIB + CONTEXT)
    );
    assert_eq!(account["devices"][0]["memory"]["refusals_total"], 0);
    let told = until("what would have been refused is told", || {
        let above = |event: &serde_json::Value| {
            event["detail"]["what"]
                .as_str()
                .is_some_and(|what| what.contains("above its cap"))
        };
        node.events().into_iter().find(above)
    });
    assert_eq!(told["detail"]["cap_bytes"].as_u64(), Some(256 * MIB));
    let table = run(&mut node.stint(&["status"])).success().stdout;
    assert!(
        table.contains("observing only") && table.contains("above its cap"),
        "{table}"
    );
    // Enforcing from now on: what is held stays, nothing more is given.
    node.set_quota("[node]\nmode = \"enforce\"\n[defaults]\nmemory = \"256MiB\"\n");
    run(&mut node.stint(&["reload"])).success();
    assert_eq!(greedy.error(&format!("alloc {GRANULE}")), OUT_OF_MEMORY);
    assert_eq!(node.status()["mode"], "enforce");
    node.set_quota("[node]\nmode = \"observe\"\n[defaults]\nmemory = \"256MiB\"\n");
    run(&mut node.stint(&["reload"])).success();
    assert_eq!(greedy.error(&format!("alloc {GRANULE}")), 0);
    assert_eq!(greedy.close(), 0);
}

#[test]
fn a_program_that_no_daemon_answers_is_refused_or_runs_as_the_policy_says() {
    for (absent, init) in [("refuse", "802"), ("run", "0")] {
        let mut node = Node::start(Setup::quota(format!(
            "[node]\nabsent = \"{absent}\"\n[defaults]\nmemory = \"256MiB\"\n"
        )));
        node.kill_daemon();
        let mut session = Session::start(&mut node.capped_command(program("steps", Link::Cuda)));
        assert_eq!(session.ask("init"), init, "absent = {absent}");
        if absent == "run" {
            assert_eq!(session.ask("context 0"), "0");
            assert_eq!(
                session.error(&format!("alloc {}", 512 * MIB)),
                0,
                "nothing caps it"
            );
        }
    }
}
