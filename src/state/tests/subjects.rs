//! Processes outside, processes turned away, and accounts above caps nobody enforces.

use super::*;

#[test]
fn a_process_outside_is_told_once_with_all_that_is_known() {
    let mut node = node();
    let looked = |start_time| Event::Looked {
        looks: vec![Look {
            index: 5,
            processes: Some(vec![Process {
                pid: 88,
                used_bytes: Some(7),
            }]),
            ..Look::default()
        }],
        holders: [(88, of_bob(start_time))].into(),
        own: Vec::new(),
    };
    let lines = node.apply(looked(1), at(1));
    let detail = serde_json::to_string(&lines[0].detail).unwrap();
    assert_eq!(detail, r#"{"command":"train","used_bytes":7,"user":"bob"}"#);
    assert!(node.apply(looked(1), at(2)).is_empty());
    assert_eq!(
        node.apply(looked(2), at(3)).len(),
        1,
        "another one under the same number"
    );
    let Some(Subject::Stranger {
        user,
        command,
        since,
        devices,
    }) = node.subject(88)
    else {
        panic!("it is known")
    };
    assert_eq!(
        (user.as_deref(), command.as_deref(), since),
        (Some("bob"), Some("train"), at(3))
    );
    assert_eq!(devices, [(5, Some(7))]);
}

#[test]
fn who_was_turned_away_is_known_until_it_becomes_a_client() {
    let mut node = node();
    node.apply(
        Event::Opened {
            place: place("a"),
            granted: granted(4, 1),
        },
        at(0),
    );
    let denied = |pid| Event::Denied {
        pid,
        user: "bob".into(),
        reason: "unknown",
        message: "no".into(),
    };
    for pid in 1..=300 {
        node.apply(denied(pid), at(1));
    }
    assert_eq!(node.subject(1), None, "only the last ones are remembered");
    assert!(matches!(node.subject(300), Some(Subject::Denied(denial)) if denial.reason == "unknown"));
    node.apply(
        Event::Admitted {
            id: ClientId(1),
            client: client(300, 1),
        },
        at(2),
    );
    assert!(matches!(node.subject(300), Some(Subject::Client { account, .. }) if account == "a"));
    node.apply(
        Event::Left {
            id: ClientId(1),
            why: "ended",
            released: vec![0, 0],
            corrupt: false,
        },
        at(3),
    );
    assert_eq!(node.subject(300), None);
}

#[test]
fn an_observed_account_above_its_cap_is_told_once_for_each_cap() {
    let mut node = node();
    node.mode = Mode::Observe;
    node.apply(
        Event::Opened {
            place: place("a"),
            granted: granted(4, 1),
        },
        at(0),
    );
    let read = |peak: u64, cap: u64| Event::Read {
        account: "a".into(),
        readings: vec![
            Reading {
                cap_bytes: cap * GIB,
                used_bytes: GIB,
                peak_bytes: peak * GIB,
                ..Reading::default()
            },
            Reading::default(),
        ],
    };
    assert!(node.apply(read(4, 4), at(1)).is_empty());
    let lines = node.apply(read(5, 4), at(2));
    assert_eq!(
        (lines.len(), lines[0].kind, lines[0].device),
        (1, Kind::State, Some(3))
    );
    assert_eq!(lines[0].detail["peak_bytes"], 5 * GIB);
    assert!(node.apply(read(6, 4), at(3)).is_empty());
    assert_eq!(node.apply(read(6, 5), at(4)).len(), 1);
    node.mode = Mode::Enforce;
    assert!(node.apply(read(6, 3), at(5)).is_empty());
}
