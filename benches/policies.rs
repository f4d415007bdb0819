//! Ways to share a device, compared in virtual time: shares and what sharing costs, latency beside saturating work, fairness.
//! Writes the last part of `docs/performance.md`, whose tables are the same in every run; prints what one decision costs here.

#[allow(dead_code, reason = "of the tests' harness only what draws numbers")]
#[path = "../tests/harness"]
mod harness {
    pub mod chance;
}
#[path = "../tests/scheduling/model/mod.rs"]
mod scheduling;

use std::fmt::Write as _;
use std::time::Instant;

use scheduling::engine::{Costs, MS, SECOND, Sharing, US};
use scheduling::node::{Fate, Node, Tenant};
use scheduling::peers::{Count, Feedback, Native, Peer, Turns};
use scheduling::program::{Arrivals, Program};
use scheduling::weather::ratio;
use stint::config::{DeviceMode, Priority};
use stint::scheduler::{DeviceRule, Reading, Rule, Scheduler, Settings};

/// A row of the tables.
#[derive(Clone, Copy, PartialEq)]
enum Policy {
    Ours,
    Native,
    Mps,
    Count(u64, u64),
    Feedback,
    Turns,
}

const POLICIES: [(&str, Policy); 8] = [
    ("**Stint**", Policy::Ours),
    ("driver's slices, 1.024 ms", Policy::Native),
    ("MPS", Policy::Mps),
    ("count window 16/8", Policy::Count(16, 8)),
    ("count window 4/2", Policy::Count(4, 2)),
    ("count window 2/1", Policy::Count(2, 1)),
    ("NVML feedback, 120 ms", Policy::Feedback),
    ("turns of 30 s", Policy::Turns),
];

fn node(policy: Policy, tenants: Vec<(Rule, Program)>, seed: u64) -> Node {
    let sharing = match policy {
        Policy::Mps => Sharing::Together { interference: 0.05 },
        _ => Sharing::Slices,
    };
    let mut node = Node::new(seed, &[DeviceRule::default()], sharing, Costs::default());
    let shares: Vec<f64> = tenants.iter().map(|(rule, _)| rule.share.as_f64()).collect();
    node.peer = match policy {
        Policy::Ours => None,
        Policy::Native | Policy::Mps => Some(Box::new(Native) as Box<dyn Peer>),
        Policy::Count(most, batch) => Some(Box::new(Count::new(most, batch))),
        Policy::Feedback => Some(Box::new(Feedback::new(shares))),
        Policy::Turns => Some(Box::new(Turns::new(30 * SECOND, 5 * SECOND))),
    };
    for (rule, program) in tenants {
        node.add(Tenant {
            rule,
            clients: vec![(0, program)],
            joins_ns: 0,
            fate: Fate::None,
        });
    }
    node
}

fn backlog(lengths: &[u64]) -> Program {
    Program::Endless {
        lengths: lengths.to_vec(),
        sync_every: 0,
        host_ns: (0, 0),
    }
}

fn used(node: &Node) -> Vec<f64> {
    node.engines[0]
        .contexts
        .iter()
        .map(|context| context.busy_ns as f64)
        .collect()
}

/// Mean and 99th percentile, in points, of the worst error of a share over windows of so many 10-ms steps.
fn errors(steps: &[Vec<f64>], shares: &[f64], window: usize) -> (f64, f64) {
    let mut found: Vec<f64> = steps
        .windows(window + 1)
        .step_by(window)
        .filter_map(|steps| {
            let fresh: Vec<f64> = steps[window]
                .iter()
                .zip(&steps[0])
                .map(|(to, from)| to - from)
                .collect();
            let sum: f64 = fresh.iter().sum();
            let error = |(fresh, share): (&f64, &f64)| 100.0 * (fresh / sum - share).abs();
            (sum > 0.0).then(|| fresh.iter().zip(shares).map(error).fold(0.0, f64::max))
        })
        .collect();
    found.sort_by(f64::total_cmp);
    let mean = found.iter().sum::<f64>() / found.len().max(1) as f64;
    (
        mean,
        found
            .get(found.len().saturating_sub(1) * 99 / 100)
            .copied()
            .unwrap_or(f64::NAN),
    )
}

/// A share in percent, and the lengths of kernels that never end.
type Backlogged = (u64, &'static [u64]);

/// Shares of tenants that always have work.
fn fairness(out: &mut String) {
    let cases: [(&str, &[Backlogged]); 5] = [
        ("50/50, 200 µs", &[(50, &[200 * US]), (50, &[200 * US])]),
        ("30/70, 200 µs and 1 ms", &[(30, &[200 * US]), (70, &[MS])]),
        (
            "30/70, graph of 1.3 ms and 200 µs",
            &[(30, &[1300 * US]), (70, &[200 * US])],
        ),
        (
            "10/20/30/40, 200 µs and 1 ms",
            &[(10, &[200 * US]), (20, &[MS]), (30, &[200 * US]), (40, &[MS])],
        ),
        ("30/70, 50 ms", &[(30, &[50 * MS]), (70, &[50 * MS])]),
    ];
    for (case, tenants) in cases {
        let _infallible = writeln!(
            out,
            "\n#### {case}\n\n| policy | shares, % | error over 100 ms, mean / p99 | over 1 s | Jain by share | not used, % |\n| --- | --- | --- | --- | --- | --- |"
        );
        for (name, policy) in POLICIES {
            let rules = tenants.iter().enumerate().map(|(index, (share, lengths))| {
                (Rule::share(&format!("t{index}"), ratio(*share)), backlog(lengths))
            });
            let mut node = node(policy, rules.collect(), 7);
            let shares: Vec<f64> = tenants.iter().map(|(share, _)| *share as f64 / 100.0).collect();
            node.run(SECOND);
            let mut steps = vec![used(&node)];
            let seconds = 20;
            for step in 1..=100 * seconds {
                node.run(SECOND + step * 10 * MS);
                steps.push(used(&node));
            }
            let got: Vec<f64> = steps[steps.len() - 1]
                .iter()
                .zip(&steps[0])
                .map(|(to, from)| to - from)
                .collect();
            let sum: f64 = got.iter().sum();
            let by_share: Vec<f64> = got.iter().zip(&shares).map(|(got, share)| got / share).collect();
            let squares: f64 = by_share.iter().map(|part| part * part).sum();
            let jain = by_share.iter().sum::<f64>().powi(2) / by_share.len() as f64 / squares;
            let (short, long) = (errors(&steps, &shares, 10), errors(&steps, &shares, 100));
            let shown: Vec<String> = got
                .iter()
                .map(|got| format!("{:.1}", 100.0 * got / sum))
                .collect();
            let idle = 100.0 * (1.0 - sum / (seconds * SECOND) as f64);
            let _infallible = writeln!(
                out,
                "| {name} | {} | {:.2} / {:.2} | {:.2} / {:.2} | {jain:.4} | {idle:.1} |",
                shown.join(" / "),
                short.0,
                short.1,
                long.0,
                long.1
            );
        }
    }
}

fn p99(latencies: &mut [u64]) -> f64 {
    latencies.sort_unstable();
    latencies
        .get(latencies.len().saturating_sub(1) * 99 / 100)
        .map_or(f64::NAN, |latency| *latency as f64)
}

/// Requests of high priority beside work that never ends.
fn priority(out: &mut String) {
    let requests = |kernels, length_ns, copy_ns, every_ns, arrivals| Program::Requests {
        kernels,
        length_ns,
        copy_ns,
        every_ns,
        arrivals,
    };
    let cases = [
        (
            "bursts of 2 ms every 20 ms",
            requests(20, 100 * US, 60 * US, 20 * MS, Arrivals::Periodic),
        ),
        (
            "the same, arriving by chance",
            requests(20, 100 * US, 60 * US, 20 * MS, Arrivals::Poisson),
        ),
        (
            "decoding, 5 ms every 8 ms",
            requests(1, 5 * MS, 20 * US, 8 * MS, Arrivals::Periodic),
        ),
    ];
    let seconds = 20 * SECOND;
    for (case, program) in cases {
        let _infallible = writeln!(
            out,
            "\n#### {case}\n\n| policy | beside 100 µs: p99, harvest | beside 500 µs | four beside, 100 µs |\n| --- | --- | --- | --- |"
        );
        let rule = |name: &str, priority| {
            let mut rule = Rule::share(name, ratio(if priority == Priority::High { 80 } else { 5 }));
            rule.priority = priority;
            rule
        };
        for (name, policy) in POLICIES {
            if policy == Policy::Turns {
                continue;
            }
            let mut alone = node(policy, vec![(rule("api", Priority::High), program.clone())], 11);
            alone.run(seconds);
            let base = p99(&mut alone.clients[0].latencies);
            let free = seconds as f64 - used(&alone)[0];
            let beside = |lengths: &[u64]| {
                let mut tenants = vec![(rule("api", Priority::High), program.clone())];
                tenants.extend(
                    lengths
                        .iter()
                        .map(|length| (rule("batch", Priority::Normal), backlog(&[*length]))),
                );
                let mut node = node(policy, tenants, 11);
                node.run(seconds);
                let harvest = used(&node)[1..].iter().sum::<f64>() / free;
                format!("{:.3}, {harvest:.3}", p99(&mut node.clients[0].latencies) / base)
            };
            let _infallible = writeln!(
                out,
                "| {name} | {} | {} | {} |",
                beside(&[100 * US]),
                beside(&[500 * US]),
                beside(&[100 * US; 4])
            );
        }
    }
}

/// What one decision costs here: readings of all accounts, then the decision.
fn tick(each_on: usize, together: bool) -> (f64, usize) {
    let mut scheduler = Scheduler::new(
        Settings::default(),
        &[DeviceRule {
            mode: DeviceMode::Share,
            ..DeviceRule::default()
        }; 16],
    );
    let mut seats = Vec::new();
    for account in 0..256 {
        let devices: Vec<usize> = (0..each_on).map(|step| (account + step) % 16).collect();
        let mut rule = Rule::share(&format!("t{account}"), ratio(5));
        rule.together = together;
        let id = scheduler.admit(rule, &devices, 0);
        seats.extend(devices.into_iter().map(|device| (id, device)));
    }
    let mut reading = Reading {
        longest_ns: 200 * US,
        ..Reading::default()
    };
    let (rounds, mut spent) = (400, std::time::Duration::ZERO);
    for round in 1..=rounds {
        let now = round * MS;
        reading.waiting_since_ns = Some(now);
        reading.alive_at_ns = now;
        reading.submitted_ns += 100 * US;
        reading.finished_ns += 100 * US;
        reading.used_ns += 100 * US;
        let start = Instant::now();
        for (id, device) in &seats {
            scheduler.read(*id, *device, reading);
        }
        std::hint::black_box(scheduler.decide(now));
        spent += start.elapsed();
    }
    (spent.as_secs_f64() * 1e6 / rounds as f64, seats.len())
}

fn main() -> std::io::Result<()> {
    let filters: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    if !filters.is_empty() && !filters.iter().any(|filter| "policies".contains(filter.as_str())) {
        return Ok(());
    }
    for (each_on, together) in [(1, false), (16, false), (16, true)] {
        let (cost, seats) = tick(each_on, together);
        let gangs = if together { ", each gated as one" } else { "" };
        println!(
            "policies: 16 devices, 256 accounts on {each_on} each ({seats} seats{gangs}), all at work: {cost:.0} µs a tick"
        );
    }
    let mut out = String::from(HEAD);
    out.push_str("\n### Tenants that always have work\n");
    fairness(&mut out);
    out.push_str("\n### One of high priority beside work that never ends\n");
    out.push_str(PRIORITY);
    priority(&mut out);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/performance.md");
    let text = std::fs::read_to_string(page)?;
    let heading = HEAD.lines().next().unwrap_or_default();
    let before = text.find(heading).map_or(text.as_str(), |at| &text[..at]);
    std::fs::write(page, format!("{}\n\n{out}", before.trim_end()))?;
    println!("{out}");
    Ok(())
}

const HEAD: &str = "## Ways to share a device, compared

Written by `cargo xtask bench policies` (`benches/policies.rs`) as the last part of this page; the same in every run. **Simulated**, in the model of a device of
`tests/scheduling`: nothing here was measured on a GPU, and the other policies are what is known of them, re-made as policies of
that model, not the programs themselves. A switch between contexts costs 100 µs in mid-kernel and 50 µs between drained ones, a slice of
the driver is 1.024 ms; under MPS each kernel is slowed by 5 % for every other one. Count windows stop lower priorities while
a higher one has work and know no shares. There are tables and no plots: a plotting crate would be the only user of its dependencies.
";

const PRIORITY: &str = "
p99 of a request's latency as a multiple of what it is alone, and the part of the time left over that the others used.
Where the multiple is in the hundreds, requests come faster than half the device can serve them, and the queue grows.
";
