//! What holds, where it comes from, and what was refused.

use super::*;
use crate::exit::Exit;
use crate::protocol::set::Set;
use crate::protocol::why::{Origin, Standing, Why};

fn why(node: &TestNode, subject: &str) -> Result<Why, Failure> {
    Connection::open(node.path()).unwrap().why(subject)
}

fn set(node: &TestNode, target: &str, key: &str, value: &str) {
    let set = Set {
        target: target.into(),
        values: [(key.to_string(), value.to_string())].into(),
        period: Some("2h".into()),
    };
    Connection::open(node.path()).unwrap().set(set).unwrap();
}

#[test]
fn the_rule_is_told_with_its_place_until_somebody_sets_another() {
    let node = TestNode::start(&format!(
        "{CAP}[tenants.lab]\nmemory = \"64MiB\"\nshare = \"20%\"\n"
    ));
    let mut client = node.client();
    client.tell("attach 1");
    let told = why(&node, "default").unwrap();
    let rule = &told.accounts[0].rule;
    assert_eq!(
        (rule.memory.as_str(), rule.guaranteed.as_deref(), rule.from),
        ("256MiB", Some("1MiB"), Origin::Defaults)
    );
    assert!(rule.at.as_ref().unwrap().starts_with("stint.toml:5:"), "{rule:?}");
    let lab = why(&node, "lab").unwrap();
    assert_eq!(
        (lab.accounts[0].account.clone(), lab.accounts[0].rule.from),
        (None, Origin::Tenant)
    );
    assert_eq!(lab.accounts[0].rule.at.as_deref(), Some("stint.toml:7:10"));
    assert!(lab.accounts[0].not_in_force[0].contains("`share`"), "{lab:?}");
    set(&node, "default", "memory", "32MiB");
    set(&node, "default", "priority", "low");
    let told = why(&node, &client.pid().to_string()).unwrap();
    let process = told.process.unwrap();
    assert_eq!((process.pid, process.state), (client.pid(), Standing::Client));
    let rule = &told.accounts[0].rule;
    assert_eq!((rule.memory.as_str(), rule.from), ("32MiB", Origin::Set));
    assert!(rule.until.is_some() && rule.by.is_some());
    assert!(told.accounts[0].not_in_force[0].contains("`priority=low`"));
    assert_eq!(told.accounts[0].devices[0].cap_bytes, 32 * MIB);
}

#[test]
fn a_refusal_is_told_with_who_asked_for_what() {
    let node = TestNode::start(CAP);
    let mut client = node.client();
    client.tell("attach 1");
    client.tell("post 4096");
    until("the refusal is known", || {
        why(&node, "default").unwrap().accounts[0].last_refusal.is_some()
    });
    let told = why(&node, &client.pid().to_string()).unwrap();
    let refusal = told.accounts[0].last_refusal.as_ref().unwrap();
    assert_eq!(
        (refusal.pid, refusal.asked_bytes, refusal.reason.as_str()),
        (client.pid(), 4096, "cap")
    );
}

#[test]
fn a_process_that_was_turned_away_and_one_that_never_asked_are_told_apart() {
    let node = TestNode::start("[node]\nunknown = \"refuse\"\n");
    let mut client = node.client();
    assert_eq!(client.tell("attach 1"), "Denied");
    let told = why(&node, &client.pid().to_string()).unwrap().process.unwrap();
    assert_eq!(
        (told.state, told.reason.as_deref()),
        (Standing::Denied, Some("unknown"))
    );
    let own = std::process::id().to_string();
    assert_eq!(why(&node, &own).unwrap().process.unwrap().state, Standing::None);
    assert_eq!(why(&node, "4194399").unwrap_err().exit, Exit::FAILED);
    let failure = why(&node, "defualt").unwrap_err();
    assert_eq!(failure.exit, Exit::USAGE);
    assert!(failure.message.contains("did you mean `default`?"), "{failure}");
}
