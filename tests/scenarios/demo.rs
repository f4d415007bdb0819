//! The demo keeps its promises, and sabotage of the mechanism behind one is seen in what is measured.

use std::process::Command;

use serde_json::Value;

use crate::harness::{artefacts, outcome::run};

/// Exit code and promises of a demo.
fn demo(sabotage: Option<&str>) -> (i32, Vec<Value>) {
    let mut command = Command::new(artefacts::directory().join("bin/stint"));
    command.args(["demo", "--seconds", "1", "--json"]);
    if let Some(promise) = sabotage {
        command.args(["--break", promise]);
    }
    let outcome = run(&mut command);
    let document: Value = serde_json::from_str(&outcome.stdout).expect("the demo prints JSON");
    let promises = document["promises"].as_array().expect("promises are a list");
    (outcome.code, promises.clone())
}

#[test]
fn promises_are_kept_and_each_break_is_noticed() {
    let (code, kept) = demo(None);
    assert_eq!(code, 0, "{kept:#?}");
    assert!(kept.len() >= 3);
    for promise in &kept {
        assert_eq!(promise["ok"], true, "{promise}");
        let name = promise["name"].as_str().expect("a promise has a name");
        let (code, broken) = demo(Some(name));
        let row = broken
            .iter()
            .find(|row| row["name"] == name)
            .expect("every promise is measured");
        assert_eq!(code, 1, "{name}");
        assert_eq!(row["ok"], false, "{row}");
        assert_ne!(row["measured"], promise["measured"], "{name}");
    }
}
