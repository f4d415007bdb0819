//! What becomes of accounts when the quota file changes under them.

use super::*;
use crate::skip::skip;

#[test]
fn an_account_whose_tenant_is_gone_from_the_file_has_what_the_defaults_say() {
    let with = format!("{}[tenants.lab]\nmemory = \"200MiB\"\n", quota("100MiB"));
    let filed = Filed::start(&with);
    let mut client = filed.node.client();
    client.tell(r#"launch {"tenant":"lab"}"#);
    client.tell("attach 1");
    assert_eq!(filed.node.caps("lab"), [200 * MIB; 2]);
    filed.replace(&quota("100MiB"));
    let reloaded = filed.reload().unwrap();
    assert_eq!(reloaded.changed, ["tenants.lab: gone"]);
    assert_eq!(filed.node.caps("lab"), [100 * MIB; 2]);
    filed.replace(&with.replace("200MiB", "300MiB"));
    filed.reload().unwrap();
    assert_eq!(filed.node.caps("lab"), [300 * MIB; 2]);
}

#[test]
fn caps_are_lowered_before_others_are_raised() {
    let two = |a: &str, b: &str| {
        format!(
            "{}[tenants.a]\nmemory = \"{a}\"\n[tenants.b]\nmemory = \"{b}\"\n",
            quota("1MiB")
        )
    };
    let filed = Filed::start(&two("700MiB", "200MiB"));
    let mut clients = ["b", "a"].map(|tenant| {
        let mut client = filed.node.client();
        client.tell(&format!(r#"launch {{"tenant":"{tenant}"}}"#));
        client.tell("attach 1");
        client
    });
    filed.replace(&two("200MiB", "700MiB"));
    assert_eq!(filed.reload().unwrap().accounts, ["a", "b"]);
    let events = filed.node.events().into_iter();
    let order: Vec<(String, u64)> = events
        .filter(|event| event.device == Some(0))
        .filter_map(|event| Some((event.account?, event.detail.get("cap_bytes")?.as_u64()?)))
        .collect();
    assert_eq!(
        order,
        [("a".to_string(), 200 * MIB), ("b".to_string(), 700 * MIB)]
    );
    assert_eq!(clients[0].tell(&format!("reserve {}", 700 * MIB)), "ok");
    assert_eq!(clients[1].tell(&format!("reserve {}", 201 * MIB)), "refused");
}

#[test]
fn what_a_launch_asked_for_is_not_the_files_to_change() {
    let filed = Filed::start(&quota("256MiB"));
    let mut client = filed.node.client();
    let asked = client.tell(r#"launch {"memory":"100MiB"}"#);
    assert!(asked.contains("default"), "{asked}");
    client.tell("attach 1");
    let account = filed
        .node
        .status()
        .tenants
        .iter()
        .find(|tenant| !tenant.clients.is_empty())
        .unwrap()
        .account
        .clone();
    assert_eq!(filed.node.caps(&account), [100 * MIB; 2]);
    filed.replace(&quota("60MiB"));
    filed.reload().unwrap();
    assert_eq!(filed.node.caps(&account), [100 * MIB; 2]);
}

#[test]
fn a_part_of_an_account_is_cut_with_the_whole_and_grows_with_it() {
    use std::os::unix::fs::PermissionsExt;
    if !rustix::process::geteuid().is_root() {
        return skip(
            "a part of an account is cut with the whole and grows with it",
            "only root can become another user",
        );
    }
    let filed = Filed::start(&quota("256MiB"));
    fs::set_permissions(filed.node.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let (mut whole, mut part) = (filed.node.client(), filed.node.client());
    whole.tell("attach 1");
    part.tell("become 65534");
    let account = format!("default#{}", part.pid());
    let launched = part.tell(r#"launch {"memory":"100MiB"}"#);
    assert!(launched.starts_with(&format!("default {account} ")), "{launched}");
    for (cap, of_whole, of_part) in [(256, 156, 100), (80, 0, 80), (120, 20, 100), (256, 156, 100)] {
        filed.replace(&quota(&format!("{cap}MiB")));
        filed.reload().unwrap();
        assert_eq!(filed.node.caps("default"), [of_whole * MIB; 2], "of {cap}");
        assert_eq!(filed.node.caps(&account), [of_part * MIB; 2], "of {cap}");
    }
}

#[test]
fn what_was_set_stays_and_the_file_holds_again_when_it_is_dropped() {
    let filed = Filed::start(&quota("256MiB"));
    let mut client = filed.node.client();
    client.tell("attach 1");
    let set = |value: &str| {
        let answer = filed.node.client().tell(&format!(
            r#"set {{"target":"default","values":{{"memory":"{value}"}}}}"#
        ));
        assert_eq!(answer, "ok");
    };
    set("50MiB");
    filed.replace(&quota("100MiB"));
    let reloaded = filed.reload().unwrap();
    assert_eq!(
        (reloaded.changed.len(), reloaded.accounts.len()),
        (1, 0),
        "{reloaded:?}"
    );
    assert_eq!(filed.node.caps("default"), [50 * MIB; 2]);
    set("default");
    assert_eq!(filed.node.caps("default"), [100 * MIB; 2]);
}

#[test]
fn who_is_at_work_keeps_its_account_and_newcomers_belong_to_whom_they_match_now() {
    let uid = rustix::process::getuid().as_raw();
    let file = |a: &str, b: &str| {
        let tenant = |name, more| format!("[tenants.{name}]\nper = \"tenant\"\nmatch = [{more}]\n");
        format!("{}{}{}", quota("100MiB"), tenant("a", a), tenant("b", b))
    };
    let me = format!("{{ user = \"{uid}\" }}");
    let filed = Filed::start(&file(&me, ""));
    let mut first = filed.node.client();
    first.tell("attach 1");
    filed.replace(&file("", &me));
    assert_eq!(filed.reload().unwrap().changed.len(), 2);
    let mut second = filed.node.client();
    second.tell("attach 1");
    let status = filed.node.status();
    let of = |pid: u32| {
        let has =
            |tenant: &&crate::protocol::node::Tenant| tenant.clients.iter().any(|client| client.pid == pid);
        status
            .tenants
            .iter()
            .find(has)
            .map(|tenant| tenant.account.as_str())
    };
    assert_eq!((of(first.pid()), of(second.pid())), (Some("a"), Some("b")));
    filed.replace(&file("", "").replace("[node]", "[node]\nunknown = \"refuse\""));
    filed.reload().unwrap();
    let answer = filed.node.client().tell("attach 1");
    assert!(answer.starts_with("Denied"), "{answer}");
    assert_eq!(first.tell("reserve 512"), "ok");
}

#[test]
fn guarantees_that_a_reload_makes_too_many_are_told_and_keep_newcomers_out() {
    let file = |guaranteed: &str| {
        format!(
            "[node]\nreserve = \"off\"\n[defaults]\nper = \"tenant\"\nmemory = {{ guaranteed = \"{guaranteed}\", burst = \"all\" }}\n"
        )
    };
    let filed = Filed::start(&file("30%"));
    let mut clients = ["x", "y"].map(|tenant| {
        let mut client = filed.node.client();
        client.tell(&format!(r#"launch {{"tenant":"{tenant}"}}"#));
        client.tell("attach 1");
        client
    });
    filed.replace(&file("60%"));
    filed.reload().unwrap();
    let told = filed.told("message");
    let line = "1288490188 bytes of device 0 are guaranteed to those at work, of which 1073741824 can be";
    assert!(
        told.iter()
            .any(|message| message.as_str().unwrap().starts_with(line)),
        "{told:?}"
    );
    let mut third = filed.node.client();
    let refused = third.tell(r#"launch {"tenant":"z"}"#);
    assert!(
        refused.starts_with("1 account z would be guaranteed"),
        "{refused}"
    );
    let [first, second] = &mut clients;
    assert_eq!(
        (first.tell("reserve 512"), second.tell("reserve 512")),
        ("ok".into(), "ok".into())
    );
    filed.replace(&file("30%"));
    filed.reload().unwrap();
    assert!(third.tell(r#"launch {"tenant":"z"}"#).starts_with("z z"));
}
