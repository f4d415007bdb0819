//! What a node says about itself to those who judge it. Read next: `tests/scheduling/model/engine.rs`.

use super::client::Doing;
use super::node::Node;

impl Node {
    pub fn mode(&self, device: usize) -> stint::config::DeviceMode {
        self.daemon.device(device).mode
    }

    pub fn policy(&self, device: usize) -> stint::config::Policy {
        self.daemon.device(device).policy
    }

    /// An account at work on more than one device.
    pub fn has_gang(&self) -> bool {
        self.of_account.iter().any(|clients| clients.len() > 1)
    }

    /// Somebody may leave others nothing; a gang waits for all its devices, so it matters on any of them.
    pub fn any_starve(&self) -> bool {
        self.tenants.iter().any(|tenant| tenant.rule.starve)
    }

    pub fn has_starve(&self, device: usize) -> bool {
        let clients = self.client_of[device]
            .iter()
            .map(|client| self.clients[*client].account);
        clients
            .into_iter()
            .any(|account| self.tenants[account].rule.starve)
    }

    /// The longest kernel of all, about.
    pub fn longest_ns(&self) -> u64 {
        self.clients
            .iter()
            .map(|client| client.program.longest_ns())
            .max()
            .unwrap_or(0)
    }

    /// Somebody of another priority is on its device.
    pub fn mixed(&self, client: usize) -> bool {
        let priority = |client: &usize| self.tenants[self.clients[*client].account].rule.priority;
        let mut others = self.client_of[self.clients[client].device].iter();
        others.any(|other| priority(other) != priority(&client))
    }

    /// Its kernels are longer than one of high priority on the device bears, so that it is let in for its share alone.
    pub fn too_long(&self, client: usize) -> bool {
        let longest = self.clients[client].program.longest_ns();
        let others = self.client_of[self.clients[client].device]
            .iter()
            .map(|other| &self.clients[*other]);
        let guards = others.filter(|other| other.high && other.doing != Doing::Dead);
        let guards = guards.filter_map(|other| self.tenants[other.account].rule.latency_guard_ns);
        !self.clients[client].high && guards.into_iter().any(|guard| longest > guard)
    }

    /// The guaranteed part of a device, beside those who are there.
    pub fn share(&self, account: usize, device: usize) -> f64 {
        let asked = |account: usize| {
            let rule = &self.tenants[account].rule;
            rule.share
                .as_f64()
                .min(rule.limit.map_or(1.0, |limit| limit.as_f64()))
        };
        let present = self.client_of[device].iter().map(|client| &self.clients[*client]);
        let sum: f64 = present
            .filter(|client| client.doing != Doing::Dead)
            .map(|client| asked(client.account))
            .sum();
        asked(account) / sum.max(1.0)
    }
}
