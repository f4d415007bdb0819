//! What must hold at every step of a run, judged by what the devices really did; the scheduler is not asked. Bounds are those of
//! `docs/scheduling.md`. Read next: `tests/scheduling/model/service.rs`.

use std::collections::{BTreeMap, VecDeque};

use stint::config::{DeviceMode, Priority};

use super::client::{Client, Doing};
use super::engine::{Kind, MS, SECOND, US};
use super::node::Node;
use super::service::Pair;

/// The five invariants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    Progress,
    Lag,
    InFlight,
    Conservation,
    CutSafety,
}

/// See the module.
#[derive(Default)]
pub struct Truth {
    /// Nothing goes wrong in this run: all bounds hold.
    pub strict: bool,
    pub violations: Vec<(Invariant, String)>,
    pub looks: u64,
    pub(super) pairs: BTreeMap<(usize, usize), Pair>,
    /// Since when somebody waits for an idle device.
    idle_since: Vec<Option<u64>>,
    pub(super) present: Vec<Vec<usize>>,
    /// What each client had used when somebody last joined or left its device.
    pub(super) before: Vec<u64>,
    /// Leaky bucket of each client with a limit, and what it had used at the last look.
    level: Vec<(f64, u64)>,
    /// Per client, service and device time at each look while it wants the device.
    pub(super) wanted: Vec<VecDeque<(u64, u64)>>,
    spinning: Vec<Option<(Kind, u64)>>,
    /// Longest wait at the gate of each client.
    pub longest_wait: Vec<u64>,
    daemon_gone_since: Option<u64>,
}

impl Truth {
    pub(super) fn broken(&mut self, invariant: Invariant, now: u64, what: String) {
        if self
            .violations
            .iter()
            .filter(|(kind, _)| *kind == invariant)
            .count()
            < 20
        {
            self.violations
                .push((invariant, format!("at {} µs: {what}", now / US)));
        }
    }

    /// A thread passed its gate.
    pub fn passed(&mut self, client: &Client, now: u64) {
        let Some(since) = client.waiting_since else {
            return;
        };
        let wait = now - since;
        if self.longest_wait.len() <= client.account {
            self.longest_wait.resize(client.account + 1, 0);
        }
        self.longest_wait[client.account] = self.longest_wait[client.account].max(wait);
    }

    /// A client handed work over.
    pub fn submitted(&mut self, node: &Node, index: usize) {
        let client = &node.clients[index];
        if !self.strict || node.peer.is_some() {
            return;
        }
        let context = &node.engines[client.device].contexts[client.context];
        let kernels = context.queue.iter().filter(|work| work.kind != Kind::Copy);
        let in_flight: u64 = kernels.clone().map(|work| work.left_ns).sum();
        let own = client.last_work.map_or(0, |work| work.length_ns);
        let alone = kernels.count() == 1;
        let window = client_window(node, client, self.looks);
        if !alone && in_flight > window * 5 / 4 + 2 * US {
            let what = format!(
                "client {index} has {in_flight} ns in flight, its window is {window}, the last kernel {own}"
            );
            self.broken(Invariant::InFlight, node.now, what);
        }
        if node.mode(client.device) != DeviceMode::Share || client.high {
            return;
        }
        for other in node.client_of[client.device].iter().copied() {
            let beside = &node.clients[other];
            let queue = &node.engines[beside.device].contexts[beside.context].queue;
            let busy = queue.iter().any(|work| work.kind != Kind::Copy);
            // A gang is known as one when its second rank begins; until then its ranks are single clients.
            let settled = |client: &Client| {
                let joins = node.tenants[client.account].joins_ns;
                node.of_account[client.account].len() == 1
                    || node.now > joins + 200 * MS + 3 * node.longest_ns()
            };
            if other != index && !beside.high && busy && settled(client) && settled(beside) {
                let what = format!(
                    "client {index} of account {} hands over while {other} of account {} is at work",
                    client.account, beside.account
                );
                self.broken(Invariant::InFlight, node.now, what);
            }
        }
    }

    /// Once a millisecond.
    pub fn look(&mut self, node: &Node) {
        self.looks += 1;
        self.wanted.resize_with(node.clients.len(), VecDeque::new);
        self.level.resize(node.clients.len(), (0.0, 0));
        self.spinning.resize(node.clients.len(), None);
        self.idle_since.resize(node.engines.len(), None);
        self.present.resize(node.engines.len(), Vec::new());
        self.daemon_gone_since = (!node.daemon.alive).then_some(node.daemon.heartbeat);
        for client in 0..node.clients.len() {
            self.limit(node, client);
            self.stuck(node, client);
            self.waits(node, client);
        }
        for device in 0..node.engines.len() {
            self.progress(node, device);
            if self.strict {
                self.shares(node, device);
            }
        }
    }

    /// The run is over: time is conserved, and what was charged is what was used.
    pub fn finish(&mut self, node: &mut Node) {
        for (device, engine) in node.engines.iter().enumerate() {
            let sum = engine.busy_ns + engine.switch_ns + engine.idle_ns;
            if sum != node.now {
                self.broken(
                    Invariant::Conservation,
                    node.now,
                    format!("device {device}: {sum} ns accounted for"),
                );
            }
        }
        if !self.strict || node.peer.is_some() {
            return;
        }
        node.daemon.decide(&mut node.clients, node.now);
        for client in &node.clients {
            let Some(id) = node.daemon.ids.get(client.account).copied().flatten() else {
                continue;
            };
            let spun = matches!(client.program, super::program::Program::Ranks { .. });
            let used = node.engines[client.device].contexts[client.context].busy_ns;
            let charged = node.daemon.scheduler.charged_ns(id, client.device);
            let bound =
                used as f64 * 0.01 + (node.settings.window_ns * 2 + 2 * client.program.longest_ns()) as f64;
            if !spun
                && node.mode(client.device) != DeviceMode::Mps
                && (charged as f64 - used as f64).abs() > bound
            {
                let what = format!(
                    "account {} used {used} ns of device {} and was charged {charged}",
                    client.account, client.device
                );
                self.broken(Invariant::Conservation, node.now, what);
            }
        }
    }

    /// Use above a limit never exceeds the bucket, the window and one kernel.
    fn limit(&mut self, node: &Node, index: usize) {
        let client = &node.clients[index];
        let used = node.engines[client.device].contexts[client.context].busy_ns;
        let fresh = used - self.level[index].1;
        self.level[index].1 = used;
        let rule = &node.tenants[client.account].rule;
        // Beside others at the same moment, kernels take longer than they are charged.
        let Some(limit) = rule.limit.filter(|_| node.mode(client.device) != DeviceMode::Mps) else {
            return;
        };
        let level = (self.level[index].0 - MS as f64 * limit.as_f64()).max(0.0) + fresh as f64;
        self.level[index].0 = level;
        // Predictions are off by up to 5 % of what a full bucket lets run.
        let run = 0.05 * node.settings.bucket_ns as f64 / (1.0 - limit.as_f64()).max(0.01);
        let bound =
            (node.settings.bucket_ns + client.program.longest_ns() * 5 / 4) as f64 + 1.5 * MS as f64 + run;
        if level > bound && self.strict {
            self.level[index].0 = 0.0;
            let what = format!(
                "account {} is {level:.0} ns above its limit, bound {bound:.0}",
                client.account
            );
            self.broken(Invariant::InFlight, node.now, what);
        }
    }

    /// A collective whose ranks are not all let begin.
    fn stuck(&mut self, node: &Node, index: usize) {
        let client = &node.clients[index];
        let head = node.engines[client.device].contexts[client.context]
            .queue
            .front()
            .map(|work| work.kind);
        let collective = head.filter(|kind| matches!(kind, Kind::Collective(_)));
        let since = match (self.spinning[index], collective) {
            (Some((kind, since)), Some(now)) if kind == now => since,
            _ => node.now,
        };
        self.spinning[index] = collective.map(|kind| (kind, since));
        let account = &node.of_account[client.account];
        let whole = account
            .iter()
            .all(|rank| node.clients[*rank].doing != Doing::Dead && node.clients[*rank].stopped.is_none());
        let bound = if self.strict {
            80 * MS + 3 * node.longest_ns()
        } else {
            3 * SECOND + 3 * node.longest_ns()
        };
        if collective.is_some() && whole && node.now - since > bound {
            self.spinning[index] = None;
            let what = format!(
                "a collective of account {} spins on device {}",
                client.account, client.device
            );
            self.broken(Invariant::CutSafety, node.now, what);
        }
    }

    /// No wait is longer than its bound.
    fn waits(&mut self, node: &Node, index: usize) {
        let client = &node.clients[index];
        let waits = matches!(client.doing, Doing::Gate) && client.stopped.is_none();
        let Some(since) = client.waiting_since.filter(|_| waits) else {
            return;
        };
        if let Some(gone) = self.daemon_gone_since {
            let wait = node.now - since.max(gone);
            if wait > node.settings.stale_ns + 3 * MS {
                self.broken(
                    Invariant::Progress,
                    node.now,
                    format!("client {index} waits {wait} ns without a daemon"),
                );
            }
            return;
        }
        let rule = &node.tenants[client.account].rule;
        if !self.strict || rule.limit.is_some() || node.peer.is_some() || node.any_starve() {
            return;
        }
        let share = node.share(client.account, client.device);
        let lease = node.settings.background_lease_ns;
        // Beside a gang, whoever works on one of its devices keeps it from the others.
        let beside: Vec<usize> = match node.has_gang() {
            true => (0..node.clients.len()).collect(),
            false => node.client_of[client.device].clone(),
        };
        let turn = |other: &usize| lease + node.clients[*other].program.longest_ns();
        let others: u64 = beside.iter().filter(|other| **other != index).map(turn).sum();
        let own = (lease + client.program.longest_ns() + node.settings.slack_ns) as f64 / share;
        let gangs = if node.has_gang() { 3.0 } else { 1.0 };
        let bound = (2.0 * (others as f64 + own) + 20.0 * MS as f64) * gangs;
        if (node.now - since) as f64 > bound {
            let what = format!(
                "client {index} of account {} waits {} ns, bound {bound:.0}",
                client.account,
                node.now - since
            );
            self.broken(Invariant::Progress, node.now, what);
        }
    }

    /// Somebody who may work waits for a device on which nothing moves.
    fn progress(&mut self, node: &Node, device: usize) {
        let mut waiting = false;
        let mut moving = node.engines[device].at_work();
        for index in &node.client_of[device] {
            let client = &node.clients[*index];
            moving |=
                client.doing == Doing::Launching || client.stopped.is_some() && client.doing != Doing::Dead;
            let limited = node.tenants[client.account].rule.limit.is_some();
            // A gang waits for all its devices.
            let elsewhere = node.too_long(*index) || node.of_account[client.account].len() > 1;
            waiting |= client.doing == Doing::Gate && client.stopped.is_none() && !limited && !elsewhere;
        }
        if !waiting || moving {
            self.idle_since[device] = None;
            return;
        }
        let since = *self.idle_since[device].get_or_insert(node.now);
        let longest = node.longest_ns();
        let bound = match (self.strict, node.has_gang()) {
            (true, false) => 5 * MS,
            (true, true) => 60 * MS + 4 * longest,
            (false, _) => 300 * MS + 4 * longest,
        };
        if node.now - since > bound && node.peer.is_none() {
            self.idle_since[device] = None;
            self.broken(
                Invariant::Progress,
                node.now,
                format!("somebody waits for device {device}, which is idle"),
            );
        }
    }
}

/// The window a client is held to: what the quota file says, not what a word says. One of high priority counts when it has been
/// there for 5 ms.
fn client_window(node: &Node, client: &Client, looks: u64) -> u64 {
    let there = |other: &Client| node.tenants[other.account].joins_ns + 5 * MS < looks * MS;
    let mut others = node.client_of[client.device]
        .iter()
        .map(|other| &node.clients[*other]);
    let beside_high = others.any(|other| other.high && other.doing != Doing::Dead && there(other));
    let high = node.tenants[client.account].rule.priority == Priority::High;
    if beside_high && !high {
        node.settings.narrow_ns.1
    } else {
        node.settings.window_ns
    }
}
