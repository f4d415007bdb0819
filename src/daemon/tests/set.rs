//! Values set above the quota file, live.

use std::collections::BTreeMap;

use super::*;
use crate::exit::Exit;
use crate::protocol::set::{Changed, Set};
use crate::skip::skip;

pub fn set(
    node: &TestNode,
    target: &str,
    values: &[(&str, &str)],
    period: Option<&str>,
) -> Result<Changed, Failure> {
    let values: BTreeMap<String, String> = values
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect();
    Connection::open(node.path()).unwrap().set(Set {
        target: target.into(),
        values,
        period: period.map(Into::into),
    })
}

#[test]
fn a_cap_set_live_binds_at_once_and_ends_nobody() {
    let node = TestNode::start(CAP);
    let mut client = node.client();
    client.tell("attach 1");
    assert_eq!(client.tell("reserve 209715200"), "ok");
    let changed = set(&node, "default", &[("memory", "100MiB")], None).unwrap();
    let device = &changed.accounts[0].devices[0];
    assert_eq!(changed.accounts[0].account.as_deref(), Some("default"));
    assert_eq!(
        (device.before.cap_bytes, device.after.cap_bytes),
        (256 * MIB, 100 * MIB)
    );
    assert_eq!(device.used_bytes, Some(200 * MIB));
    assert_eq!(client.tell("reserve 512"), "refused");
    assert_eq!(client.tell(&format!("release {}", 150 * MIB)), "ok");
    assert_eq!(client.tell(&format!("reserve {}", 50 * MIB)), "ok");
    assert_eq!(client.tell("reserve 512"), "refused");
    let changed = set(&node, "default", &[("memory", "default")], None).unwrap();
    assert_eq!(changed.accounts[0].devices[0].after.cap_bytes, 256 * MIB);
    assert_eq!(client.tell(&format!("reserve {}", 100 * MIB)), "ok");
    let said: Vec<_> = node
        .events()
        .into_iter()
        .filter(|event| event.detail.contains_key("set"))
        .map(|event| event.detail["value"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(said, ["100MiB", "default"]);
}

#[test]
fn a_value_for_a_time_ends_by_itself() {
    let node = TestNode::start(CAP);
    let mut client = node.client();
    client.tell("attach 1");
    let changed = set(&node, "default", &[("memory", "100MiB")], Some("1500ms")).unwrap();
    assert!(changed.until.is_some());
    assert_eq!(node.caps("default"), [100 * MIB, 100 * MIB]);
    until("the value has ended", || {
        node.caps("default") == [256 * MIB, 256 * MIB]
    });
    assert_eq!(client.tell(&format!("reserve {}", 200 * MIB)), "ok");
    assert!(
        node.events()
            .iter()
            .any(|event| event.detail.get("ended") == Some(&"memory".into()))
    );
}

#[test]
fn parts_of_an_account_never_have_more_than_it_has_now() {
    let node = TestNode::start(CAP);
    open_to_all(&node);
    let (mut head, mut whole) = (node.client(), node.client());
    if !rustix::process::geteuid().is_root() {
        return skip(
            "parts of an account never have more than it has now",
            "only root can become another user",
        );
    }
    head.tell("become 65534");
    let part = format!("default#{}", head.pid());
    head.tell(r#"launch {"memory":"100MiB"}"#);
    head.tell("attach 1");
    whole.tell("attach 1");
    set(&node, "default", &[("memory", "120MiB")], None).unwrap();
    assert_eq!(
        (node.caps(&part)[0], node.caps("default")[0]),
        (100 * MIB, 20 * MIB)
    );
    set(&node, "default", &[("memory", "60MiB")], None).unwrap();
    assert_eq!((node.caps(&part)[0], node.caps("default")[0]), (60 * MIB, 0));
    set(&node, "default", &[("memory", "default")], None).unwrap();
    assert_eq!(
        (node.caps(&part)[0], node.caps("default")[0]),
        (100 * MIB, 156 * MIB)
    );
    set(&node, "default", &[("memory", "120MiB")], None).unwrap();
    head.kill();
    until("the part is given back", || node.caps("default")[0] == 120 * MIB);
}

#[test]
fn what_makes_no_sense_or_is_not_there_changes_nothing() {
    let node = TestNode::start(&format!("{CAP}[tenants.training]\nper = \"tenant\"\n"));
    let mut client = node.client();
    client.tell("attach 1");
    for (target, values, exit, part) in [
        (
            "trainign",
            vec![("memory", "1MiB")],
            Exit::USAGE,
            "did you mean `training`?",
        ),
        ("default", vec![("memory", "8")], Exit::USAGE, "write a unit"),
        (
            "default",
            vec![("memory", "2GiB")],
            Exit::USAGE,
            "more than device 0 has",
        ),
        (
            "default",
            vec![("memroy", "1MiB")],
            Exit::USAGE,
            "did you mean `memory`?",
        ),
        (
            "default",
            vec![("memory", "1MiB"), ("memory.burst", "2MiB")],
            Exit::USAGE,
            "in one",
        ),
        (
            "default",
            vec![("memory.burst", "1MiB"), ("memory.guaranteed", "2MiB")],
            Exit::USAGE,
            "more than",
        ),
        ("default", vec![], Exit::USAGE, "nothing to set"),
    ] {
        let failure = set(&node, target, &values, None).unwrap_err();
        assert_eq!(failure.exit, exit, "{values:?}");
        assert!(failure.message.contains(part), "{values:?}: {failure}");
    }
    assert_eq!(node.caps("default"), [256 * MIB, 256 * MIB]);
    assert!(
        node.events()
            .iter()
            .all(|event| event.kind != crate::events::Kind::Config)
    );
    let later = set(&node, "training", &[("share", "20%")], None).unwrap();
    assert_eq!(later.not_in_force, ["share"]);
    assert_eq!(later.accounts[0].account, None, "none is open");
}

#[test]
fn more_cannot_be_guaranteed_than_there_is() {
    let node = TestNode::start(CAP);
    let mut other = node.client();
    other.tell(r#"launch {"tenant":"b","memory":"600MiB"}"#);
    other.tell("attach 1");
    let mut client = node.client();
    client.tell("attach 1");
    let failure = set(&node, "default", &[("memory", "700MiB")], None).unwrap_err();
    assert!(failure.message.contains("would be guaranteed"), "{failure}");
    assert_eq!(node.caps("default")[0], 256 * MIB);
    let changed = set(&node, "default", &[("memory.burst", "700MiB")], None).unwrap();
    let after = changed.accounts[0].devices[0].after;
    assert_eq!((after.cap_bytes, after.guaranteed_bytes), (700 * MIB, MIB));
}

#[test]
fn what_was_set_for_a_passing_tenant_goes_with_it() {
    let node = TestNode::start(CAP);
    let mut head = node.client();
    head.tell(r#"launch {"tenant":"lab","memory":"64MiB"}"#);
    assert!(head.tell("attach 1").ends_with(&format!("cap {}", 64 * MIB)));
    set(&node, "lab", &[("memory", "32MiB")], None).unwrap();
    assert_eq!(node.caps("lab")[0], 32 * MIB);
    head.kill();
    until("it is gone", || {
        node.status().tenants.iter().all(|tenant| tenant.name != "lab")
    });
    let mut head = node.client();
    assert_eq!(
        head.tell(r#"launch {"tenant":"lab","memory":"64MiB"}"#),
        format!("lab lab {}", 64 * MIB)
    );
}

#[test]
fn others_may_only_lower_an_account_that_is_theirs_alone() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            "others may only lower an account that is theirs alone",
            "only root can become another user",
        );
    }
    let quota =
        "[node]\nreserve = \"off\"\n[defaults]\nmemory = { guaranteed = \"1MiB\", burst = \"256MiB\" }\n";
    let node = TestNode::start(quota);
    open_to_all(&node);
    let mut user = node.client();
    user.tell("become 65534");
    let name = crate::admission::users::Users::of_host().unwrap().name(65534);
    let account = format!("default/{name}");
    user.tell("attach 1");
    let ask = |user: &mut Process, target: &str, key: &str, value: &str| {
        user.tell(&format!(
            r#"set {{"target":"{target}","values":{{"{key}":"{value}"}}}}"#
        ))
    };
    for (target, key, value) in [
        ("default", "memory", "1MiB"),
        (account.as_str(), "memory", "300MiB"),
        (account.as_str(), "memory", "all"),
        (account.as_str(), "priority", "high"),
    ] {
        let answer = ask(&mut user, target, key, value);
        assert!(answer.starts_with("77 "), "{target} {key}={value}: {answer}");
    }
    let answer = ask(&mut user, &name, "memory", "1MiB");
    assert!(answer.contains(&format!("did you mean `{account}`?")), "{answer}");
    assert_eq!(ask(&mut user, &account, "memory", "100MiB"), "ok");
    assert_eq!(node.caps(&account)[0], 100 * MIB);
    assert_eq!(
        ask(&mut user, &account, "memory", "200MiB"),
        "ok",
        "up to what it has without"
    );
    assert_eq!(node.caps(&account)[0], 200 * MIB);
    // What those with authority set binds whatever the owner does.
    set(&node, &account, &[("memory.burst", "150MiB")], None).unwrap();
    assert_eq!(node.caps(&account)[0], 150 * MIB);
    assert_eq!(ask(&mut user, &account, "memory", "default"), "ok");
    assert_eq!(node.caps(&account)[0], 150 * MIB);
    assert!(ask(&mut user, &account, "memory", "151MiB").starts_with("77 "));
}

pub fn open_to_all(node: &TestNode) {
    use std::os::unix::fs::PermissionsExt;
    for (path, mode) in [
        (node.path().to_path_buf(), 0o755),
        (node.path().join("stint.sock"), 0o666),
    ] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
}
