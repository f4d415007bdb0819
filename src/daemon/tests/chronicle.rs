//! What accounts used is told, outlives the daemon, and a file that cannot be read costs nothing but itself.

use std::path::PathBuf;

use super::*;
use crate::protocol::recommend::Recommendation;

/// A node whose history is in its run directory.
fn start() -> TestNode {
    TestNode::with(CAP, |options| {
        options.state_directory = Some(options.run_dir.clone())
    })
}

fn restart(node: &mut TestNode) {
    node.daemon.take().unwrap().stop().unwrap();
    let mut options = options(node.path(), CAP);
    options.state_directory = Some(node.path().into());
    node.daemon = Some(Daemon::start(options).unwrap());
}

fn file(node: &TestNode) -> PathBuf {
    node.path().join("history.json")
}

fn recommended(node: &TestNode) -> Vec<Recommendation> {
    let told = Connection::open(node.path()).unwrap().recommend(None).unwrap();
    assert_eq!(told.schema, "stint.recommend/v1");
    told.recommendations
}

fn faults(node: &TestNode) -> Vec<String> {
    let faults = node
        .events()
        .into_iter()
        .filter(|event| event.kind == crate::events::Kind::Fault);
    faults
        .map(|event| event.detail["what"].as_str().unwrap().to_string())
        .collect()
}

#[test]
fn what_an_account_used_and_was_refused_is_told_after_a_restart_too() {
    let mut node = start();
    let mut client = node.client();
    client.tell("attach 1");
    assert_eq!(client.tell("reserve 200000000"), "ok");
    assert_eq!(client.tell("reserve 100000000"), "refused");
    assert_eq!(client.tell("post 100000000"), "ok");
    until("a refusal was taken down", || {
        recommended(&node).iter().any(|one| one.refusals_total == 1)
    });
    let [before] = &recommended(&node)[..] else {
        panic!()
    };
    assert_eq!((before.account.as_str(), before.days), ("default", 1));
    assert!(
        (200_000_000..256 << 20).contains(&before.peak_bytes),
        "{before:?}"
    );
    assert!(before.p99_bytes <= before.peak_bytes);
    assert!(before.wanted_bytes == Some(100_000_000), "{before:?}");
    assert_eq!(before.devices[1].cap_bytes, 256 << 20);
    assert_eq!(
        (before.memory_bytes, before.lacks.as_deref()),
        (None, Some("time"))
    );
    drop(client);
    restart(&mut node);
    let [after] = &recommended(&node)[..] else {
        panic!()
    };
    assert_eq!(
        (after.peak_bytes, after.wanted_bytes),
        (before.peak_bytes, before.wanted_bytes)
    );
    assert!(after.used_seconds >= before.used_seconds);
    let mut of_nobody = Connection::open(node.path()).unwrap();
    assert_eq!(of_nobody.recommend(Some("nobody")).unwrap_err().exit, Exit::USAGE);
}

#[test]
fn a_damaged_history_is_put_aside_and_a_later_one_left_alone() {
    let mut node = start();
    let mut client = node.client();
    client.tell("attach 1");
    client.tell("reserve 200000000");
    recommended(&node);
    node.daemon.take().unwrap().stop().unwrap();
    let whole = std::fs::read_to_string(file(&node)).unwrap();
    let mut start_with = |text: &str| {
        std::fs::write(file(&node), text).unwrap();
        restart_of(&mut node);
        (
            recommended(&node).iter().map(|one| one.peak_bytes).max(),
            faults(&node),
        )
    };
    let (peak, told) = start_with(&whole);
    assert!(peak >= Some(200_000_000), "{peak:?}");
    assert_eq!(told, Vec::<String>::new());
    for length in [0, 1, 20, whole.len() - 1] {
        let (_, told) = start_with(&whole[..length]);
        assert!(
            told.iter().any(|fault| fault.contains("put aside")),
            "{length}: {told:?}"
        );
    }
    let later = whole.replace("\"version\":1", "\"version\":2");
    let (_, told) = start_with(&later);
    assert!(
        told.iter().any(|fault| fault.contains("later version")),
        "{told:?}"
    );
    node.daemon.take().unwrap().stop().unwrap();
    assert_eq!(std::fs::read_to_string(file(&node)).unwrap(), later);
    drop(client);
}

fn restart_of(node: &mut TestNode) {
    if let Some(daemon) = node.daemon.take() {
        daemon.crash().unwrap(); // without writing over what is there
    }
    let mut options = options(node.path(), CAP);
    options.state_directory = Some(node.path().into());
    node.daemon = Some(Daemon::start(options).unwrap());
}
