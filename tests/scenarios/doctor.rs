//! `stint doctor` finds each fault that is made here once, and nothing where there is none.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::harness::{
    artefacts,
    node::Setup,
    outcome::{Outcome, run},
    wait::until,
};

/// The verdict on `name`, if the doctor speaks of it; the worst where it does so twice.
#[track_caller]
fn verdict(outcome: &Outcome, name: &str) -> Option<String> {
    let document: serde_json::Value =
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error} in {outcome:?}"));
    assert_eq!(document["schema"], "stint.doctor/v1");
    let checks = document["checks"].as_array().expect("checks").iter();
    let of_name = checks.filter(|check| check["name"] == name);
    let rank = |verdict: &str| ["ok", "warn", "fail"].iter().position(|word| *word == verdict);
    of_name
        .map(|check| check["verdict"].as_str().expect("a verdict").to_owned())
        .max_by_key(|verdict| rank(verdict))
}

#[track_caller]
fn doctor(node: &Node, words: &[&str]) -> Outcome {
    run(node.stint(&["doctor", "--json"]).args(words))
}

#[test]
fn a_healthy_node_passes_and_its_cap_is_proven_by_a_client_that_tries() {
    let node = Node::start(Setup::quota(""));
    let outcome = doctor(&node, &[]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    for name in [
        "kernel",
        "shim",
        "policy",
        "sockets",
        "daemon",
        "driver",
        "mode",
        "unattached",
        "proof",
    ] {
        assert_eq!(
            verdict(&outcome, name).as_deref(),
            Some("ok"),
            "{name}: {outcome:?}"
        );
    }
    let refused = node
        .events()
        .into_iter()
        .find(|event| event["kind"] == "refused")
        .expect("a refusal");
    assert_eq!(refused["detail"]["reason"], "cap");
    assert_eq!(node.used(0), 0, "its clients are gone");
    let text = run(&mut node.stint(&["doctor", "--no-proof"])).success().stdout;
    assert!(text.contains("ok    sockets"), "{text}");
    assert!(!text.contains("proof"), "{text}");
}

#[test]
fn a_cap_too_small_for_the_proof_is_no_fault_of_the_node() {
    let node = Node::start(Setup::quota(""));
    run(&mut node.stint(&["set", "default", "memory=1GiB"])).success();
    let outcome = doctor(&node, &[]);
    assert_eq!(verdict(&outcome, "proof").as_deref(), Some("warn"), "{outcome:?}");
    assert_eq!(outcome.code, 0, "{outcome:?}");
}

#[test]
fn a_shim_that_does_nothing_fails_the_proof() {
    let node = Node::start(Setup::quota(""));
    let root = node.directory().join("tree");
    let copy = run(std::process::Command::new("cp")
        .arg("-a")
        .arg(artefacts::directory())
        .arg(&root));
    copy.success();
    let nothing = program("nothing", Link::Shared);
    // What programs are given, by whatever path, is a library that does nothing.
    let shim = root.join("lib/libstint.so");
    std::fs::remove_file(&shim).expect("the copy's shim can be taken away");
    std::fs::copy(&nothing, &shim).expect("another can be put in place");
    let mut broken = node.bare_command(root.join("bin/stint"));
    let outcome = run(broken.args(["doctor", "--json"]));
    assert_eq!(outcome.code, 1, "{outcome:?}");
    for name in ["shim", "proof"] {
        assert_eq!(
            verdict(&outcome, name).as_deref(),
            Some("fail"),
            "{name}: {outcome:?}"
        );
    }
}

#[test]
fn each_fault_of_a_node_is_found_and_said_to_be_mended_how() {
    let mut node = Node::start(Setup::quota(""));
    let path = |name: &str| node.directory().join(name);
    let find = |name: &str, expected: &str, code: i32| {
        let outcome = doctor(&node, &["--no-proof"]);
        assert_eq!(
            verdict(&outcome, name).as_deref(),
            Some(expected),
            "{name}: {outcome:?}"
        );
        assert_eq!(outcome.code, code, "{name}");
        assert!(outcome.stdout.contains("\"mend\":"), "{outcome:?}");
    };
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("our own file");
    };
    mode(&path("attach/attach.sock"), 0o600);
    find("sockets", "fail", 1);
    mode(&path("attach/attach.sock"), 0o666);
    mode(&path("attach"), 0o777);
    find("sockets", "fail", 1);
    mode(&path("attach"), 0o755);
    let policy = path("attach/policy");
    let kept = std::fs::read(&policy).expect("the policy");
    std::fs::remove_file(&policy).expect("our own file");
    find("policy", "fail", 1);
    std::fs::write(&policy, kept).expect("our own file");
    let mut stranger = bare(&node);
    until("the stranger is seen", || {
        (!node.status()["unattached"].as_array()?.is_empty()).then_some(())
    });
    find("unattached", "warn", 0);
    stranger.kill();
    until("the stranger is gone", || {
        node.status()["unattached"].as_array()?.is_empty().then_some(())
    });
    let outcome = doctor(&node, &["--no-proof"]);
    assert_eq!(
        verdict(&outcome, "sockets").as_deref(),
        Some("ok"),
        "mended: {outcome:?}"
    );
    node.kill_daemon();
    let outcome = doctor(&node, &[]);
    assert_eq!(
        (outcome.code, verdict(&outcome, "daemon").as_deref()),
        (1, Some("fail")),
        "{outcome:?}"
    );
}

#[test]
fn an_observing_node_and_keys_without_effect_are_warned_of() {
    let node = Node::start(Setup::quota(
        "[node]\nmode = \"observe\"\n[defaults]\nshare = \"20%\"\n",
    ));
    let outcome = doctor(&node, &[]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    for name in ["mode", "not in force", "proof"] {
        assert_eq!(
            verdict(&outcome, name).as_deref(),
            Some("warn"),
            "{name}: {outcome:?}"
        );
    }
}
