//! Who got how much of a device: equals by their shares, everybody what is guaranteed. Read next: `tests/scheduling/model/peers.rs`.

use stint::config::{DeviceMode, Policy};

use super::client::Doing;
use super::engine::SECOND;
use super::node::Node;
use super::truth::{Invariant, Truth};

/// A pair of accounts that both want the device all the time.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    from: (u64, u64),
    least: f64,
    most: f64,
    since: u64,
    /// Virtual time of what both had in flight when it began.
    begun: f64,
}

impl Truth {
    /// Equals get service by their shares, and every one what it is guaranteed.
    pub(super) fn shares(&mut self, node: &Node, device: usize) {
        let present: Vec<usize> = node.client_of[device]
            .iter()
            .copied()
            .filter(|index| node.clients[*index].doing != Doing::Dead)
            .collect();
        if present != self.present[device] {
            self.before.resize(node.clients.len(), 0);
            for index in &present {
                self.wanted[*index].clear();
                self.before[*index] = node.engines[device].contexts[node.clients[*index].context].busy_ns;
            }
            self.pairs.retain(|(a, _), _| node.clients[*a].device != device);
            self.present[device].clone_from(&present);
        }
        let mut before: Option<usize> = None;
        for index in present {
            let client = &node.clients[index];
            let wants = client.program.is_backlog() && client.stopped.is_none();
            let free = node.tenants[client.account].rule.limit.is_none();
            if !wants || !free {
                continue;
            }
            let fair = node.policy(device) == Policy::Fair;
            if fair && node.mode(device) == DeviceMode::Share && !node.has_starve(device) && !node.has_gang()
            {
                self.guarantee(node, index);
            }
            if node.policy(device) != Policy::Fair
                || node.mode(device) != DeviceMode::Share
                || node.has_gang()
            {
                continue;
            }
            // Beside other priorities, or too long for their guard, it is served by what it misses of its share.
            if node.mixed(index) || node.too_long(index) {
                continue;
            }
            if let Some(other) = before
                && node.tenants[node.clients[other].account].rule.priority
                    == node.tenants[client.account].rule.priority
            {
                self.lag(node, other, index);
            }
            before = Some(index);
        }
    }

    fn lag(&mut self, node: &Node, a: usize, b: usize) {
        let service = |index: usize| {
            let client = &node.clients[index];
            node.engines[client.device].contexts[client.context].busy_ns
        };
        let (now_a, now_b) = (service(a), service(b));
        // Where they stand to each other is settled when both had a turn.
        if now_a == self.before[a] || now_b == self.before[b] {
            return;
        }
        let share = |index: usize| node.share(node.clients[index].account, node.clients[index].device);
        let in_flight = |index: usize| {
            let client = &node.clients[index];
            let queue = &node.engines[client.device].contexts[client.context].queue;
            let left: u64 = queue.iter().map(|work| work.left_ns).sum();
            left.max(node.settings.window_ns) as f64 / share(index)
        };
        let pair = self.pairs.entry((a, b)).or_insert_with(|| Pair {
            from: (now_a, now_b),
            least: 0.0,
            most: 0.0,
            since: node.now,
            begun: in_flight(a) + in_flight(b),
        });
        let ahead = (now_a - pair.from.0) as f64 / share(a) - (now_b - pair.from.1) as f64 / share(b);
        pair.least = pair.least.min(ahead);
        pair.most = pair.most.max(ahead);
        let lease = node.settings.lease_ns;
        let part = |index: usize| {
            (lease as f64 + 1.2 * node.clients[index].program.longest_ns() as f64) / share(index)
        };
        let bound = part(a) + part(b) + pair.begun + 0.004 * (node.now - pair.since) as f64;
        // Predictions are off by up to 5 %, and so are leases.
        let bound = 1.05 * bound;
        let range = pair.most - pair.least;
        if range > bound {
            pair.least = 0.0;
            pair.most = 0.0;
            pair.from = (now_a, now_b);
            let what =
                format!("clients {a} and {b} are {range:.0} ns of virtual time apart, bound {bound:.0}");
            self.broken(Invariant::Lag, node.now, what);
        }
    }

    fn guarantee(&mut self, node: &Node, index: usize) {
        let client = &node.clients[index];
        let engine = &node.engines[client.device];
        let samples = &mut self.wanted[index];
        samples.push_back((engine.contexts[client.context].busy_ns, engine.busy_ns));
        if samples.len() <= 1000 {
            return;
        }
        let Some((service, busy)) = samples.pop_front() else {
            return;
        };
        let got = engine.contexts[client.context].busy_ns - service;
        let share = node.share(client.account, client.device);
        let due = share * (engine.busy_ns - busy) as f64;
        let longest = node.client_of[client.device]
            .iter()
            .map(|other| node.clients[*other].program.longest_ns())
            .max()
            .unwrap_or(0);
        let lease = node.settings.background_lease_ns + node.settings.slack_ns;
        let others = node.client_of[client.device].len() as f64;
        let slack = 0.02 * SECOND as f64 + lease as f64 + 1.2 * longest as f64 * others.min(4.0);
        if (got as f64) < due - slack {
            self.wanted[index].clear();
            let what = format!(
                "account {} got {got} ns of device {} in a second, its share is {due:.0}",
                client.account, client.device
            );
            self.broken(Invariant::Lag, node.now, what);
        }
    }
}
