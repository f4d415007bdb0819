//! Kernels that span devices: parties that meet, go at the speed of the slowest and end together.
//!
//! Next file of the walk: `server/publish.rs`.

use super::device::{FULL, Form};
use super::{Lane, Model, Ns, Sink};

pub(super) struct Group {
    key: u64,
    parties: u32,
    arrived: u32,
    /// The longest that a party asked for.
    ns: Ns,
    /// Device and stream of each party that is there.
    members: Vec<(usize, Lane)>,
    /// A party has gone: the others stay for ever.
    broken: bool,
}

impl Group {
    fn is_under_way(&self) -> bool {
        self.arrived == self.parties && !self.broken
    }
}

impl Model {
    /// The group that a new party joins: the one of its key that is not complete, else a new one.
    pub(super) fn join(&mut self, device: usize, lane: Lane, key: u64, parties: u32, ns: Ns) -> usize {
        let open = |g: &Group| (g.key, g.parties) == (key, parties) && g.arrived < parties && !g.broken;
        let found = self.groups.iter().position(|g| g.as_ref().is_some_and(open));
        let number = found.unwrap_or_else(|| {
            let free = self.groups.iter().position(Option::is_none);
            free.unwrap_or_else(|| {
                self.groups.push(None);
                self.groups.len() - 1
            })
        });
        let group = self.groups[number].get_or_insert_with(|| Group {
            key,
            parties: parties.max(1),
            arrived: 0,
            ns: 0,
            members: Vec::new(),
            broken: false,
        });
        group.arrived += 1;
        group.ns = group.ns.max(ns);
        group.members.push((device, lane));
        number
    }

    /// Gives the parties on the planned devices, and their partners elsewhere, the rate of the slowest.
    /// Devices whose rates change join the list, integrated up to the present.
    pub(super) fn couple(&mut self, planned: &mut Vec<usize>) {
        let present = planned.iter().map(|&d| self.devices[d].now).max().unwrap_or(0);
        for number in 0..self.groups.len() {
            let Some(group) = self.groups[number].as_ref() else {
                continue;
            };
            if !group.members.iter().any(|(device, _)| planned.contains(device)) {
                continue;
            }
            let speed =
                |&(device, lane): &(usize, Lane)| self.devices[device].run(lane).map_or(0, |r| r.speed);
            let rate = match group.is_under_way() {
                true => group.members.iter().map(speed).min().unwrap_or(0),
                false => 0,
            };
            for (device, lane) in group.members.clone() {
                if self.devices[device].run(lane).is_none_or(|r| r.rate == rate) {
                    continue;
                }
                if !planned.contains(&device) {
                    self.integrate(device, present);
                    planned.push(device);
                }
                if let Some(run) = self.devices[device].run_mut(lane) {
                    run.rate = rate;
                }
            }
        }
    }

    /// The last party has come: all have the same way to go.
    pub(super) fn begin_if_complete(&mut self, number: usize) {
        let Some(group) = self.groups[number].as_ref().filter(|g| g.is_under_way()) else {
            return;
        };
        for &(device, lane) in &group.members {
            if let Some(run) = self.devices[device].run_mut(lane) {
                run.left = group.ns as u128 * FULL as u128;
            }
        }
    }

    /// A party is done at `at`, and so are all others.
    pub(super) fn end_group(&mut self, number: usize, at: Ns, sink: &mut impl Sink) {
        let Some(group) = self.groups[number].take() else {
            return;
        };
        for (device, lane) in group.members {
            self.integrate(device, at);
            let runs = &mut self.devices[device].runs;
            if let Some(i) = runs
                .iter()
                .position(|r| r.lane == lane && r.form == Form::Party(number))
            {
                runs.remove(i);
                self.kernel_done(device, lane, at, sink);
            }
        }
    }

    /// The streams leave their groups, which never come together then. Gives devices to plan anew.
    pub(super) fn leave_groups(&mut self, gone: impl Fn(Lane) -> bool) -> Vec<usize> {
        let mut changed = Vec::new();
        for slot in &mut self.groups {
            let Some(group) = slot else { continue };
            let before = group.members.len();
            group.members.retain(|(_, lane)| !gone(*lane));
            if group.members.len() < before {
                group.broken = true;
                changed.extend(group.members.iter().map(|(device, _)| *device));
            }
            if group.members.is_empty() {
                *slot = None;
            }
        }
        changed
    }
}
