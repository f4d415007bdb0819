//! Processes that become the head of a tenant's processes.

use super::*;
use crate::admission::launches::MOST_OF_A_USER;
use crate::skip::skip;

#[test]
fn a_launch_places_its_descendants_and_is_gone_with_them() {
    let node = TestNode::start(CAP);
    let mut head = node.client();
    let launch = r#"launch {"tenant":"lab","memory":"64MiB"}"#;
    assert_eq!(head.tell(launch), "lab lab 67108864");
    assert_eq!(head.tell("attach 1"), "Admitted 2 devices cap 67108864");
    let mut stranger = node.client();
    assert_eq!(
        stranger.tell("attach 1"),
        "Admitted 2 devices cap 268435456",
        "no descendant of the head"
    );
    let mut other = node.client();
    let refused = other.tell(r#"launch {"tenant":"lab","memory":"32MiB"}"#);
    assert!(
        refused.starts_with("1 account lab is in use with another cap"),
        "{refused}"
    );
    assert_eq!(other.tell(r#"launch {"tenant":"lab"}"#), "lab lab 67108864");
    head.kill();
    assert_eq!(
        other.tell("attach 1"),
        "Admitted 2 devices cap 67108864",
        "the account outlives its first head"
    );
    other.kill();
    until("the tenant is gone with its last client", || {
        node.status().tenants.iter().all(|tenant| tenant.name != "lab")
    });
}

#[test]
fn a_user_without_authority_gets_a_part_of_what_it_has() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            "a user without authority gets a part of what it has",
            "only root can become another user",
        );
    }
    let node = TestNode::start(CAP);
    open_to_all(&node);
    let (mut head, mut whole) = (node.client(), node.client());
    head.tell("become 65534");
    for asked in [
        r#"{"tenant":"lab"}"#,
        r#"{"memory":"300MiB"}"#,
        r#"{"memory":"all"}"#,
    ] {
        let answer = head.tell(&format!("launch {asked}"));
        assert!(answer.starts_with("77 "), "{asked}: {answer}");
    }
    let part = format!("default default#{} {}", head.pid(), 100 * MIB);
    assert_eq!(head.tell(r#"launch {"memory":"100MiB"}"#), part);
    assert_eq!(
        head.tell(r#"launch {"memory":"50MiB"}"#),
        format!("1 pid {} heads a launch already", head.pid()),
        "else what the first one took would be lost"
    );
    assert_eq!(
        head.tell("attach 1"),
        format!("Admitted 2 devices cap {}", 100 * MIB)
    );
    assert_eq!(
        whole.tell("attach 1"),
        format!("Admitted 2 devices cap {}", 156 * MIB)
    );
    assert_eq!(whole.tell(&format!("reserve {}", 156 * MIB)), "ok");
    assert_eq!(
        whole.tell("reserve 512"),
        "refused",
        "both together have what the whole had"
    );

    let mut other = node.client();
    other.tell("become 65534");
    let answer = other.tell(r#"launch {"memory":"10MiB"}"#);
    assert!(answer.starts_with("1 account default uses"), "{answer}");
    head.kill();
    until("the part is given back", || {
        node.status().tenants[0].devices[0].memory.cap_bytes == 256 * MIB
    });
    assert_eq!(whole.tell(&format!("reserve {}", 100 * MIB)), "ok");
}

#[test]
fn a_user_has_so_many_launches_at_once_and_no_more() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            "a user has so many launches at once and no more",
            "only root can become another user",
        );
    }
    let mut node = TestNode::start(CAP);
    open_to_all(&node);
    let launch = |node: &TestNode, user: u32| {
        let mut head = node.client();
        head.tell(&format!("become {user}"));
        let answer = head.tell(r#"launch {"memory":"1MiB"}"#);
        (head, answer)
    };
    let mut heads = Vec::new();
    for _ in 0..MOST_OF_A_USER {
        let (head, answer) = launch(&node, 65534);
        assert!(answer.starts_with("default default#"), "{answer}");
        heads.push(head);
    }
    let too_many = |node: &TestNode| {
        let (_head, answer) = launch(node, 65534);
        assert!(
            answer.contains("has 128 launches (`stint run`) at once"),
            "{answer}"
        );
        assert!(answer.starts_with("1 "), "{answer}");
    };
    too_many(&node);
    assert_eq!(
        node.status().tenants.len(),
        MOST_OF_A_USER + 1,
        "nothing was left behind"
    );
    let (_other, answer) = launch(&node, 65533);
    assert!(answer.starts_with("default default#"), "another user: {answer}");
    node.restart(CAP);
    open_to_all(&node);
    too_many(&node);
    heads.pop();
    let (_head, answer) = launch(&node, 65534);
    assert!(answer.starts_with("default default#"), "{answer}");
}

#[test]
fn what_was_set_for_an_account_binds_every_launch_in_it() {
    let node = TestNode::start(CAP);
    let set = |value: &str| {
        super::set::set(&node, "default", &[("memory", value)], None).unwrap();
    };
    set("100MiB");
    let (mut head, mut whole) = (node.client(), node.client());
    let refused = head.tell(r#"launch {"memory":"128MiB"}"#);
    let expected = format!(
        "64 134217728 bytes were asked, and the cap of default on device 0 is {} bytes, set by ",
        100 * MIB
    );
    assert!(refused.starts_with(&expected), "{refused}");
    let part = format!("default#{}", head.pid());
    assert_eq!(
        head.tell(r#"launch {"memory":"60MiB"}"#),
        format!("default {part} {}", 60 * MIB)
    );
    head.tell("attach 1");
    whole.tell("attach 1");
    assert_eq!(
        (node.caps(&part)[0], node.caps("default")[0]),
        (60 * MIB, 40 * MIB),
        "together they have what was set"
    );
    set("50MiB");
    assert_eq!((node.caps(&part)[0], node.caps("default")[0]), (50 * MIB, 0));
    set("default");
    assert_eq!(node.caps(&part)[0], 60 * MIB);
}

#[test]
fn a_cap_set_after_a_launch_binds_it_too() {
    let node = TestNode::start(CAP);
    let mut head = node.client();
    let part = format!("default#{}", head.pid());
    // Whoever has authority may have more than the file says.
    assert_eq!(
        head.tell(r#"launch {"memory":"512MiB"}"#),
        format!("default {part} {}", 512 * MIB)
    );
    head.tell("attach 1");
    super::set::set(&node, "default", &[("memory", "100MiB")], None).unwrap();
    assert_eq!(node.caps(&part)[0], 100 * MIB);
    let why = Connection::open(node.path()).unwrap().why(&part).unwrap();
    assert_eq!(why.accounts[0].rule.memory, "100MiB");
    assert_eq!(why.accounts[0].rule.from, crate::protocol::why::Origin::Set);
    super::set::set(&node, "default", &[("memory", "default")], None).unwrap();
    assert_eq!(node.caps(&part)[0], 512 * MIB);
}

#[test]
fn who_belongs_to_no_account_takes_no_part_of_one() {
    let node = TestNode::start(&CAP.replace("[node]\n", "[node]\nunknown = \"report\"\n"));
    super::set::set(&node, "default", &[("memory", "100MiB")], None).unwrap();
    let mut head = node.client();
    let part = format!("default default#{} {}", head.pid(), 60 * MIB);
    assert_eq!(head.tell(r#"launch {"memory":"60MiB"}"#), part);
    assert!(
        node.client()
            .tell(r#"launch {"memory":"200MiB"}"#)
            .starts_with("64 "),
        "what was set binds it all the same"
    );
}

#[test]
fn a_user_may_take_a_part_of_what_was_set_above_the_file() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let node = TestNode::start(CAP);
    open_to_all(&node);
    super::set::set(&node, "default", &[("memory", "400MiB")], None).unwrap();
    let mut head = node.client();
    head.tell("become 65534");
    let refused = head.tell(r#"launch {"memory":"500MiB"}"#);
    assert!(
        refused.starts_with("77 ") && refused.contains("has 419430400 on device 0, set by "),
        "{refused}"
    );
    assert_eq!(
        head.tell(r#"launch {"memory":"300MiB"}"#),
        format!("default default#{} {}", head.pid(), 300 * MIB)
    );
}

#[test]
fn a_share_above_its_limit_is_refused_wherever_the_two_come_from() {
    let quota = format!("{CAP}limit = \"50%\"\n");
    let node = TestNode::start(&quota);
    let mut head = node.client();
    for (launch, told) in [
        (
            r#"{"share":"30%","limit":"20%"}"#,
            "`share` (30%) is more than `limit` (20%): write at most as much",
        ),
        (
            r#"{"share":"60%"}"#,
            "`share` (60%) is more than `limit` (50%): write at most as much",
        ),
    ] {
        assert_eq!(head.tell(&format!("launch {launch}")), format!("64 {told}"));
    }
    assert!(node.status().tenants.is_empty(), "nothing was left behind");
    let set = |values: &[(&str, &str)]| super::set::set(&node, "default", values, None);
    let refused = set(&[("share", "60%")]).unwrap_err();
    assert_eq!(
        refused.message,
        "default: `share` (60%) is more than `limit` (50%): write at most as much"
    );
    set(&[("share", "60%"), ("limit", "80%")]).unwrap();
    assert!(set(&[("limit", "55%")]).is_err());
    set(&[("limit", "60%")]).unwrap();
    assert!(
        set(&[("limit", "default")]).is_err(),
        "the file's is below the share that was set"
    );
    assert!(
        head.tell(r#"launch {"share":"60%"}"#).starts_with("default "),
        "what is set goes before the file"
    );
    set(&[("share", "default")]).unwrap();
    set(&[("limit", "default")]).unwrap();
    super::set::set(&node, "default", &[("limit", "80%")], Some("1s")).unwrap();
    set(&[("share", "60%")]).unwrap();
    until(
        "the share is above the limit that is left, and that is told",
        || {
            node.events().iter().any(|event| {
                event.detail.get("message")
                    == Some(
                        &"default: `share` (60%) is more than `limit` (50%): write at most as much".into(),
                    )
            })
        },
    );
}

#[test]
fn a_launch_that_makes_no_sense_is_refused_with_the_right_code() {
    let node = TestNode::start(CAP);
    let mut head = node.client();
    for (launch, exit) in [
        (r#"{"memory":"0"}"#, "64 "),
        (r#"{"memory":"12 GiB"}"#, "64 "),
        (
            r#"{"memory":"2GiB"}"#,
            "64 2147483648 bytes are more than device 0 has",
        ),
        (r#"{"tenant":"a b"}"#, "64 "),
        (r#"{"share":"200%"}"#, "64 "),
        (r#"{"priority":"urgent"}"#, "64 "),
    ] {
        let answer = head.tell(&format!("launch {launch}"));
        assert!(answer.starts_with(exit), "{launch}: {answer}");
    }
    assert!(node.status().tenants.is_empty(), "nothing was left behind");
    head.tell(r#"launch {"share":"20%"}"#);
    assert!(
        node.events()
            .iter()
            .any(|event| event.detail["message"].as_str().unwrap().contains("`share`"))
    );
}
