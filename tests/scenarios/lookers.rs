//! Programs that only look at devices, on a node that does not want them: they are told that nothing can be told.

use super::*;
use crate::harness::{
    node::Setup,
    outcome::{Outcome, run},
};

/// `NVML_ERROR_INVALID_ARGUMENT` and `NVML_ERROR_UNKNOWN`.
const INVALID: &str = "2";
const UNKNOWN: &str = "999";

/// What a tenant is to see its own part of.
const OWN: [&str; 4] = ["memory", "memory_v2", "compute", "graphics"];

#[track_caller]
fn look(node: &Node) -> Outcome {
    run(&mut node.capped_command(program("looker", Link::Nothing))).success()
}

/// Code and number of an answer.
#[track_caller]
fn answer(outcome: &Outcome, what: &str) -> (String, String) {
    let (code, number) = outcome.value(what).split_once(' ').expect("a code and a number");
    (code.to_owned(), number.to_owned())
}

#[track_caller]
fn nothing_is_told(outcome: &Outcome) {
    for what in OWN {
        assert_eq!(
            answer(outcome, what),
            (UNKNOWN.into(), "0".into()),
            "{what}: {outcome:?}"
        );
    }
    assert_eq!(
        answer(outcome, "name").0,
        "0",
        "what is no tenant's is told: {outcome:?}"
    );
    assert_eq!(
        answer(outcome, "nowhere").0,
        INVALID,
        "the library's own error comes first"
    );
}

#[test]
fn a_looker_without_a_daemon_sees_nothing_or_everything_as_the_policy_says() {
    for absent in ["refuse", "run"] {
        let mut node = Node::start(Setup::quota(format!(
            "[node]\nabsent = \"{absent}\"\n[defaults]\nmemory = \"1GiB\"\n"
        )));
        let mut holder = client(&node);
        assert_eq!(holder.error(&format!("alloc {}", 256 * MIB)), 0);
        let own = look(&node);
        assert_eq!(answer(&own, "memory"), ("0".into(), (1024 * MIB).to_string()));
        assert_eq!(answer(&own, "compute"), ("0".into(), "1".into()));
        node.kill_daemon();
        let left = look(&node);
        if absent == "refuse" {
            nothing_is_told(&left);
        } else {
            let (code, total) = answer(&left, "memory");
            assert_eq!(code, "0");
            assert!(
                total.parse::<u64>().expect("a number") > 100 * 1024 * MIB,
                "{total}"
            );
        }
        assert_eq!(
            holder.error(&format!("alloc {}", 256 * MIB)),
            0,
            "who was admitted goes on"
        );
    }
}

#[test]
fn a_looker_the_node_refuses_sees_nothing() {
    let node = Node::start(Setup::quota("[node]\nunknown = \"refuse\"\n"));
    nothing_is_told(&look(&node));
}
