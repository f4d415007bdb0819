//! Any instant: a program killed at any instruction of the shim, and one that allocates, frees and errs at random. The books
//! stay true, and nobody else waits.

use super::*;
use crate::harness::{
    chance::Chance,
    long,
    node::Setup,
    outcome::{Outcome, run},
    skip::skip,
    wait::until,
};

/// Bytes that account `tenant` has in use by the daemon's books.
#[track_caller]
fn charged(node: &Node, tenant: &str) -> u64 {
    let status = node.status();
    let entries = status["tenants"].as_array().into_iter().flatten();
    entries
        .filter(|entry| entry["name"] == tenant)
        .map(|entry| {
            entry["devices"][0]["memory"]["used_bytes"]
                .as_u64()
                .expect("used_bytes")
        })
        .sum()
}

/// How many clients the daemon lists.
#[track_caller]
fn clients(node: &Node) -> usize {
    let status = node.status();
    let entries = status["tenants"].as_array().into_iter().flatten();
    entries
        .map(|entry| entry["clients"].as_array().map_or(0, Vec::len))
        .sum()
}

#[test]
fn a_program_killed_at_any_instruction_of_the_shim_holds_up_nobody() {
    let node = Node::start(Setup::quota("").option("--timing", "null"));
    let (instant, points) = (program("instant", Link::Nothing), program("points", Link::Cuda));
    let victim = |words: &[String]| -> Outcome {
        let mut command = node.tenant_command("victim", "1GiB", &instant);
        run(command.args(words).arg(&points)).success()
    };
    let words = |text: String| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
    // Its first mark is before the attach, whose quarter of a million instructions the long form steps through.
    let whole = victim(&words(format!("list {}", if long() { 1 } else { 2 })));
    if whole.stdout.contains("untraceable") {
        return skip("death at any instruction of the shim", "nobody may trace here");
    }
    assert_eq!(whole.value("end"), "0", "the program itself works");
    let executed: Vec<(u64, u64)> = whole
        .stdout
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(offset, times)| {
            (
                offset.parse().expect("an offset"),
                times.parse().expect("a count"),
            )
        })
        .collect();
    assert!(executed.len() > 1000, "the shim does something");
    let mut sibling = tenant(&node, "victim", "1GiB");
    let mut neighbour = tenant(&node, "neighbour", "1GiB");
    let mut chance = Chance::seeded(1);
    let deaths = if long() { 500 } else { 40 };
    let mut killed = 0;
    for _ in 0..deaths {
        let (offset, times) = executed[chance.below(executed.len() as u64) as usize];
        let place = match chance.below(4) {
            0 => format!("call {}", 1 + chance.below(300)),
            _ => format!("at {offset} {}", 1 + chance.below(times)),
        };
        killed += u64::from(victim(&words(place.clone())).stdout == "killed\n");
        for session in [&mut sibling, &mut neighbour] {
            let answer = session.numbers(&format!("alloc {}", 64 * MIB));
            assert_eq!(answer[0], 0, "after a death {place}");
            assert_eq!(session.error(&format!("free {}", answer[1])), 0);
        }
        until("what the dead one held is back", || {
            (charged(&node, "victim") == CONTEXT).then_some(())
        });
    }
    // What a run does differs a little with what others do, and some points are not reached.
    assert!(
        killed * 10 >= deaths * 9,
        "only {killed} of {deaths} were killed on the way"
    );
    println!(
        "killed {killed} times, at instructions of {} that the shim executed",
        executed.len()
    );
    assert_eq!(free(&mut sibling), 1024 * MIB - CONTEXT);
    let faults: Vec<_> = node
        .events()
        .into_iter()
        .filter(|event| event["kind"] == "fault")
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn books_stay_true_whatever_is_freed_twice_or_never_was_and_whoever_dies() {
    let cap = 512 * MIB;
    let rounds = if long() { 200 } else { 12 };
    let node = Node::start(Setup::quota(""));
    let mut chance = Chance::seeded(2);
    let start = |seed: u64| {
        let mut command = node.tenant_command("random", "512MiB", program("random", Link::Cuda));
        Session::start(command.arg(seed.to_string()))
    };
    let mut all: Vec<Session> = (0..3).map(start).collect();
    for session in &mut all {
        session.ask("go 0");
    }
    for round in 0..rounds {
        let dies = chance.below(all.len() as u64) as usize;
        for (at, session) in all.iter_mut().enumerate() {
            let steps = if at == dies {
                1_000_000
            } else {
                30 + chance.below(200)
            };
            session.tell(&format!("go {steps}"));
        }
        for (at, session) in all.iter_mut().enumerate() {
            if at != dies {
                session.answer();
            }
        }
        all[dies].kill();
        // A GPU has a dead process's memory back before its end is seen; the stand-in's server learns of it as the daemon does.
        until("device and daemon know of the death", || {
            let truth = node.truth();
            let rows = truth["processes"].as_array().expect("rows");
            let living = rows.iter().filter(|row| row["exited"] == false).count();
            (living == all.len() - 1 && clients(&node) == living).then_some(())
        });
        all[dies] = start(100 + round);
        let held: u64 = all.iter_mut().map(|session| session.numbers("go 0")[0]).sum();
        // The dead one's memory goes back in the daemon's books and on the device, in either order.
        until("the books and the device agree", || {
            let (physical, charged) = (node.used(0), charged(&node, "random"));
            assert!(charged <= cap, "round {round}: {charged} bytes charged");
            (charged >= physical && charged - physical <= 16 * GRANULE).then_some(())
        });
        let charged = charged(&node, "random");
        assert!(
            held + 3 * CONTEXT <= charged + 3 * 256 * 4096,
            "round {round}: {held} bytes are held, {charged} charged"
        );
    }
    assert!(
        node.high_water(0) <= cap,
        "the device had {} bytes in use",
        node.high_water(0)
    );
    for session in &mut all {
        assert_eq!(session.ask("empty"), "0");
    }
    assert_eq!(
        (node.used(0), charged(&node, "random")),
        (3 * CONTEXT, 3 * CONTEXT)
    );
}
