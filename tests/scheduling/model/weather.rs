//! A run made from a seed: how many devices and tenants, what they do, what goes wrong. Read next: `tests/scheduling/model/client.rs`.

use stint::config::units::Ratio;
use stint::config::{DeviceMode, Policy, Priority};
use stint::scheduler::{DeviceRule, Rule};

use super::draw::Draw;
use super::engine::{Costs, MS, SECOND, Sharing, US};
use super::node::{Fate, Node, Tenant, Trouble};
use super::program::{Arrivals, Program};

/// How large and how rough a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// One device, nothing goes wrong.
    Calm,
    /// Several devices and gangs, nothing goes wrong.
    Gangs,
    /// Everything goes wrong.
    Storm,
    /// Hundreds of tenants on many devices.
    Crowd,
}

pub fn ratio(percent: u64) -> Ratio {
    Ratio::from_millionths(percent as u32 * 10_000).expect("a percentage above 0")
}

/// A node and how long it runs.
pub fn node(weather: Weather, seed: u64) -> (Node, u64) {
    let mut draw = Draw::seeded(seed, weather as u64 + 100);
    let devices = match weather {
        Weather::Calm => 1,
        Weather::Gangs => draw.between(2, 5) as usize,
        Weather::Storm => draw.between(1, 4) as usize,
        Weather::Crowd => draw.between(8, 17) as usize,
    };
    let mode = if weather != Weather::Gangs && draw.one_in(8) {
        DeviceMode::Mps
    } else {
        DeviceMode::Share
    };
    let sharing = match mode {
        DeviceMode::Mps => Sharing::Together { interference: 0.05 },
        _ => Sharing::Slices,
    };
    let policy = if draw.one_in(10) {
        Policy::Fifo
    } else {
        Policy::Fair
    };
    let mut node = Node::new(
        seed,
        &vec![DeviceRule { mode, policy }; devices],
        sharing,
        Costs::default(),
    );
    let end = match weather {
        Weather::Crowd => SECOND / 2,
        _ => SECOND + draw.between(0, SECOND),
    };
    let tenants = match weather {
        Weather::Crowd => draw.between(100, 400),
        _ => draw.between(1, 6) + devices as u64 - 1,
    };
    for number in 0..tenants {
        let on = draw.between(0, devices as u64) as usize;
        let clients = vec![(on, program(&mut draw))];
        let tenant = tenant(&mut draw, number, clients, weather, end);
        node.add(tenant);
    }
    if devices > 1 && weather != Weather::Crowd && (weather == Weather::Gangs || draw.one_in(2)) {
        for number in 0..draw.between(1, 3) {
            let clients = gang(&mut draw, devices, number);
            let mut tenant = tenant(&mut draw, 1000 + number, clients, weather, end);
            tenant.rule.limit = None;
            node.add(tenant);
        }
    }
    if weather == Weather::Storm {
        node.trouble = Trouble {
            lost_one_in: draw.of(&[0, 2, 10, 100]),
            late_one_in: draw.of(&[0, 2, 10, 100]),
            daemon_dead: draw.one_in(2).then(|| {
                let from = draw.between(end / 8, end / 2);
                (from, from + draw.between(MS, end / 3))
            }),
            clock_error_ns: draw.of(&[0, 0, MS]),
        };
    }
    node.truth.strict = weather != Weather::Storm;
    (node, end)
}

fn tenant(
    draw: &mut Draw,
    number: u64,
    clients: Vec<(usize, Program)>,
    weather: Weather,
    end: u64,
) -> Tenant {
    let mut rule = Rule::share(&format!("t{number}"), ratio(draw.of(&[5, 10, 20, 30, 50])));
    let requests = matches!(clients[0].1, Program::Requests { .. });
    rule.priority = match draw.between(0, 6) {
        0 => Priority::Low,
        1 if requests => Priority::High,
        _ => Priority::Normal,
    };
    if rule.priority == Priority::High {
        rule.latency_guard_ns = draw.of(&[None, Some(300 * US), Some(2 * MS)]);
        rule.starve = draw.one_in(4);
    }
    rule.limit = draw.one_in(6).then(|| ratio(draw.of(&[10, 30, 50, 80])));
    let joins_ns = if draw.one_in(3) {
        draw.between(0, end / 2)
    } else {
        0
    };
    let fate = match draw.between(0, 8) {
        0 => Fate::Dies(draw.between(joins_ns, end)),
        1 if weather == Weather::Storm => {
            let from = draw.between(joins_ns, end);
            Fate::Stops(from, from + draw.between(MS, end / 2))
        }
        _ => Fate::None,
    };
    Tenant {
        rule,
        clients,
        joins_ns,
        fate,
    }
}

fn program(draw: &mut Draw) -> Program {
    let length = draw.of(&[
        US,
        10 * US,
        50 * US,
        100 * US,
        200 * US,
        500 * US,
        MS,
        5 * MS,
        20 * MS,
        50 * MS,
    ]);
    match draw.between(0, 6) {
        0 => Program::Requests {
            kernels: draw.between(1, 30),
            length_ns: length.min(MS),
            copy_ns: draw.of(&[0, 20 * US, 60 * US, 300 * US]),
            every_ns: draw.of(&[8 * MS, 20 * MS, 100 * MS]),
            arrivals: draw.of(&[Arrivals::Periodic, Arrivals::Poisson, Arrivals::Bursts(4)]),
        },
        1 => Program::Endless {
            lengths: vec![length],
            sync_every: draw.between(1, 50),
            host_ns: (draw.of(&[0, 10 * US]), draw.of(&[20 * US, 400 * US, 3 * MS])),
        },
        2 => Program::Endless {
            lengths: vec![10 * US, 200 * US, MS, length, 30 * US, 500 * US],
            sync_every: 0,
            host_ns: (0, 0),
        },
        3 if draw.one_in(10) => Program::Endless {
            lengths: vec![draw.of(&[100 * MS, SECOND])],
            sync_every: 0,
            host_ns: (0, 0),
        },
        _ => Program::Endless {
            lengths: vec![length.max(20 * US)],
            sync_every: 0,
            host_ns: (0, 0),
        },
    }
}

/// Ranks on some of the devices, with one communicator for all and perhaps one for each half.
fn gang(draw: &mut Draw, devices: usize, number: u64) -> Vec<(usize, Program)> {
    let ranks = draw.between(2, devices as u64 + 1) as usize;
    let compute_ns = draw.of(&[300 * US, MS, 2 * MS]);
    let collective_ns = draw.of(&[50 * US, 200 * US, 500 * US]);
    let (halves, sync_every) = (ranks >= 4 && draw.one_in(2), draw.of(&[0, 1, 8]));
    let first = number as u32 * 10;
    let rank = |rank: usize| {
        let mut communicators = vec![first];
        if halves {
            communicators.push(first + 1 + (rank * 2 / ranks) as u32);
        }
        (
            rank,
            Program::Ranks {
                compute_ns,
                communicators,
                collective_ns,
                sync_every,
            },
        )
    };
    (0..ranks).map(rank).collect()
}
