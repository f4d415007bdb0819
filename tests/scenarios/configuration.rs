//! The quota file as its administrator meets it: `stint config check`, and a reload under programs at work.

use std::fs;

use serde_json::Value;

use super::*;
use crate::harness::{node::Setup, outcome::run, root, wait::until};

fn check(node: &Node, words: &[&str]) -> crate::harness::outcome::Outcome {
    run(node
        .stint(&["config", "check"])
        .args(words)
        .current_dir(root().join("tests/corpus/config")))
}

#[test]
fn config_check_tells_every_mistake_and_its_exit_code_says_whether_there_is_one() {
    let node = Node::unstarted(Setup::default());
    let good = check(&node, &["good/contract.toml"]);
    assert_eq!((good.code, good.stderr.as_str()), (0, ""), "{good:?}");
    assert!(
        good.stdout.ends_with("no mistakes in good/contract.toml\n"),
        "{good:?}"
    );
    assert!(
        good.stdout
            .contains("`share` of [defaults] is understood and not in force yet"),
        "{good:?}"
    );

    let broken = check(&node, &["broken/many-at-once.toml"]);
    let expected = root().join("tests/corpus/config/broken/many-at-once.expected");
    let expected = fs::read_to_string(expected).expect("a file of the corpus");
    let expected: String = expected
        .lines()
        .map(|line| format!("stint: broken/{line}\n"))
        .collect();
    assert_eq!((broken.code, broken.stdout.as_str()), (78, ""));
    assert_eq!(broken.stderr, expected, "every line is marked");

    let json = check(&node, &["--json", "broken/priority-misspelt.toml"]);
    assert_eq!((json.code, json.stderr.as_str()), (78, ""));
    let report: Value = serde_json::from_str(&json.stdout).expect("JSON");
    let error = serde_json::json!({
        "file": "broken/priority-misspelt.toml", "line": 2, "column": 12, "message": "`hihg` is not allowed here",
        "allowed": ["low", "normal", "high"], "suggestion": "high",
    });
    assert_eq!(report, serde_json::json!({ "ok": false, "errors": [error] }));
    for file in ["good/empty.toml", "good/contract.toml"] {
        let json = check(&node, &["--json", file]);
        assert_eq!(
            (json.code, json.stdout.as_str()),
            (0, "{\"ok\":true,\"errors\":[]}\n")
        );
    }
    let json = check(&node, &["--json", "absent.toml"]);
    assert_eq!(
        (json.code, json.stdout.as_str()),
        (
            78,
            "{\"ok\":false,\"errors\":[{\"file\":\"absent.toml\",\"line\":0,\"column\":0,\"message\":\"cannot be read: No \
             such file or directory (os error 2)\",\"allowed\":[],\"suggestion\":null}]}\n"
        )
    );
}

#[test]
fn config_check_says_what_it_looked_at_and_whom_nobody_here_is() {
    let node = Node::unstarted(Setup::default());
    let drop_ins = node.directory().join("stint.d");
    fs::create_dir(&drop_ins).expect("a directory can be made");
    let directory = drop_ins.to_str().expect("a path of the test's");
    let nothing = check(&node, &[directory]).success();
    assert_eq!(
        nothing.stdout,
        format!("no mistakes: there is no quota file ({directory}/*.toml); without one nothing is capped\n")
    );
    let file = drop_ins.join("a.toml");
    fs::write(
        &file,
        "[tenants.a]\nmatch = [{ user = \"nobody-here\" }, { user = \"root\" }, { user = \"4711\" }, { group = \"none-here\" }]\n",
    )
    .expect("a drop-in can be written");
    let shown = file.display();
    assert_eq!(
        check(&node, &[directory]).success().stdout,
        format!(
            "{shown}:1:10: [tenants.a] matches user `nobody-here`, whom this machine does not know\n\
             {shown}:1:10: [tenants.a] matches group `none-here`, whom this machine does not know\n\
             no mistakes in {shown}\n"
        )
    );
}

#[test]
fn config_check_reads_files_and_drop_ins_together_as_the_daemon_does() {
    let node = Node::unstarted(Setup::default());
    let drop_ins = node.directory().join("stint.d");
    fs::create_dir(&drop_ins).expect("a directory can be made");
    let write =
        |name: &str, text: &str| fs::write(drop_ins.join(name), text).expect("a drop-in can be written");
    write("10-a.toml", "[tenants.a]\nmatch = [{ user = \"u\" }]\n");
    write("20-b.toml", "[tenants.b]\nmatch = [{ user = \"v\" }]\n");
    write("20-b.toml.orig", "this is nothing");
    let directory = drop_ins.to_str().expect("a path of the test's");
    let both = check(&node, &["good/amounts.toml", directory]);
    assert!(
        both.stderr
            .contains("10-a.toml:1:10: tenant `a` stands in another file already"),
        "{both:?}"
    );
    assert!(
        both.stderr.contains("20-b.toml:1:10: tenant `b`") && both.code == 78,
        "{both:?}"
    );
    assert_eq!(check(&node, &[directory]).code, 0);
    write("20-b.toml", "[tenants.b]\nmatch = [{ user = \"u\" }]\n");
    let equal = check(&node, &[directory]);
    assert!(
        equal
            .stderr
            .contains("20-b.toml:2:10: user `u` is matched by tenant `a` already"),
        "{equal:?}"
    );
    let absent = check(&node, &["absent.toml", "good/empty.toml"]);
    assert_eq!(absent.code, 78);
    assert!(
        absent
            .stderr
            .starts_with("stint: absent.toml: cannot be read: No such file"),
        "{absent:?}"
    );
}

/// Replaces the node's quota file as an editor does.
fn replace(node: &Node, quota: &str) {
    let next = node.directory().join("stint.toml~");
    fs::write(&next, quota).expect("a file can be written");
    fs::rename(next, node.directory().join("stint.toml")).expect("a file can be renamed");
}

#[test]
fn changing_a_limit_needs_neither_a_restart_nor_a_deletion() {
    let node = Node::start(Setup::cap("1GiB"));
    let mut session = client(&node);
    assert_eq!(session.error(&format!("alloc {}", 640 * MIB)), 0);
    replace(&node, &Setup::cap("512MiB").quota);
    let reloaded = run(&mut node.stint(&["reload"])).success();
    assert!(
        reloaded.stdout.contains("defaults.memory.burst: 1GiB → 512MiB\n"),
        "{reloaded:?}"
    );
    assert_eq!(
        session.error(&format!("alloc {}", 2 * MIB)),
        OUT_OF_MEMORY,
        "more is held than the new cap"
    );
    assert_eq!(free(&mut session), 0);
    assert!(node.used(0) >= 640 * MIB, "what was held is taken from nobody");
    replace(&node, &Setup::cap("2GiB").quota);
    until("the new cap is in force", || {
        (free(&mut session) > 1024 * MIB).then_some(())
    });
    assert_eq!(session.error(&format!("alloc {}", 1024 * MIB)), 0);
    assert_eq!(session.close(), 0);
}

#[test]
fn a_hangup_with_a_broken_file_changes_nothing_and_says_which_line() {
    let node = Node::start(Setup::cap("1GiB"));
    let mut session = client(&node);
    let before = free(&mut session);
    replace(&node, "[defaults]\nmemory = \"12 GiB\"\n");
    run(std::process::Command::new("kill").args(["-HUP", &node.daemon_pid().to_string()])).success();
    // The file was noticed by itself as well: what counts here is what the signal gave.
    let told = || {
        let of_the_signal = |event: &Value| event["detail"]["cause"] == "SIGHUP";
        let mut events = node.events().into_iter().filter(of_the_signal);
        events.next_back().map(|event| event["detail"].clone())
    };
    let line = until("the mistake is an event", || {
        Some(told()?["errors"][0].as_str()?.to_owned())
    });
    assert!(
        line.ends_with("stint.toml:2:10: `12 GiB` has a space inside: write `12GiB`"),
        "{line}"
    );
    let refused = run(&mut node.stint(&["reload"]));
    assert_eq!(refused.code, 78, "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("stint.toml:2:10: `12 GiB` has a space inside"),
        "{refused:?}"
    );
    assert_eq!(free(&mut session), before);
    replace(&node, &Setup::cap("2GiB").quota);
    run(std::process::Command::new("kill").args(["-HUP", &node.daemon_pid().to_string()])).success();
    until("the signal has it read again", || {
        told()?["changed"].as_array().map(|_| ())
    });
    assert!(free(&mut session) > before);
}
