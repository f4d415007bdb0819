//! A daemon after another: what clients, accounts and launches of the first are to the second.

use rustix::process::Signal;

use super::*;
use crate::events::{Event, Kind};

/// What the node's daemon complained of.
fn faults(node: &TestNode) -> Vec<String> {
    let what = |event: Event| {
        (event.kind == Kind::Fault).then(|| event.detail["what"].as_str().unwrap().to_string())
    };
    node.events().into_iter().filter_map(what).collect()
}

impl TestNode {
    /// The daemon ends as if it were killed.
    fn crash(&mut self) {
        self.daemon.take().unwrap().crash().unwrap();
    }

    fn start_again(&mut self, quota: &str) {
        self.daemon = Some(Daemon::start(options(self.path(), quota)).unwrap());
    }

    fn record(&self) -> PathBuf {
        self.path().join("state")
    }
}

#[test]
fn a_stopped_client_at_its_cap_is_adopted_before_anybody_gets_a_granule() {
    let mut node = TestNode::start(CAP);
    let mut old = node.client();
    old.tell("attach 1");
    assert_eq!(old.tell("reserve 268435456"), "ok");
    old.signal(Signal::STOP);
    node.crash();
    node.start_again(CAP);
    let mut fresh = node.client();
    assert_eq!(fresh.tell("attach 1"), "Admitted 2 devices cap 268435456");
    assert_eq!(fresh.tell("reserve 512"), "refused");
    let status = node.status();
    let tenant = &status.tenants[0];
    assert_eq!(tenant.devices[0].memory.used_bytes, 256 * MIB);
    assert!(
        tenant
            .clients
            .iter()
            .any(|client| client.pid == old.pid() && client.used_bytes == 256 * MIB)
    );
    old.signal(Signal::CONT);
    assert_eq!(old.tell("release 512"), "ok");
    assert_eq!(fresh.tell("reserve 512"), "ok");
    old.kill();
    assert_eq!(
        fresh.tell("attach 1"),
        "Admitted 2 devices cap 268435456",
        "the same client"
    );
    until("the adopted client's charge is back", || {
        node.used("default") == 512
    });
    assert!(faults(&node).is_empty(), "{:?}", faults(&node));
}

#[test]
fn what_ended_while_no_daemon_ran_is_given_back_before_anybody_is_admitted() {
    let mut node = TestNode::start(CAP);
    let (mut dead, mut changed, mut alive) = (node.client(), node.client(), node.client());
    for client in [&mut dead, &mut changed, &mut alive] {
        client.tell("attach 1");
        assert_eq!(client.tell("reserve 67108864"), "ok");
    }
    node.crash();
    dead.kill();
    changed.execute();
    node.start_again(CAP);
    let mut fresh = node.client();
    fresh.tell("attach 1");
    until("the executed one's charge is back as well", || {
        node.used("default") == 64 * MIB
    });
    assert_eq!(fresh.tell(&format!("reserve {}", 192 * MIB)), "ok");
    assert_eq!(fresh.tell("reserve 512"), "refused");
    assert_eq!(alive.tell(&format!("release {}", 64 * MIB)), "ok");
    assert_eq!(node.used("default"), 192 * MIB);
}

#[test]
fn caps_are_those_of_the_new_file() {
    let mut node = TestNode::start(CAP);
    let mut client = node.client();
    client.tell("attach 1");
    assert_eq!(client.tell(&format!("reserve {}", 100 * MIB)), "ok");
    node.restart(&CAP.replace("256MiB", "64MiB"));
    assert_eq!(
        client.tell("reserve 512"),
        "refused",
        "lowered below what it uses"
    );
    assert_eq!(client.tell(&format!("release {}", 50 * MIB)), "ok");
    assert_eq!(client.tell(&format!("reserve {}", 14 * MIB)), "ok");
    assert_eq!(client.tell("reserve 512"), "refused");
    node.restart(&CAP.replace("256MiB", "512MiB"));
    assert_eq!(client.tell(&format!("reserve {}", 448 * MIB)), "ok");
    assert_eq!(client.tell("reserve 512"), "refused");
    node.restart(&CAP.replace("[node]", "[node]\nmode = \"observe\""));
    assert_eq!(client.tell("reserve 512"), "ok");
    node.restart(CAP);
    assert_eq!(client.tell("reserve 512"), "refused");
}

#[test]
fn launches_and_the_accounts_they_made_go_on() {
    let mut node = TestNode::start(CAP);
    let (mut head, mut gone) = (node.client(), node.client());
    assert_eq!(
        head.tell(r#"launch {"tenant":"lab","memory":"64MiB"}"#),
        "lab lab 67108864"
    );
    assert_eq!(
        gone.tell(r#"launch {"tenant":"away","memory":"64MiB"}"#),
        "away away 67108864"
    );
    node.crash();
    gone.kill();
    node.start_again(CAP);
    let names: Vec<String> = node
        .status()
        .tenants
        .into_iter()
        .map(|tenant| tenant.name)
        .collect();
    assert_eq!(names, ["lab"], "an account made for a launch ends with it");
    assert_eq!(head.tell("attach 1"), "Admitted 2 devices cap 67108864");
    node.restart(CAP);
    assert_eq!(head.tell("attach 2"), "Admitted 2 devices cap 67108864");
    head.kill();
    until("the account is gone with its head", || {
        node.status().tenants.is_empty()
    });
    node.restart(CAP);
    assert!(node.status().tenants.is_empty(), "and nothing is kept of it");
}

#[test]
fn a_part_and_its_whole_never_have_more_than_the_whole_had() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let mut node = TestNode::start(CAP);
    open_to_all(&node);
    let (mut head, mut whole) = (node.client(), node.client());
    head.tell("become 65534");
    let part = format!("default default#{} {}", head.pid(), 100 * MIB);
    assert_eq!(head.tell(r#"launch {"memory":"100MiB"}"#), part);
    head.tell("attach 1");
    let caps = |node: &TestNode| -> Vec<u64> {
        node.status()
            .tenants
            .iter()
            .map(|tenant| tenant.devices[0].memory.cap_bytes / MIB)
            .collect()
    };
    node.crash();
    node.start_again(CAP);
    assert_eq!(caps(&node), [156, 100]);
    node.restart(&CAP.replace("256MiB", "80MiB"));
    assert_eq!(caps(&node), [0, 80], "a part is no more than a lowered whole");
    node.restart(CAP);
    assert_eq!(caps(&node), [156, 100]);
    whole.tell("attach 1");
    assert_eq!(whole.tell(&format!("reserve {}", 157 * MIB)), "refused");
    // The record is lost: the names alone tell that one is a part of the other.
    node.crash();
    std::fs::remove_file(node.record()).unwrap();
    node.start_again(CAP);
    assert_eq!(caps(&node), [156, 100]);
}

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

#[test]
fn clients_one_version_older_or_newer_are_answered() {
    let node = TestNode::start(CAP);
    let mut client = node.client();
    use ledger::wire::{OLDEST_PROTOCOL, PROTOCOL};
    for (spoken, answered) in [
        (OLDEST_PROTOCOL, format!("Admitted in {OLDEST_PROTOCOL}")),
        (PROTOCOL, format!("Admitted in {PROTOCOL}")),
        (PROTOCOL + 1, format!("Admitted in {PROTOCOL}")),
        (PROTOCOL + 2, format!("Protocol in {}", PROTOCOL)),
    ] {
        assert_eq!(client.tell(&format!("speak {spoken}")), answered);
    }
}
