//! What `set` changed and `drain` closed, after a reboot: the run directory is as new, the state directory is not.

use super::*;

fn start(node: &mut TestNode, state: &Path) {
    let mut options = options(node.path(), CAP);
    options.state_directory = Some(state.into());
    node.daemon = Some(Daemon::start(options).unwrap());
}

fn file(state: &Path) -> PathBuf {
    state.join("settings.json")
}

fn text(state: &Path) -> String {
    std::fs::read_to_string(file(state)).unwrap_or_default()
}

/// What a reboot leaves of a node whose daemon was `ended` before.
fn reboot(node: &TestNode, state: &Path) {
    std::fs::remove_file(node.path().join("state")).unwrap();
    let mut kept: serde_json::Value = serde_json::from_str(&text(state)).unwrap();
    kept["settings"]["boot"] = "another".into();
    std::fs::write(file(state), kept.to_string()).unwrap();
}

#[test]
fn what_was_set_and_closed_outlives_a_reboot_and_what_was_of_a_launch_does_not() {
    let state = tempfile::tempdir().unwrap();
    let mut node = TestNode::with(CAP, |options| options.state_directory = Some(state.path().into()));
    let (mut head, mut admin) = (node.client(), node.client());
    head.tell(r#"launch {"tenant":"lab","memory":"64MiB"}"#);
    assert!(head.tell("attach 1").starts_with("Admitted"));
    for set in [
        r#"set {"target":"default","values":{"memory.burst":"128MiB"}}"#,
        r#"set {"target":"lab","values":{"memory.burst":"32MiB"}}"#,
        r#"drain {"gpu":"1","action":"close"}"#,
    ] {
        assert_eq!(admin.tell(set), "ok");
    }
    until("it is kept, without the daemon's end", || {
        let text = text(state.path());
        text.contains("128MiB") && text.contains("32MiB") && text.contains("-000000000001")
    });
    node.daemon.take().unwrap().crash().unwrap();

    // The run directory alone is lost: who is still there is still meant.
    std::fs::remove_file(node.path().join("state")).unwrap();
    start(&mut node, state.path());
    assert_eq!(
        node.client().tell(r#"launch {"tenant":"lab"}"#),
        format!("lab lab {}", 32 * MIB)
    );

    node.daemon.take().unwrap().stop().unwrap();
    assert!(text(state.path()).contains("32MiB"), "of the same boot");
    reboot(&node, state.path());
    head.kill();
    start(&mut node, state.path());
    let mut client = node.client();
    assert_eq!(
        client.tell("attach 1"),
        format!("Admitted 2 devices cap {}", 128 * MIB)
    );
    assert_eq!(node.caps("default"), [128 * MIB, 0], "device 1 is closed");
    assert_eq!(
        node.client().tell(r#"launch {"tenant":"lab"}"#),
        format!("lab lab {}", 256 * MIB)
    );

    assert_eq!(
        admin.tell(r#"set {"target":"default","values":{"memory.burst":"default"}}"#),
        "ok"
    );
    assert_eq!(admin.tell(r#"drain {"gpu":"1","action":"open"}"#), "ok");
    node.daemon.take().unwrap().stop().unwrap();
    assert!(!text(state.path()).contains("MiB"), "nothing is set any more");
    reboot(&node, state.path());
    start(&mut node, state.path());
    assert!(node.client().tell("attach 1").starts_with("Admitted"));
    assert_eq!(node.caps("default"), [256 * MIB; 2], "dropped is dropped");
}

#[test]
fn a_damaged_file_is_put_aside_and_a_later_one_left_alone() {
    let state = tempfile::tempdir().unwrap();
    for (content, told) in [
        ("{", "settings.json.damaged"),
        (r#"{"version":2,"settings":7}"#, "written by a later version (2"),
    ] {
        std::fs::write(file(state.path()), content).unwrap();
        let node = TestNode::with(CAP, |options| options.state_directory = Some(state.path().into()));
        let faults = node.events();
        assert!(
            faults
                .iter()
                .any(|event| event.detail["what"].to_string().contains(told)),
            "{faults:?}"
        );
        let set = r#"set {"target":"default","values":{"memory.burst":"128MiB"}}"#;
        assert_eq!(node.client().tell(set), "ok");
        drop(node);
        assert_eq!(text(state.path()).contains("128MiB"), content == "{");
    }
}
