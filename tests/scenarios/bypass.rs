//! Ways around a cap that tenants can think of, on a node installed as an administrator does it. Each is capped, refused or
//! reported; `docs/security.md` has the table, and each of its rows names one of these tests.
//!
//! `logins` are ways to come in, `drivers` ways to another driver, `account` attacks on what is shared with the daemon,
//! `surroundings` places where the shim or its program lacks something.

mod account;
mod drivers;
mod logins;
mod surroundings;

use std::{process::Command, time::Instant};

use super::*;
use crate::harness::{
    installed::{Installed, NEIGHBOUR, TENANT, inside},
    wait::until,
};

/// The stand-in's driver, as NVIDIA's would lie in a system directory.
const DRIVER: &str = "/run/art/sim/13/lib/libcuda.so.1";

/// A node on which every user has 1 GiB; `None`, and one line for `what`, where this machine cannot hold one.
fn node(what: &str) -> Option<Installed> {
    Installed::start(what, "[defaults]\nper = \"user\"\nmemory = \"1GiB\"\n")
}

/// A program that is told its steps, inside the node.
fn steps() -> String {
    inside("steps", Link::Cuda)
}

/// `command` runs `steps.c`: it is refused at 1 GiB exactly. Returned while it holds 512 MiB.
#[track_caller]
fn capped(way: &str, command: &mut Command) -> Session {
    let mut session = Session::start(command);
    assert_eq!(session.ask("init"), "0", "{way}: cuInit");
    assert_eq!(session.ask("context 0"), "0", "{way}: the context");
    assert_eq!(
        session.numbers("info"),
        [0, 1024 * MIB - CONTEXT, 1024 * MIB],
        "{way}"
    );
    assert_eq!(session.error(&format!("alloc {}", 512 * MIB)), 0, "{way}");
    assert_eq!(
        session.error(&format!("alloc {}", 512 * MIB)),
        OUT_OF_MEMORY,
        "{way} is beyond the cap"
    );
    session
}

/// `command` holds memory without a cap and says `0` when it does: the daemon reports the process. How long that took is
/// printed; the audit looks once a second.
#[track_caller]
fn reported(node: &Installed, way: &str, command: &mut Command) {
    let mut session = Session::start(command);
    assert_eq!(session.answer(), "0", "{way}: it got its memory");
    reported_session(node, way, &session);
}

#[track_caller]
fn reported_session(node: &Installed, way: &str, session: &Session) {
    let held = Instant::now();
    let event = until("the process is reported", || {
        node.events()
            .into_iter()
            .find(|event| event["kind"] == "unattached" && event["pid"] == session.pid())
    });
    println!("{way}: reported after {:.1} s", held.elapsed().as_secs_f64());
    let user = event["detail"]["user"].as_str().expect("whose it is");
    assert!([TENANT.1, "root"].contains(&user), "{way}: {event}");
    let shown = node.status()["unattached"].clone();
    assert!(
        shown
            .as_array()
            .is_some_and(|list| list.iter().any(|entry| entry["pid"] == session.pid())),
        "{way}: {shown}"
    );
}

/// Most bytes the process ever had, by the stand-in's truth.
#[track_caller]
fn most(node: &Installed, pid: u32) -> u64 {
    let truth = node.truth();
    let rows = truth["processes"].as_array().into_iter().flatten();
    rows.filter(|row| row["pid"] == pid)
        .filter_map(|row| row["high_water_bytes"].as_u64())
        .sum()
}

/// Bytes of the account of `user` in use, by the daemon's books.
#[track_caller]
fn charged(node: &Installed, user: &str) -> u64 {
    let status = node.status();
    let entries = status["tenants"].as_array().into_iter().flatten();
    let account = format!("default/{user}");
    entries
        .filter(|entry| entry["account"] == account.as_str())
        .filter_map(|entry| entry["devices"][0]["memory"]["used_bytes"].as_u64())
        .sum()
}
