//! A broken scheduler is noticed, and by the invariant that it breaks; and what comes of a daemon's death.

use stint::config::Priority;
use stint::scheduler::{DeviceRule, Rule};

use super::model::daemon::Sabotage;
use super::model::engine::{Costs, MS, SECOND, Sharing, US};
use super::model::node::{Fate, Node, Tenant};
use super::model::program::Program;
use super::model::truth::Invariant;
use super::model::weather::ratio;
use super::seeds::play;

/// One device, tenants with these shares in percent and kernel lengths, always at work.
fn device(tenants: &[(u64, u64)]) -> Node {
    let mut node = Node::new(1, &[DeviceRule::default()], Sharing::Slices, Costs::default());
    node.truth.strict = true;
    for (index, (share, length)) in tenants.iter().enumerate() {
        let program = Program::Endless {
            lengths: vec![*length],
            sync_every: 0,
            host_ns: (0, 0),
        };
        node.add(Tenant {
            rule: Rule::share(&format!("t{index}"), ratio(*share)),
            clients: vec![(0, program)],
            joins_ns: 0,
            fate: Fate::None,
        });
    }
    node
}

/// Two devices, a gang on both and a tenant on each.
fn two_devices() -> Node {
    let devices = [DeviceRule::default(); 2];
    let mut node = Node::new(3, &devices, Sharing::Slices, Costs::default());
    node.truth.strict = true;
    let rank = Program::Ranks {
        compute_ns: 300 * US,
        communicators: vec![1],
        collective_ns: 100 * US,
        sync_every: 0,
    };
    let single = Program::Endless {
        lengths: vec![200 * US],
        sync_every: 0,
        host_ns: (0, 0),
    };
    let clients = [
        vec![(0, rank.clone()), (1, rank)],
        vec![(0, single.clone())],
        vec![(1, single)],
    ];
    for (index, clients) in clients.into_iter().enumerate() {
        node.add(Tenant {
            rule: Rule::share(&format!("t{index}"), ratio(50)),
            clients,
            joins_ns: 0,
            fate: Fate::None,
        });
    }
    node
}

fn broken(mut node: Node, sabotage: Option<Sabotage>) -> Vec<Invariant> {
    if let Some(sabotage) = sabotage {
        node.sabotage(sabotage);
    }
    let mut found: Vec<Invariant> = play(node, 2 * SECOND)
        .into_iter()
        .map(|(invariant, _)| invariant)
        .collect();
    found.sort();
    found.dedup();
    found
}

const PAIR: [(u64, u64); 2] = [(30, 200 * US), (70, MS)];

#[test]
fn nothing_is_found_where_nothing_is_broken() {
    assert_eq!(broken(device(&PAIR), None), []);
    assert_eq!(broken(device(&[(30, 5 * MS), (70, 5 * MS)]), None), []);
    assert_eq!(broken(two_devices(), None), []);
}

#[test]
fn a_scheduler_that_decides_no_more_stops_progress() {
    assert!(broken(device(&PAIR), Some(Sabotage::Deaf)).contains(&Invariant::Progress));
}

#[test]
fn a_valve_blind_to_virtual_time_breaks_shares() {
    let four = [(10, 20 * MS), (20, 20 * MS), (30, 20 * MS), (40, 20 * MS)];
    assert!(broken(device(&four), Some(Sabotage::BlindValve)).contains(&Invariant::Lag));
}

#[test]
fn wide_windows_put_too_much_in_flight() {
    assert!(broken(device(&PAIR), Some(Sabotage::WideWindows)).contains(&Invariant::InFlight));
}

#[test]
fn use_that_is_not_charged_is_missed() {
    let found = broken(device(&PAIR), Some(Sabotage::ForgetsUse));
    assert!(found.contains(&Invariant::Conservation), "{found:?}");
}

#[test]
fn ranks_closed_one_by_one_leave_others_in_a_collective() {
    assert!(broken(two_devices(), Some(Sabotage::NoCut)).contains(&Invariant::CutSafety));
}

/// Part of the device that each tenant had from one instant to another, in points.
fn shares(node: &mut Node, from: u64, to: u64) -> Vec<f64> {
    let used = |node: &Node| -> Vec<u64> {
        node.engines[0]
            .contexts
            .iter()
            .map(|context| context.busy_ns)
            .collect()
    };
    node.run(from);
    let before = used(node);
    node.run(to);
    let after = used(node);
    let fresh: Vec<f64> = after
        .iter()
        .zip(&before)
        .map(|(after, before)| (after - before) as f64)
        .collect();
    let sum: f64 = fresh.iter().sum();
    fresh.iter().map(|fresh| 100.0 * fresh / sum).collect()
}

#[test]
fn shares_are_back_within_a_second_of_adoption() {
    let mut node = device(&PAIR);
    node.truth.strict = false;
    node.trouble.daemon_dead = Some((SECOND, 3 * SECOND));
    let without = shares(&mut node, SECOND + 300 * MS, 3 * SECOND);
    let with = shares(&mut node, 4 * SECOND, 6 * SECOND);
    assert!(without[0] > 40.0, "the driver shares alone: {without:?}");
    assert!((with[0] - 30.0).abs() < 1.0, "{with:?}");
    assert!(node.truth.violations.is_empty(), "{:?}", node.truth.violations);
}

#[test]
fn every_account_is_told_the_rule_in_force() {
    let mut node = device(&[(30, 200 * US), (30, 5 * MS), (40, MS)]);
    node.tenants[1].rule.limit = Some(ratio(20));
    node.tenants[2].rule.priority = Priority::Low;
    for step in 1..200 {
        node.run(step * 3 * MS);
        for client in &node.clients {
            let id = node.daemon.ids[client.account].expect("it has joined");
            let why = node.daemon.scheduler.why(id, 0, node.now).expect("it has a seat");
            let name = &node.tenants[client.account].rule.name;
            assert!(
                why.starts_with(name.as_str()) && why.len() > name.len() + 10,
                "{why}"
            );
            let open = client.word.gate == stint::scheduler::Gate::Open;
            assert!(open || !why.contains(" may work"), "its gate is closed: {why}");
        }
    }
}
