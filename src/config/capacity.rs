//! The quota file against the devices there are: values none of them can hold, guarantees that cannot all be kept, and
//! devices the file names in vain. `daemon.rs` asks at start and at every reload.

use std::time::SystemTime;

use super::units::{Bytes, Memory};
use super::{At, Config, Overcommit, Problem, Tenant};

/// A device of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capacity {
    pub index: u32,
    pub uuid: String,
    pub total: Bytes,
}

impl Config {
    /// What the file asks of `devices` and none can give at `now`: one mistake per value, told of the first device.
    pub fn beyond(&self, devices: &[Capacity], now: SystemTime) -> Vec<Problem> {
        let mut problems: Vec<Problem> = Vec::new();
        for device in devices {
            let found = self.too_large(device).chain(self.too_much(device, now));
            for problem in found.collect::<Vec<_>>() {
                let known = |other: &Problem| {
                    (&other.file, other.line, other.column) == (&problem.file, problem.line, problem.column)
                };
                if !problems.iter().any(known) {
                    problems.push(problem);
                }
            }
        }
        problems
    }

    /// Values above what `device` has.
    fn too_large(&self, device: &Capacity) -> impl Iterator<Item = Problem> {
        let tenants = self
            .tenants
            .values()
            .filter(|tenant| tenant.may_use(device.index, &device.uuid));
        let all = tenants.map(|tenant| (&tenant.rules, &tenant.memory_at));
        let all = std::iter::once((&self.defaults, &self.defaults_memory_at)).chain(all);
        all.filter_map(|(rules, at)| {
            let amounts = [Some(rules.memory.cap), rules.memory.guaranteed].into_iter().flatten();
            let too_large = amounts.filter_map(|amount| match amount {
                Memory::Bytes(asked) if asked > device.total => Some(asked),
                _ => None,
            });
            let (asked, at) = (too_large.max()?, at.as_ref()?);
            Some(problem(
                at,
                format!(
                    "{} bytes are more than device {} has ({} bytes): write at most that, a percentage, or \"all\"",
                    asked.0, device.index, device.total.0
                ),
            ))
        })
        .collect::<Vec<_>>()
        .into_iter()
    }

    /// Guarantees of tenants that cannot all be kept on `device`, counting one account each.
    fn too_much(&self, device: &Capacity, now: SystemTime) -> Option<Problem> {
        if self.node.overcommit == Overcommit::Allow {
            return None;
        }
        let usable = device
            .total
            .0
            .saturating_sub(self.node.reserve_on(device.total).0);
        let mut guarantees: Vec<(&str, &At, u64)> = Vec::new();
        for (name, tenant) in self
            .in_force(now)
            .filter(|(_, tenant)| tenant.may_use(device.index, &device.uuid))
        {
            let guaranteed = tenant
                .rules
                .memory
                .guaranteed
                .and_then(|memory| memory.on_device(device.total));
            // What a tenant has from [defaults] is promised to whoever comes first, not to it.
            if let (Some(Bytes(bytes)), Some(at)) = (guaranteed, &tenant.memory_at) {
                guarantees.push((name, at, bytes.min(usable)));
            }
        }
        let sum = guarantees
            .iter()
            .fold(0u64, |sum, (_, _, bytes)| sum.saturating_add(*bytes));
        let last = guarantees
            .iter()
            .max_by_key(|(_, at, _)| (&at.file, at.line, at.column))?;
        let names: Vec<&str> = guarantees.iter().map(|(name, ..)| *name).collect();
        (sum > usable).then(|| {
            problem(
                last.1,
                format!(
                    "{sum} bytes of device {} are guaranteed together to {}, of which {usable} can be: guarantee less, for \
                     example memory = {{ guaranteed = …, burst = … }}, or write [node] overcommit = \"allow\"",
                    device.index,
                    names.join(", ")
                ),
            )
        })
    }

    /// Devices the file names and the node does not have, one line each. Not a mistake: a device that has failed must not
    /// keep the node from starting, and one file may serve several nodes.
    pub fn named_in_vain(&self, devices: &[Capacity]) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, tenant) in &self.tenants {
            for gpu in tenant.gpus.iter().flatten() {
                if !devices.iter().any(|device| gpu.is(device.index, &device.uuid)) {
                    lines.push(format!(
                        "{}: `gpus` of [tenants.{name}] names device {gpu}, which is not there",
                        tenant.at
                    ));
                }
            }
        }
        for index in self.devices.keys() {
            if !devices.iter().any(|device| device.index == *index) {
                lines.push(format!("[devices.{index}] describes a device that is not there"));
            }
        }
        lines
    }
}

impl Tenant {
    /// Whether its `gpus` name the device of that index and UUID, or it may use all.
    pub fn may_use(&self, index: u32, uuid: &str) -> bool {
        match &self.gpus {
            Some(gpus) => gpus.iter().any(|gpu| gpu.is(index, uuid)),
            None => true,
        }
    }
}

fn problem(at: &At, message: String) -> Problem {
    Problem {
        line: at.line,
        column: at.column,
        ..Problem::of_file(&at.file, message)
    }
}
