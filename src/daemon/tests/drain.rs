//! A node or device closed to newcomers.

use super::*;
use crate::exit::Exit;
use crate::protocol::drain::{Action, Drain, Drained};

fn drain(node: &TestNode, gpu: Option<&str>, action: Action) -> Result<Drained, Failure> {
    Connection::open(node.path()).unwrap().drain(Drain {
        gpu: gpu.map(Into::into),
        action,
    })
}

#[test]
fn a_drained_node_lets_in_only_what_belongs_to_what_runs() {
    let node = TestNode::start(CAP);
    let (mut running, mut head, mut late) = (node.client(), node.client(), node.client());
    running.tell("attach 1");
    assert_eq!(running.tell("reserve 1048576"), "ok");
    head.tell(r#"launch {"tenant":"lab","memory":"64MiB"}"#);
    let drained = drain(&node, None, Action::Close).unwrap();
    assert!(drained.node.is_some());
    let left: Vec<(u32, Option<u64>)> = drained
        .left
        .iter()
        .map(|left| (left.pid, left.used_bytes))
        .collect();
    assert_eq!(left, [(running.pid(), Some(MIB))]);
    assert_eq!(late.tell("attach 1"), "Denied");
    let refused = late.tell(r#"launch {"tenant":"b"}"#);
    assert!(refused.starts_with("1 the node is drained by"), "{refused}");
    assert_eq!(running.tell("reserve 1048576"), "ok", "who is there goes on");
    assert!(
        head.tell("attach 1").starts_with("Admitted"),
        "its launch was there before"
    );
    running.execute();
    assert!(
        running.tell("attach 2").starts_with("Denied"),
        "another program, and no launch holds it"
    );
    assert!(
        late.tell("observe").starts_with("Admitted"),
        "whoever only looks is no newcomer"
    );
    let status = node.status();
    assert!(status.devices.iter().all(|device| device.drained));
    assert_eq!(status.devices[0].schedulable.as_ref().unwrap().memory_bytes, 0);
    let why = Connection::open(node.path())
        .unwrap()
        .why(&late.pid().to_string())
        .unwrap();
    assert_eq!(why.process.unwrap().reason.as_deref(), Some("drained"));
    assert!(drain(&node, None, Action::Open).unwrap().node.is_none());
    assert!(late.tell("attach 1").starts_with("Admitted"));
}

#[test]
fn a_drained_device_is_left_by_each_account_when_it_holds_nothing_there() {
    let node = TestNode::start(CAP);
    let mut running = node.client();
    running.tell("attach 1");
    assert_eq!(running.tell("reserve 1048576"), "ok");
    let drained = drain(&node, Some("0"), Action::Close).unwrap();
    assert_eq!(drained.left.len(), 1);
    assert_eq!(drained.devices.len(), 1);
    let mut late = node.client();
    late.tell(r#"launch {"tenant":"lab","memory":"64MiB"}"#);
    assert_eq!(late.tell("attach 1"), "Admitted 2 devices cap 0");
    assert_eq!(late.tell("reserve 512"), "refused");
    assert_eq!(node.caps("lab"), [0, 64 * MIB], "the other device is open");
    assert_eq!(node.caps("default"), [256 * MIB, 256 * MIB]);
    assert_eq!(running.tell("reserve 1048576"), "ok");
    assert_eq!(running.tell("release 2097152"), "ok");
    until("the account has left the device", || node.caps("default")[0] == 0);
    assert_eq!(running.tell("reserve 512"), "refused");
    let gone = drain(
        &node,
        Some("GPU-00000000-0000-0000-0000-000000000000"),
        Action::Show,
    )
    .unwrap();
    assert!(gone.left.is_empty() && gone.devices[0].closed.is_some());
    drain(&node, Some("0"), Action::Open).unwrap();
    assert_eq!(running.tell("reserve 512"), "ok");
    assert_eq!(late.tell("reserve 512"), "ok");
}

#[test]
fn a_device_that_is_not_there_and_a_caller_without_authority_change_nothing() {
    let node = TestNode::start(CAP);
    let failure = drain(&node, Some("7"), Action::Close).unwrap_err();
    assert_eq!(failure.exit, Exit::USAGE);
    assert!(failure.message.contains("known: 0 (GPU-"), "{failure}");
    if rustix::process::geteuid().is_root() {
        super::set::open_to_all(&node);
        let mut other = node.client();
        other.tell("become 65534");
        assert!(other.tell(r#"drain {"action":"close"}"#).starts_with("77 "));
        assert_eq!(other.tell(r#"drain {"action":"show"}"#), "ok");
    }
    assert!(drain(&node, None, Action::Show).unwrap().node.is_none());
    assert!(node.events().is_empty());
}
