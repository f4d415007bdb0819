//! Attacks on the account object, which a tenant's processes and the daemon share.

use super::*;
use crate::harness::long;

#[test]
fn scribbling_over_an_account_harms_nobody_else() {
    let Some(mut node) = node("scribbling over an account") else {
        return;
    };
    let mut neighbour = begin(Session::start(&mut node.user_command(NEIGHBOUR, steps())));
    assert_eq!(neighbour.error(&format!("alloc {}", 256 * MIB)), 0);
    let before = free(&mut neighbour);
    assert_eq!(before, 1024 * MIB - CONTEXT - 256 * MIB);
    let seeds = if long() { 40 } else { 4 };
    for seed in 0..seeds {
        let mut command = node.user_command(TENANT, inside("sneak", Link::Cuda));
        let words = ["scribble", &seed.to_string(), &(64 * MIB).to_string()].map(str::to_owned);
        let mut scribbler = Session::start(command.args(words));
        let answer = scribbler.answer();
        let (error, length) = answer
            .split_once(' ')
            .expect("an error and how long the account is");
        assert!(error == "0" || seed > 0, "its first allocation: {answer}");
        if length == "0" {
            // What the last one left of the account was enough to be refused; nobody else is.
            continue;
        }
        for _ in 0..20 {
            scribbler.ask("");
            assert_eq!(free(&mut neighbour), before, "seed {seed}");
            assert!(
                neighbour.ask(&format!("churn 5 {}", 64 * MIB)).starts_with("0 5"),
                "seed {seed}"
            );
        }
        scribbler.kill();
        assert_eq!(charged(&node, NEIGHBOUR.1), 256 * MIB + CONTEXT, "seed {seed}");
        assert!(node.daemon_lives(), "seed {seed}");
    }
    let fault = until("the fault is reported", || {
        node.events()
            .into_iter()
            .find(|event| event["kind"] == "fault" && event["account"] == "default/tenant")
    });
    println!("scribbling: {}", fault["detail"]);
    assert_eq!(neighbour.error("free 0"), 0);
    assert_eq!(free(&mut neighbour), 1024 * MIB - CONTEXT);
    let mut fresh = begin(Session::start(&mut node.command(steps())));
    assert_eq!(free(&mut fresh), 1024 * MIB - CONTEXT, "another user's account");
}
