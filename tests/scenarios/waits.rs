//! Nobody waits for another tenant's process: not while many start at once, and not for what a dead one held.

use std::{collections::BTreeMap, fs, time::SystemTime};

use super::*;
use crate::harness::{
    long,
    node::Setup,
    outcome::{Outcome, run},
    skip::skip,
    wait::until,
};

/// System calls in which one process can wait for another, as strace writes them; for a socket's peer it waits in others.
const WAITS: [&str; 14] = [
    "FUTEX_WAIT",
    "FUTEX_LOCK",
    "flock(",
    "F_SETLKW",
    "F_OFD_SETLKW",
    "poll(",
    "select(",
    "pselect6(",
    "epoll_",
    "semop(",
    "semtimedop(",
    "msgrcv(",
    "wait4(",
    "waitid(",
];

#[track_caller]
fn all_at_once(node: &Node, wrapper: &[&str], count: u32) -> Outcome {
    let barrier = program("barrier", Link::Cuda).display().to_string();
    let count = count.to_string();
    let words = [wrapper, &[barrier.as_str(), &count]].concat();
    let outcome = run(node.capped_command(words[0]).args(&words[1..]));
    if wrapper.is_empty() {
        return outcome.success();
    }
    outcome
}

#[test]
fn processes_that_start_at_once_all_start_and_their_times_are_told() {
    let node = Node::start(Setup::cap("64GiB"));
    let count = if long() { 300 } else { 100 };
    let outcome = all_at_once(&node, &[], count);
    assert_eq!(outcome.number("failed"), 0);
    let number = |name| outcome.number(name) as f64;
    let last = number("last_ns") / 1e6;
    let ideal = f64::from(count) * number("alone_cpu_ns") / number("cores") / 1e6;
    println!(
        "{count} at once: the last was ready after {last:.1} ms; their own CPU time is {ideal:.1} ms of all cores"
    );
}

#[test]
fn no_initialisation_waits_for_another_process() {
    let node = Node::start(Setup::cap("64GiB"));
    let trace = node.directory().join("trace.txt").display().to_string();
    let calls = "trace=connect,getppid,futex,flock,fcntl,poll,ppoll,select,pselect6,epoll_wait,epoll_pwait,semop,semtimedop,\
                 msgrcv,wait4,waitid,setsockopt";
    let outcome = all_at_once(
        &node,
        &["strace", "-f", "-qq", "-y", "-e", calls, "-o", &trace],
        12,
    );
    if outcome.code != 0 {
        return skip("a trace of what an initialisation waits for", &outcome.stderr);
    }
    assert_eq!(outcome.number("failed"), 0);
    let text = fs::read_to_string(&trace).expect("the trace can be read");
    let mut calls: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in text.lines() {
        let (pid, call) = line.split_once(' ').expect("a pid and a call");
        calls.entry(pid).or_default().push(call.trim_start());
    }
    let (mut seen, mut waits) = (0, Vec::<&str>::new());
    for calls in calls.values() {
        // Between the marks: what cuInit does.
        let marks: Vec<usize> = (0..calls.len())
            .filter(|i| calls[*i].starts_with("getppid("))
            .collect();
        let [begin, end] = marks[..] else { continue };
        seen += 1;
        let during = &calls[begin..end];
        let limit = during.iter().position(|call| call.contains("SO_RCVTIMEO"));
        let asked = during.iter().position(|call| call.contains("attach.sock"));
        assert!(
            asked.is_some() && limit < asked,
            "the daemon is waited for with a limit: {during:#?}"
        );
        waits.extend(
            during
                .iter()
                .copied()
                .filter(|call| WAITS.iter().any(|wait| call.contains(wait))),
        );
    }
    assert_eq!(seen, 13, "one alone and twelve at once");
    assert!(waits.is_empty(), "{waits:#?}");
}

/// Milliseconds since the epoch of the time in an event, `2026-01-02T03:04:05.678Z`.
fn milliseconds(at: &str) -> f64 {
    let time = humantime::parse_rfc3339(at).expect("a time");
    time.duration_since(SystemTime::UNIX_EPOCH)
        .expect("after 1970")
        .as_secs_f64()
        * 1e3
}

#[test]
fn what_a_dead_process_held_is_back_before_the_next_is_admitted() {
    let node = Node::start(Setup::cap("2GiB"));
    let rounds = if long() { 200 } else { 15 };
    let mut killed = BTreeMap::new();
    for _ in 0..rounds {
        let mut session = client(&node);
        assert_eq!(session.error(&format!("alloc {}", 1536 * MIB)), 0);
        let at = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .expect("after 1970");
        killed.insert(session.pid(), at.as_secs_f64() * 1e3);
        session.kill();
    }
    until("the last one's memory is back", || {
        let events = node.events();
        let back = events.iter().filter(|event| event["kind"] == "reclaimed").count();
        (back == rounds).then_some(())
    });
    let mut holder = None;
    let mut times = Vec::new();
    for event in node.events() {
        match event["kind"].as_str() {
            Some("admitted") => {
                assert_eq!(
                    holder, None,
                    "admitted while a dead one's memory was still charged"
                );
                holder = event["pid"].as_u64();
            }
            Some("reclaimed") => {
                assert_eq!(event["pid"].as_u64(), holder);
                holder = None;
                let pid = u32::try_from(event["pid"].as_u64().expect("a pid")).expect("a pid");
                times.push(milliseconds(event["at"].as_str().expect("a time")) - killed[&pid]);
            }
            _ => {}
        }
    }
    times.sort_by(f64::total_cmp);
    // An event's time is in whole milliseconds, cut off.
    println!(
        "from SIGKILL to reclaimed, {rounds} times: median {:.0} ms, longest {:.0} ms",
        times[times.len() / 2].max(0.0),
        times[times.len() - 1].max(0.0)
    );
}
