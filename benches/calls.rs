//! Times of what Stint adds to a program: one call, the first call of a process, the start of a program without CUDA.
//! Each is measured without and with the shim on a stand-in of `null` timing; the difference is Stint's.
//!
//! The pair of reserve and release by itself is in `ledger/benches/`.

#[path = "../tests/harness/mod.rs"]
#[allow(dead_code, reason = "benches use a part of the tests' harness")]
mod harness;

use std::{
    process::Command,
    time::{Duration, Instant},
};

use criterion::{Criterion, criterion_group, criterion_main};

use harness::{
    node::{Node, Setup},
    outcome::run,
    programs::{Link, program},
};

/// Both ways to start a program.
fn ways(node: &Node) -> [(&'static str, impl Fn(&str) -> Command); 2] {
    let start = move |capped: bool| {
        move |program: &str| {
            if capped {
                node.capped_command(program)
            } else {
                node.bare_command(program)
            }
        }
    };
    [("bare", start(false)), ("stint", start(true))]
}

/// One call, by the program's own clock.
fn calls(criterion: &mut Criterion) {
    let node = Node::start(Setup::cap("8GiB").option("--timing", "null"));
    let path = program("calls", Link::Cuda).display().to_string();
    for kind in ["launch", "info", "pair", "lookup", "current"] {
        let mut group = criterion.benchmark_group(kind);
        for (label, command) in ways(&node) {
            group.bench_function(label, |bencher| {
                bencher.iter_custom(|count| {
                    let outcome = run(command(&path).args([kind, &count.to_string()])).success();
                    Duration::from_nanos(outcome.number("ns").unsigned_abs())
                });
            });
        }
    }
}

/// Pairs of free and allocation by what becomes of the memory; each label but the first is what Stint makes of it.
fn pools(criterion: &mut Criterion) {
    let path = program("calls", Link::Cuda).display().to_string();
    let mut group = criterion.benchmark_group("pair in a ring");
    for pool in ["none", "off", "preserve", "elide"] {
        let quota =
            format!("[defaults]\nmemory = \"8GiB\"\npool = \"{pool}\"\n").replace("pool = \"none\"\n", "");
        let node = Node::start(Setup::quota(quota).option("--timing", "null"));
        group.bench_function(pool, |bencher| {
            bencher.iter_custom(|count| {
                let mut command = match pool {
                    "none" => node.bare_command(&path),
                    _ => node.capped_command(&path),
                };
                let outcome = run(command.args(["ring", &count.to_string()])).success();
                Duration::from_nanos(outcome.number("ns").unsigned_abs())
            });
        });
    }
}

/// The first calls of a process, and the start of a program that never uses CUDA.
fn starts(criterion: &mut Criterion) {
    let node = Node::start(Setup::cap("8GiB").option("--timing", "null"));
    let path = program("calls", Link::Cuda).display().to_string();
    for (name, kind) in [("find the driver", "find"), ("attach", "attach")] {
        let mut group = criterion.benchmark_group(name);
        for (label, command) in ways(&node) {
            group.sample_size(20).bench_function(label, |bencher| {
                bencher.iter_custom(|count| {
                    let once = |_| {
                        run(command(&path).args([kind, "1"]))
                            .success()
                            .number("ns")
                            .unsigned_abs()
                    };
                    Duration::from_nanos((0..count).map(once).sum())
                });
            });
        }
    }
    let mut group = criterion.benchmark_group("program without CUDA");
    for (label, command) in ways(&node) {
        group.bench_function(label, |bencher| {
            bencher.iter_custom(|count| {
                let start = Instant::now();
                for _ in 0..count {
                    command("/bin/true").status().expect("true can be run");
                }
                start.elapsed()
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_millis(500));
    targets = calls, pools, starts
}
criterion_main!(benches);
