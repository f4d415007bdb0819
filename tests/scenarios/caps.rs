//! The cap: exact, summed over the processes of an account, the same by whatever call and by whatever route.

use super::*;
use crate::harness::{long, node::Setup, outcome::run};

/// All calls that take device memory.
const CALLS: [&str; 9] = [
    "alloc", "pitch", "managed", "async", "pool", "vmm", "array", "graph", "captured",
];

/// Fills what is left by `call` in `step`s; how many bytes it got before the refusal.
#[track_caller]
fn fill(session: &mut Session, call: &str, step: u64) -> u64 {
    let mut got = 0;
    loop {
        match session.error(&format!("{call} {step}")) {
            0 => got += step,
            error => {
                assert_eq!(error, OUT_OF_MEMORY, "{call} is refused with something else");
                return got;
            }
        }
        assert!(got < 1 << 40, "{call} is never refused");
    }
}

#[test]
fn every_call_is_refused_at_the_cap_and_not_before() {
    let (cap, step) = (1024 * MIB, 64 * MIB);
    let node = Node::start(Setup::cap("1GiB"));
    for call in CALLS {
        let mut session = client(&node);
        let before = free(&mut session);
        let got = fill(&mut session, call, step);
        assert!(got <= before, "{call} got {got} bytes of {before}");
        assert!(before - got < step, "{call} got only {got} bytes of {before}");
        assert_eq!(session.close(), 0);
        assert!(
            node.high_water(0) <= cap,
            "{call}: {} bytes were in use",
            node.high_water(0)
        );
    }
    assert!(node.high_water(0) > cap - step - CONTEXT);
}

#[test]
fn without_the_shim_the_same_program_exceeds_the_cap() {
    let node = Node::start(Setup::cap("1GiB"));
    let mut session = bare(&node);
    for _ in 0..32 {
        assert_eq!(session.error(&format!("alloc {}", 64 * MIB)), 0);
    }
    assert!(node.high_water(0) > 2048 * MIB);
}

#[test]
fn an_entry_point_is_capped_by_whatever_route_it_was_found() {
    let node = Node::start(Setup::cap("1GiB"));
    let bare = run(node
        .bare_command(program("routes", Link::Cuda))
        .args(["64", "2048"]))
    .success();
    let capped = run(node
        .capped_command(program("routes", Link::Cuda))
        .args(["64", "2048"]))
    .success();
    let routes = |text: &str| -> Vec<(String, String)> {
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(route, rest)| (route.to_owned(), rest.to_owned()))
            .collect()
    };
    let (bare, capped) = (routes(&bare.stdout), routes(&capped.stdout));
    assert_eq!(bare.len(), 12, "{bare:?}");
    for ((route, without), (same_route, with)) in bare.iter().zip(&capped) {
        assert_eq!(route, same_route);
        if without == "absent" {
            assert_eq!(
                with, "absent",
                "{route}: the shim hands out what the driver lacks"
            );
        } else {
            assert_eq!(without, "0 2048", "{route} without the shim");
            assert_eq!(with, "2 960", "{route} under the shim"); // 1 GiB less the context, in whole 64 MiB
        }
    }
}

#[test]
fn views_of_tenant_daemon_and_device_agree() {
    let node = Node::start(Setup::cap("8GiB").option("--context", "350MiB"));
    let mut session = client(&node);
    let mut random = 12345u64;
    for i in 0..100 {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let odd = MIB + (random >> 33) % (8 * MIB) + 1;
        let call = CALLS[i % CALLS.len()];
        // Only physical handles must be whole granules; the program makes pitched blocks of 1-MiB rows.
        let bytes = if call == "vmm" {
            odd.next_multiple_of(GRANULE)
        } else {
            odd
        };
        assert_eq!(session.error(&format!("{call} {bytes}")), 0, "{call} {bytes}");
    }
    let seen = 8192 * MIB - free(&mut session);
    let physical = node.used(0);
    let entry = node.status()["tenants"][0]["devices"][0]["memory"].clone();
    let daemon = entry["used_bytes"].as_u64().expect("used_bytes");
    assert!(
        seen.abs_diff(daemon) <= GRANULE,
        "the tenant sees {seen}, the daemon {daemon}"
    );
    assert!(
        daemon >= physical && daemon - physical <= 6 * GRANULE,
        "the daemon sees {daemon}, the device has {physical}"
    );
    assert_eq!(
        entry["context_bytes"].as_u64(),
        Some(350 * MIB),
        "the context has its own line: {entry}"
    );
}

#[test]
fn the_sum_over_a_tenants_processes_is_capped() {
    let counts: &[usize] = if long() { &[1, 2, 17, 300] } else { &[1, 2, 17] };
    for &count in counts {
        let cap = 4096 * MIB + count as u64 * CONTEXT;
        let node = Node::start(Setup::cap(&format!("{}MiB", cap / MIB)));
        let mut sessions: Vec<Session> = (0..count).map(|_| client(&node)).collect();
        let mut got = 0;
        for turn in 0.. {
            match sessions[turn % count].error(&format!("alloc {}", 128 * MIB)) {
                0 => got += 128 * MIB,
                error => {
                    assert_eq!(error, OUT_OF_MEMORY);
                    break;
                }
            }
            assert!(got <= cap, "{count} processes got {got} bytes");
        }
        assert_eq!(got, 4096 * MIB, "{count} processes");
        assert!(node.high_water(0) <= cap);
        for session in &mut sessions {
            assert_eq!(
                session.error(&format!("alloc {}", 128 * MIB)),
                OUT_OF_MEMORY,
                "full for one is full for all"
            );
        }
    }
}

#[test]
fn one_of_many_gets_the_last_block() {
    let count = if long() { 64 } else { 24 };
    let node = Node::start(Setup::cap("8GiB"));
    let mut sessions: Vec<Session> = (0..count).map(|_| client(&node)).collect();
    for round in 0..4 {
        let last = free(&mut sessions[0]) / GRANULE * GRANULE;
        for session in &mut sessions {
            session.tell(&format!("alloc {last}"));
        }
        let answers: Vec<String> = sessions.iter_mut().map(Session::answer).collect();
        let winners: Vec<usize> = (0..count).filter(|i| answers[*i].starts_with("0 ")).collect();
        assert_eq!(winners.len(), 1, "round {round}: {answers:?}");
        assert!(node.high_water(0) <= 8192 * MIB);
        let slot = answers[winners[0]].split(' ').nth(1).expect("a slot");
        assert_eq!(sessions[winners[0]].error(&format!("free {slot}")), 0);
    }
}

#[test]
fn each_tenant_sees_its_own_delta_only() {
    let node = Node::start(Setup::quota(""));
    let (mut a, mut b) = (tenant(&node, "a", "8GiB"), tenant(&node, "b", "8GiB"));
    for i in 0..20u64 {
        let (size_a, size_b) = ((1 + i % 7) * 16 * MIB, (1 + i % 5) * 32 * MIB);
        let (before_a, before_b) = (free(&mut a), free(&mut b));
        a.tell(&format!("alloc {size_a}"));
        b.tell(&format!("alloc {size_b}"));
        assert!(a.answer().starts_with("0 ") && b.answer().starts_with("0 "));
        assert_eq!(
            (before_a - free(&mut a), before_b - free(&mut b)),
            (size_a, size_b)
        );
    }
}

#[test]
fn only_the_one_that_grows_is_refused() {
    let node = Node::start(Setup::quota("").option("--timing", "null"));
    let names: Vec<String> = (0..8).map(|i| format!("steady{i}")).collect();
    let mut steady: Vec<Session> = names.iter().map(|name| tenant(&node, name, "2GiB")).collect();
    let mut grower = tenant(&node, "grower", "2GiB");
    for session in &mut steady {
        session.tell(&format!("churn 200 {}", 512 * MIB));
    }
    let got = fill(&mut grower, "alloc", 64 * MIB);
    assert!(got <= 2048 * MIB);
    for session in &mut steady {
        assert_eq!(session.answer(), "0 200");
    }
    let refusals: Vec<_> = node
        .events()
        .into_iter()
        .filter(|event| event["kind"] == "refused")
        .collect();
    assert!(
        !refusals.is_empty() && refusals.iter().all(|event| event["tenant"] == "grower"),
        "{refusals:?}"
    );
    assert_eq!(refusals[0]["detail"]["reason"], "cap");
}

#[test]
fn a_refusal_leaves_the_account_as_it_was() {
    let node = Node::start(Setup::cap("1GiB"));
    let mut session = client(&node);
    let before = free(&mut session);
    for call in CALLS {
        for _ in 0..10 {
            assert_eq!(
                session.error(&format!("{call} {}", 4096 * MIB)),
                OUT_OF_MEMORY,
                "{call}"
            );
        }
        assert_eq!(free(&mut session), before, "{call}");
    }
    assert_eq!(session.error(&format!("alloc {}", before / GRANULE * GRANULE)), 0);
}

#[test]
fn sizes_the_device_cannot_have_are_refused_as_the_driver_does() {
    let node = Node::start(Setup::cap("all"));
    let (mut without, mut with) = (bare(&node), client(&node));
    for size in [0, 1, u64::MAX, u64::MAX - 1, 1 << 63, 1 << 45] {
        assert_eq!(
            with.error(&format!("alloc {size}")),
            without.error(&format!("alloc {size}")),
            "{size} bytes"
        );
    }
}

#[test]
fn freeing_what_was_never_allocated_gives_nothing_back() {
    let node = Node::start(Setup::cap("1GiB"));
    let (mut without, mut with) = (bare(&node), client(&node));
    assert_eq!(with.error(&format!("alloc {}", 256 * MIB)), 0);
    let before = free(&mut with);
    for pointer in [0, 1, 4096, 0x7fff_0000_0000, u64::MAX] {
        assert_eq!(
            with.error(&format!("freeraw {pointer}")),
            without.error(&format!("freeraw {pointer}")),
            "{pointer:#x}"
        );
        assert_eq!(free(&mut with), before, "after freeing {pointer:#x}");
    }
    assert_eq!(with.error("free 0"), 0);
    let after = free(&mut with);
    assert_eq!(after, before + 256 * MIB);
    assert_ne!(with.error("free 0"), 0, "a double free is the driver's error");
    assert_eq!(free(&mut with), after);
}

#[test]
fn observing_refuses_nothing() {
    let node = Node::start(Setup::quota(
        "[node]\nmode = \"observe\"\n[defaults]\nmemory = \"1GiB\"\n",
    ));
    let mut session = client(&node);
    for _ in 0..32 {
        assert_eq!(session.error(&format!("alloc {}", 64 * MIB)), 0);
    }
    assert_eq!(node.status()["mode"], "observe");
}

/// Pools of the stand-in grow by 32 MiB, which no shim can know before it has seen one grow.
#[test]
fn the_first_stream_ordered_allocation_does_not_pass_the_cap_for_a_moment() {
    let node = Node::start(Setup::cap("1GiB"));
    let mut session = client(&node);
    let left = 20 * MIB;
    assert_eq!(
        session.error(&format!("alloc {}", 1024 * MIB - CONTEXT - left)),
        0
    );
    assert_eq!(session.error(&format!("async {MIB}")), OUT_OF_MEMORY);
    assert_eq!(node.high_water(0), 1024 * MIB - left);
    assert_eq!(session.error("free 0"), 0);
    assert_eq!(session.error(&format!("async {MIB}")), 0);
    assert!(node.high_water(0) <= 1024 * MIB);
}
