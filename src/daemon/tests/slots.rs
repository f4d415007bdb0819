//! Processes and their slots: one that executes another program, only says so, or closes everything.

use super::*;

#[test]
fn a_process_that_executes_another_program_holds_nothing_any_more() {
    let node = TestNode::start(CAP);
    let mut client = node.client();
    client.tell("attach 1");
    assert_eq!(client.tell("reserve 268435456"), "ok");
    let pid = client.pid();
    client.execute();
    assert_eq!(client.pid(), pid);
    // It attaches again: the old slot is emptied before it gets a new one.
    client.tell("attach 2");
    assert_eq!(client.tell("reserve 268435456"), "ok");
    client.execute();
    // It does not: found out all the same.
    until("the charge of the former program is gone", || {
        node.used("default") == 0
    });
    assert!(node.status().tenants[0].clients.is_empty());
}

#[test]
fn a_process_that_only_says_it_executed_keeps_its_charge() {
    let node = TestNode::start(CAP);
    let mut client = node.client();
    client.tell("attach 1");
    assert_eq!(client.tell("reserve 268435456"), "ok");
    client.tell("attach 2");
    assert_eq!(client.tell("reserve 512"), "refused");
    assert_eq!(node.used("default"), 256 * MIB);
    assert_eq!(
        client.tell("attach 2"),
        "Admitted 2 devices cap 268435456",
        "a lost reply is sent again"
    );
    assert_eq!(node.status().tenants[0].clients.len(), 2);
}

#[test]
fn a_process_that_says_so_again_and_again_gets_no_more_slots() {
    let node = TestNode::start(CAP);
    let mut client = node.client();
    let mut answers: Vec<String> = (1..=9)
        .map(|nonce| client.tell(&format!("attach {nonce}")))
        .collect();
    assert_eq!(answers.pop().unwrap(), "NoSlot");
    assert!(
        answers.iter().all(|answer| answer.starts_with("Admitted")),
        "{answers:?}"
    );
    assert!(
        client.tell("attach 8").starts_with("Admitted"),
        "what it has it keeps"
    );
    assert_eq!(node.status().tenants[0].clients.len(), 8);
    client.execute();
    assert!(client.tell("attach 9").starts_with("Admitted"), "it did, at last");
    assert_eq!(node.status().tenants[0].clients.len(), 1);
}

#[test]
fn a_client_that_closes_every_descriptor_stays_a_client() {
    let node = TestNode::start(CAP);
    let mut client = node.client();
    client.tell("attach 1");
    assert_eq!(client.tell("reserve 268435456"), "ok");
    assert_eq!(
        client.tell("close"),
        "0",
        "descriptors of the attach that are still open"
    );
    let mut other = node.client();
    other.tell("attach 1");
    assert_eq!(other.tell("reserve 512"), "refused");
    assert_eq!(client.tell("release 512"), "ok");
    assert_eq!(other.tell("reserve 512"), "ok");
}
