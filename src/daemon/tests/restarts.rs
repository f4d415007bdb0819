//! A daemon after another: what clients, accounts and launches of the first are to the second.

use rustix::process::Signal;

use super::*;
use crate::events::{Event, Kind};
use crate::skip::skip;

/// What the node's daemon complained of.
pub fn faults(node: &TestNode) -> Vec<String> {
    let what = |event: Event| {
        (event.kind == Kind::Fault).then(|| event.detail["what"].as_str().unwrap().to_string())
    };
    node.events().into_iter().filter_map(what).collect()
}

impl TestNode {
    /// The daemon ends as if it were killed.
    pub fn crash(&mut self) {
        self.daemon.take().unwrap().crash().unwrap();
    }

    pub fn start_again(&mut self, quota: &str) {
        self.daemon = Some(Daemon::start(options(self.path(), quota)).unwrap());
    }

    pub fn record(&self) -> PathBuf {
        self.path().join("state")
    }
}

#[test]
fn a_stopped_client_at_its_cap_is_adopted_before_anybody_gets_a_granule() {
    let mut node = TestNode::start(CAP);
    let mut old = node.client();
    old.tell("attach 1");
    assert_eq!(old.tell("reserve 268435456"), "ok");
    old.signal(Signal::STOP);
    node.crash();
    node.start_again(CAP);
    let mut fresh = node.client();
    assert_eq!(fresh.tell("attach 1"), "Admitted 2 devices cap 268435456");
    assert_eq!(fresh.tell("reserve 512"), "refused");
    let status = node.status();
    let tenant = &status.tenants[0];
    assert_eq!(tenant.devices[0].memory.used_bytes, 256 * MIB);
    assert!(
        tenant
            .clients
            .iter()
            .any(|client| client.pid == old.pid() && client.used_bytes == 256 * MIB)
    );
    old.signal(Signal::CONT);
    assert_eq!(old.tell("release 512"), "ok");
    assert_eq!(fresh.tell("reserve 512"), "ok");
    old.kill();
    assert_eq!(
        fresh.tell("attach 1"),
        "Admitted 2 devices cap 268435456",
        "the same client"
    );
    until("the adopted client's charge is back", || {
        node.used("default") == 512
    });
    assert!(faults(&node).is_empty(), "{:?}", faults(&node));
}

#[test]
fn what_ended_while_no_daemon_ran_is_given_back_before_anybody_is_admitted() {
    let mut node = TestNode::start(CAP);
    let (mut dead, mut changed, mut alive) = (node.client(), node.client(), node.client());
    for client in [&mut dead, &mut changed, &mut alive] {
        client.tell("attach 1");
        assert_eq!(client.tell("reserve 67108864"), "ok");
    }
    node.crash();
    dead.kill();
    changed.execute();
    node.start_again(CAP);
    let mut fresh = node.client();
    fresh.tell("attach 1");
    until("the executed one's charge is back as well", || {
        node.used("default") == 64 * MIB
    });
    assert_eq!(fresh.tell(&format!("reserve {}", 192 * MIB)), "ok");
    assert_eq!(fresh.tell("reserve 512"), "refused");
    assert_eq!(alive.tell(&format!("release {}", 64 * MIB)), "ok");
    assert_eq!(node.used("default"), 192 * MIB);
}

#[test]
fn caps_are_those_of_the_new_file() {
    let mut node = TestNode::start(CAP);
    let mut client = node.client();
    client.tell("attach 1");
    assert_eq!(client.tell(&format!("reserve {}", 100 * MIB)), "ok");
    node.restart(&CAP.replace("256MiB", "64MiB"));
    assert_eq!(
        client.tell("reserve 512"),
        "refused",
        "lowered below what it uses"
    );
    assert_eq!(client.tell(&format!("release {}", 50 * MIB)), "ok");
    assert_eq!(client.tell(&format!("reserve {}", 14 * MIB)), "ok");
    assert_eq!(client.tell("reserve 512"), "refused");
    node.restart(&CAP.replace("256MiB", "512MiB"));
    assert_eq!(client.tell(&format!("reserve {}", 448 * MIB)), "ok");
    assert_eq!(client.tell("reserve 512"), "refused");
    node.restart(&CAP.replace("[node]", "[node]\nmode = \"observe\""));
    assert_eq!(client.tell("reserve 512"), "ok");
    node.restart(CAP);
    assert_eq!(client.tell("reserve 512"), "refused");
}

#[test]
fn launches_and_the_accounts_they_made_go_on() {
    let mut node = TestNode::start(CAP);
    let (mut head, mut gone) = (node.client(), node.client());
    assert_eq!(
        head.tell(r#"launch {"tenant":"lab","memory":"64MiB"}"#),
        "lab lab 67108864"
    );
    assert_eq!(
        gone.tell(r#"launch {"tenant":"away","memory":"64MiB"}"#),
        "away away 67108864"
    );
    node.crash();
    gone.kill();
    node.start_again(CAP);
    let names: Vec<String> = node
        .status()
        .tenants
        .into_iter()
        .map(|tenant| tenant.name)
        .collect();
    assert_eq!(names, ["lab"], "an account made for a launch ends with it");
    assert_eq!(head.tell("attach 1"), "Admitted 2 devices cap 67108864");
    node.restart(CAP);
    assert_eq!(head.tell("attach 2"), "Admitted 2 devices cap 67108864");
    head.kill();
    until("the account is gone with its head", || {
        node.status().tenants.is_empty()
    });
    node.restart(CAP);
    assert!(node.status().tenants.is_empty(), "and nothing is kept of it");
}

#[test]
fn a_part_and_its_whole_never_have_more_than_the_whole_had() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            "a part and its whole never have more than the whole had",
            "only root can become another user",
        );
    }
    let mut node = TestNode::start(CAP);
    open_to_all(&node);
    let (mut head, mut whole) = (node.client(), node.client());
    head.tell("become 65534");
    let part = format!("default default#{} {}", head.pid(), 100 * MIB);
    assert_eq!(head.tell(r#"launch {"memory":"100MiB"}"#), part);
    head.tell("attach 1");
    let caps = |node: &TestNode| -> Vec<u64> {
        node.status()
            .tenants
            .iter()
            .map(|tenant| tenant.devices[0].memory.cap_bytes / MIB)
            .collect()
    };
    node.crash();
    node.start_again(CAP);
    assert_eq!(caps(&node), [156, 100]);
    node.restart(&CAP.replace("256MiB", "80MiB"));
    assert_eq!(caps(&node), [0, 80], "a part is no more than a lowered whole");
    node.restart(CAP);
    assert_eq!(caps(&node), [156, 100]);
    whole.tell("attach 1");
    assert_eq!(whole.tell(&format!("reserve {}", 157 * MIB)), "refused");
    // The record is lost: the names alone tell that one is a part of the other.
    node.crash();
    std::fs::remove_file(node.record()).unwrap();
    node.start_again(CAP);
    assert_eq!(caps(&node), [156, 100]);
}

#[test]
fn clients_one_version_older_or_newer_are_answered() {
    let node = TestNode::start(CAP);
    let mut client = node.client();
    use ledger::wire::{OLDEST_PROTOCOL, PROTOCOL};
    for (spoken, answered) in [
        (OLDEST_PROTOCOL, format!("Admitted in {OLDEST_PROTOCOL}")),
        (PROTOCOL, format!("Admitted in {PROTOCOL}")),
        (PROTOCOL + 1, format!("Admitted in {PROTOCOL}")),
        (PROTOCOL + 2, format!("Protocol in {}", PROTOCOL)),
    ] {
        assert_eq!(client.tell(&format!("speak {spoken}")), answered);
    }
}

#[test]
fn what_was_set_and_closed_stays_so() {
    use crate::protocol::drain::{Action, Drain};
    use crate::protocol::set::Set;
    let mut node = TestNode::start(CAP);
    let mut client = node.client();
    client.tell("attach 1");
    let set = |node: &TestNode, memory: &str| {
        let values = [("memory".to_string(), memory.to_string())].into();
        let set = Set {
            target: "default".into(),
            values,
            period: None,
        };
        Connection::open(node.path()).unwrap().set(set).unwrap()
    };
    set(&node, "100MiB");
    let drain = Drain {
        action: Action::Close,
        gpu: None,
    };
    Connection::open(node.path()).unwrap().drain(drain).unwrap();
    node.crash();
    node.start_again(CAP);
    assert_eq!(client.tell(&format!("reserve {}", 101 * MIB)), "refused");
    assert_eq!(client.tell(&format!("reserve {}", 100 * MIB)), "ok");
    let mut fresh = node.client();
    assert_eq!(fresh.tell("attach 1"), "Denied", "the node is still drained");
    set(&node, "default");
    node.restart(CAP);
    assert_eq!(client.tell(&format!("reserve {}", 156 * MIB)), "ok");
}
