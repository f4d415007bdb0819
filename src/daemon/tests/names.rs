//! A host whose list of users takes its time.

use std::sync::{Condvar, Mutex};

use super::*;
use crate::admission::users::{Answer, Question, User, Users};

/// Questions answered from now on; the directory service waits while there is none.
static ALLOWED: Mutex<usize> = Mutex::new(0);
static CHANGED: Condvar = Condvar::new();

fn slow() -> std::io::Result<Users> {
    let ask = |question: &Question| {
        let mut allowed = ALLOWED.lock().unwrap();
        while *allowed == 0 {
            allowed = CHANGED.wait(allowed).unwrap();
        }
        *allowed -= 1;
        Ok(match question {
            Question::User(_) => Answer::User(Some(User {
                name: "tina".into(),
                group: None,
            })),
            Question::Group(_) => Answer::Group(None),
        })
    };
    Users::with("/nonexistent".into(), Box::new(ask))
}

fn allow(questions: usize) {
    *ALLOWED.lock().unwrap() += questions;
    CHANGED.notify_all();
}

#[test]
fn a_slow_directory_service_delays_those_it_is_asked_about_and_nobody_else() {
    let quota =
        "[node]\nreserve=\"off\"\n[defaults]\nmemory=\"256MiB\"\n[tenants.phd]\nmatch=[{group=\"phd\"}]\n";
    let node = TestNode::with(quota, |options| options.users = slow);
    let (mut client, mut launching, mut dying) = (node.client(), node.client(), node.client());
    client.begin("attach 1");
    launching.begin("launch {\"memory\":\"1MiB\"}");
    dying.begin("attach 1");
    // The daemon answers others meanwhile, and has let nobody in on a guess.
    until("the daemon has heard of them", || {
        node.status().tenants.is_empty()
    });
    dying.kill();
    allow(2); // the user, and the group that the quota file names
    assert_eq!(client.answer(), "Admitted 2 devices cap 268435456");
    let me = rustix::process::geteuid().as_raw();
    let part = format!("default default/tina#{} 1048576", launching.pid());
    assert_eq!(launching.answer(), part);
    assert_eq!(
        node.status()
            .tenants
            .iter()
            .filter(|tenant| tenant.account == "default/tina")
            .count(),
        1
    );
    assert!(
        !node
            .status()
            .tenants
            .iter()
            .any(|tenant| tenant.account == format!("default/{me}"))
    );
}
