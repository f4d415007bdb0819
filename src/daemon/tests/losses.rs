//! What a restarted daemon makes of a record, descriptors, objects or a run directory that are damaged or gone.

use super::restarts::faults;
use super::*;

/// A daemon starts after `harm` was done to the record of one with a client that holds memory.
#[track_caller]
fn without_record(harm: impl FnOnce(&Path), complaint: &str) {
    let mut node = TestNode::start(CAP);
    let mut old = node.client();
    old.tell("attach 1");
    assert_eq!(old.tell(&format!("reserve {}", 200 * MIB)), "ok");
    node.crash();
    harm(&node.record());
    node.start_again(CAP);
    let mut fresh = node.client();
    assert_eq!(fresh.tell("attach 1"), "Admitted 2 devices cap 268435456");
    assert_eq!(
        fresh.tell(&format!("reserve {}", 57 * MIB)),
        "refused",
        "{complaint}"
    );
    assert_eq!(fresh.tell(&format!("reserve {}", 56 * MIB)), "ok");
    let faults = faults(&node);
    assert!(faults.iter().any(|what| what.contains(complaint)), "{faults:?}");
    assert!(
        faults
            .iter()
            .any(|what| what.contains(&format!("pid {}", old.pid()))),
        "{faults:?}"
    );
    node.restart(CAP);
    old.kill();
    until("its charge is back", || node.used("default") == 56 * MIB);
}

#[test]
fn a_lost_record_costs_no_account_anything() {
    without_record(
        |path| std::fs::remove_file(path).unwrap(),
        "the record does not name it",
    );
}

#[test]
fn a_cut_record_costs_no_account_anything() {
    let cut = |path: &Path| {
        let whole = std::fs::read(path).unwrap();
        std::fs::write(path, &whole[..whole.len() / 3]).unwrap();
    };
    without_record(cut, "damaged");
}

#[test]
fn a_corrupted_record_costs_no_account_anything() {
    let corrupt = |path: &Path| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes
            .iter_mut()
            .skip(3)
            .step_by(40)
            .for_each(|byte| *byte ^= 0xff);
        std::fs::write(path, bytes).unwrap();
    };
    without_record(corrupt, "damaged");
}

#[test]
fn a_record_from_the_future_costs_no_account_anything() {
    let future = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        let (head, rest) = text.split_once('\n').unwrap();
        let head = head
            .split_once(' ')
            .unwrap()
            .1
            .replace("stint.state 1", "stint.state 2");
        let head = format!("{:08x} {head}", crc32fast::hash(head.as_bytes()));
        std::fs::write(path, format!("{head}\n{rest}")).unwrap();
    };
    without_record(future, "version 2");
}

#[test]
fn lost_descriptors_close_their_account_until_its_clients_have_ended() {
    let mut node = TestNode::start(CAP);
    let mut old = node.client();
    old.tell("attach 1");
    assert_eq!(old.tell("reserve 268435456"), "ok");
    node.crash();
    crate::keeper::end(node.path()).unwrap();
    keeper(node.path());
    node.start_again(CAP);
    let mut fresh = node.client();
    assert_eq!(fresh.tell("attach 1"), "Predecessor");
    let launch = fresh.tell("launch {}");
    assert!(launch.contains("descriptors are lost"), "{launch}");
    assert!(
        fresh.tell(r#"launch {"tenant":"lab"}"#).starts_with("lab"),
        "other accounts are open"
    );
    assert!(
        faults(&node)
            .iter()
            .any(|what| what.contains("account default admits nobody"))
    );
    assert_eq!(old.tell("release 512"), "ok", "it goes on");
    // It also outlives the next daemon.
    node.restart(CAP);
    let mut another = node.client();
    assert_eq!(another.tell("attach 1"), "Predecessor");
    old.kill();
    assert_eq!(another.tell("attach 1"), "Admitted 2 devices cap 268435456");
    assert_eq!(another.tell("reserve 268435456"), "ok");
}

/// The keeper leaves with the last client; the launch that brought it goes on and brings another.
#[test]
fn an_account_whose_last_client_ended_while_no_daemon_ran_is_open_to_its_launch() {
    let mut node = TestNode::start(CAP);
    let (mut head, mut old) = (node.client(), node.client());
    assert!(head.tell("launch {}").starts_with("default"));
    old.tell("attach 1");
    assert_eq!(old.tell("reserve 268435456"), "ok");
    node.crash();
    crate::keeper::end(node.path()).unwrap();
    old.kill();
    keeper(node.path());
    node.start_again(CAP);
    assert_eq!(head.tell("attach 1"), "Admitted 2 devices cap 268435456");
    assert_eq!(head.tell("reserve 268435456"), "ok");
    assert_eq!(node.used("default"), 268435456);
    // The next daemon finds it as it is.
    node.restart(CAP);
    assert_eq!(node.used("default"), 268435456);
}

#[test]
fn objects_of_another_layout_stay_charged_and_close_their_account() {
    for record_too in [false, true] {
        let mut node = TestNode::start(CAP);
        let mut old = node.client();
        old.tell("attach 1");
        assert_eq!(old.tell("reserve 268435456"), "ok");
        old.tell("age 7");
        node.crash();
        if record_too {
            std::fs::remove_file(node.record()).unwrap();
        }
        node.start_again(CAP);
        let mut fresh = node.client();
        assert_eq!(fresh.tell("attach 1"), "Predecessor", "record lost: {record_too}");
        assert_eq!(old.tell("release 512"), "ok", "it goes on");
        // The daemon that knows the layout comes back: nothing was lost meanwhile.
        node.crash();
        old.tell("age 1");
        node.start_again(CAP);
        assert_eq!(fresh.tell("attach 1"), "Admitted 2 devices cap 268435456");
        assert_eq!(fresh.tell("reserve 1024"), "refused");
        assert_eq!(fresh.tell("reserve 512"), "ok");
    }
}

#[test]
fn slots_whose_words_lie_stay_charged_while_their_process_lives() {
    let mut node = TestNode::start(CAP);
    let mut liar = node.client();
    liar.tell("attach 1");
    assert_eq!(liar.tell(&format!("reserve {}", 200 * MIB)), "ok");
    liar.tell("disown 4194300");
    node.crash();
    std::fs::remove_file(node.record()).unwrap();
    node.start_again(CAP);
    let mut fresh = node.client();
    fresh.tell("attach 1");
    assert_eq!(fresh.tell(&format!("reserve {}", 57 * MIB)), "refused");
    let faults = faults(&node);
    assert!(
        faults
            .iter()
            .any(|what| what.contains(&format!("pid {}", liar.pid()))),
        "{faults:?}"
    );
    liar.kill();
    until("its charge is back", || node.used("default") == 0);
}

#[test]
fn an_emptied_run_directory_is_made_anew() {
    let mut node = TestNode::start(CAP);
    let mut old = node.client();
    old.tell("attach 1");
    assert_eq!(old.tell(&format!("reserve {}", 200 * MIB)), "ok");
    let empty = |node: &TestNode| {
        for entry in std::fs::read_dir(node.path()).unwrap().flatten() {
            let path = entry.path();
            let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
        }
    };
    empty(&node);
    until("it is made anew", || {
        node.path().join("attach/attach.sock").exists() && node.path().join("stint.sock").exists()
    });
    let mut fresh = node.client();
    assert_eq!(fresh.tell("attach 1"), "Admitted 2 devices cap 268435456");
    until("the keeper is there again", || {
        crate::keeper::answers(node.path())
    });
    // While no daemon runs.
    node.crash();
    empty(&node);
    until("the keeper is there again", || {
        crate::keeper::answers(node.path())
    });
    node.start_again(CAP);
    assert_eq!(node.used("default"), 200 * MIB);
    assert_eq!(fresh.tell(&format!("reserve {}", 57 * MIB)), "refused");
}

#[test]
fn a_keeper_that_was_killed_is_replaced() {
    let mut node = TestNode::start(CAP);
    let mut old = node.client();
    old.tell("attach 1");
    assert_eq!(old.tell(&format!("reserve {}", 200 * MIB)), "ok");
    crate::keeper::end(node.path()).unwrap();
    until("its loss is noticed", || !faults(&node).is_empty());
    // Where the daemon may start one itself it has done so by now; here one is found.
    keeper(node.path());
    until("another holds the descriptors", || {
        node.events().iter().any(|event| {
            event
                .detail
                .get("what")
                .is_some_and(|what| what.to_string().contains("a new one holds"))
        })
    });
    node.crash();
    node.start_again(CAP);
    assert_eq!(node.used("default"), 200 * MIB);
    assert_eq!(node.status().tenants[0].clients.len(), 1);
}
