//! What an administrator types while tenants work: `set`, `why`, `drain`, `events -f`.

use super::*;
use crate::harness::{node::Setup, outcome::run, session::Session, wait::until};

/// `stint WORDS…` of the node, which succeeds; its stdout.
#[track_caller]
fn told(node: &Node, words: &[&str]) -> String {
    run(&mut node.stint(words)).success().stdout
}

#[test]
fn a_cap_lowered_below_what_is_in_use_ends_nobody_and_views_saturate() {
    let node = Node::start(Setup::cap("1GiB"));
    let mut session = client(&node);
    assert_eq!(session.error(&format!("alloc {}", 512 * MIB)), 0);
    let account = node.status()["tenants"][0]["account"]
        .as_str()
        .expect("an account")
        .to_owned();
    let said = told(&node, &["set", &account, "memory=256MiB"]);
    assert!(
        said.contains(&format!(
            "{account}: device 0: cap 1073741824 bytes (1 GiB) -> 268435456 bytes (256 MiB)"
        )),
        "{said}"
    );
    assert!(said.contains("nobody is ended"), "{said}");
    assert_eq!(session.numbers("info"), [0, 0, 256 * MIB], "free of total");
    assert_eq!(session.error(&format!("alloc {GRANULE}")), OUT_OF_MEMORY);
    let why = told(&node, &["why", &session.pid().to_string()]);
    assert!(why.contains("is a client since"), "{why}");
    assert!(
        why.contains("set by ") && why.contains("until it is dropped"),
        "{why}"
    );
    assert!(
        why.contains("was refused") && why.contains(&format!("`stint set {account} memory.burst=")),
        "{why}"
    );
    assert_eq!(session.error("free 0"), 0);
    assert_eq!(session.error(&format!("alloc {}", 64 * MIB)), 0);
    let said = told(&node, &["set", &account, "memory=default", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["schema"], "stint.set/v1");
    assert_eq!(
        said["accounts"][0]["devices"][0]["after"]["cap_bytes"].as_u64(),
        Some(1024 * MIB)
    );
    assert_eq!(session.error(&format!("alloc {}", 512 * MIB)), 0);
    assert_eq!(session.close(), 0);
}

#[test]
fn what_was_measured_is_recommended_once_it_is_enough() {
    let node = Node::start(Setup::cap("1GiB"));
    assert!(told(&node, &["recommend"]).contains("nothing was measured yet"));
    let mut session = client(&node);
    assert_eq!(session.error(&format!("alloc {}", 512 * MIB)), 0);
    assert_eq!(session.error(&format!("alloc {}", 700 * MIB)), OUT_OF_MEMORY);
    let one = || {
        let told: serde_json::Value =
            serde_json::from_str(&told(&node, &["recommend", "--json"])).expect("JSON");
        assert_eq!(told["schema"], "stint.recommend/v1");
        told["recommendations"][0].clone()
    };
    until("the refusal is taken down", || {
        (one()["refusals_total"] == 1).then_some(())
    });
    let measured = one();
    // The stand-in's own count is what it is held against.
    let truth = &node.truth()["devices"][0]["high_water_bytes"];
    assert_eq!(&measured["peak_bytes"], truth, "{measured}");
    assert_eq!(measured["lacks"], "time");
    let account = measured["account"].as_str().expect("an account").to_owned();
    let said = told(&node, &["recommend", &account]);
    assert!(said.contains("an hour is needed"), "{said}");
    let wrong = run(&mut node.stint(&["recommend", "nobody"]));
    assert_eq!((wrong.code, wrong.stdout.as_str()), (64, ""), "{wrong:?}");
    assert_eq!(session.close(), 0);
}

#[test]
fn wrong_words_to_set_and_why_end_with_64_and_say_what_was_meant() {
    let node = Node::start(Setup::quota("[tenants.training]\nmemory = \"1GiB\"\n"));
    for (words, part) in [
        (
            &["set", "trainign", "memory=1GiB"] as &[&str],
            "did you mean `training`?",
        ),
        (&["set", "training", "memory=8"], "write a unit"),
        (&["set", "training", "memory"], "KEY=VALUE"),
        (&["set", "training", "memory=1GiB", "--for", "2"], "2"),
        (&["set", "training", "memory=1GiB", "memory=2GiB"], "given twice"),
        (&["set", "training", "priority=urgent"], "low, normal or high"),
        (&["why", "trainign"], "did you mean `training`?"),
        (&["drain", "--gpu", "9"], "known: 0"),
    ] {
        let outcome = run(&mut node.stint(words));
        assert_eq!(outcome.code, 64, "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(part), "{words:?}: {outcome:?}");
    }
    assert!(node.events().iter().all(|event| event["detail"]["set"].is_null()));
    let said = told(&node, &["set", "training", "share=20%", "--for", "2h"]);
    assert!(
        said.contains("`share` is kept and not in force yet") && said.contains("until 20"),
        "{said}"
    );
    let why = told(&node, &["why", "training"]);
    assert!(
        why.contains("from the tenant's stanza at ") && why.contains("stint.toml:2:10"),
        "{why}"
    );
    assert!(why.contains("`share=20%` set for training by"), "{why}");
}

#[test]
fn a_drained_node_turns_programs_away_and_lets_those_there_go_on() {
    let node = Node::start(Setup::cap("1GiB"));
    let mut there = client(&node);
    let said = told(&node, &["drain"]);
    assert!(
        said.contains(&format!("still there: pid {}", there.pid())),
        "{said}"
    );
    let mut late = Session::start(&mut node.capped_command(program("steps", Link::Cuda)));
    assert_eq!(late.ask("init"), "802", "cuInit of a newcomer");
    let why = told(&node, &["why", &late.pid().to_string()]);
    assert!(
        why.contains("was turned away") && why.contains("the node is drained by"),
        "{why}"
    );
    assert_eq!(run(&mut node.stint(&["run", "--", "/bin/true"])).code, 125);
    assert_eq!(there.error(&format!("alloc {}", 64 * MIB)), 0);
    assert!(told(&node, &["status"]).contains("ok, drained"));
    let mut waiting = crate::harness::outcome::start(&mut node.stint(&["drain", "--wait"]));
    assert!(waiting.ended().is_none());
    assert_eq!(there.close(), 0);
    let left = waiting.finish("drain --wait").success().stdout;
    assert!(left.trim_end().ends_with("nobody is there"), "{left}");
    told(&node, &["drain", "--undo"]);
    assert_eq!(client(&node).close(), 0);
}

#[test]
fn events_followed_over_a_restart_mark_the_gap_and_go_on() {
    let mut node = Node::start(Setup::cap("1GiB"));
    assert_eq!(client(&node).close(), 0);
    let mut follower = Session::start(&mut node.stint(&[
        "events", "--follow", "--json", "--kind", "admitted", "--kind", "state",
    ]));
    let next = |follower: &mut Session| -> serde_json::Value {
        serde_json::from_str(&follower.answer()).expect("an event is JSON")
    };
    assert_eq!(next(&mut follower)["kind"], "admitted");
    node.kill_daemon();
    node.start_daemon();
    let mut session = client(&node);
    let gap = until("the gap is marked", || {
        let event = next(&mut follower);
        event["detail"]["gap"].as_bool().is_some().then_some(event)
    });
    assert_eq!(
        (gap["kind"].as_str(), gap["detail"]["gap"].as_bool()),
        (Some("state"), Some(true))
    );
    let pid = session.pid();
    until("the newcomer is told", || {
        (next(&mut follower)["pid"].as_u64() == Some(pid.into())).then_some(())
    });
    session.kill();
    let only = told(&node, &["events", "--tenant", "nobody"]);
    assert!(only.is_empty(), "{only}");
    assert!(told(&node, &["events", "--since", "1h"]).contains("admitted"));
    assert!(told(&node, &["events", "--since", "2099-01-01T00:00:00Z"]).is_empty());
    assert_eq!(run(&mut node.stint(&["events", "--since", "yesterday"])).code, 64);
}

#[test]
fn what_was_set_and_drained_holds_over_a_restart() {
    let mut node = Node::start(Setup::cap("1GiB"));
    let mut session = client(&node);
    let account = node.status()["tenants"][0]["account"]
        .as_str()
        .expect("an account")
        .to_owned();
    told(&node, &["set", &account, "memory=256MiB"]);
    told(&node, &["drain"]);
    node.restart_daemon();
    assert_eq!(session.error(&format!("alloc {}", 512 * MIB)), OUT_OF_MEMORY);
    assert!(told(&node, &["why", &account]).contains("set by "));
    let mut late = Session::start(&mut node.capped_command(program("steps", Link::Cuda)));
    assert_eq!(late.ask("init"), "802");
    told(&node, &["drain", "--undo"]);
    told(&node, &["set", &account, "memory=default"]);
    assert_eq!(session.error(&format!("alloc {}", 512 * MIB)), 0);
    assert_eq!(session.close(), 0);
}
