//! The rule in force for an account on a device, in one sentence.

use super::device::Device;
use super::gang::Stage;
use super::seat::Seat;
use super::{AccountId, Gate, Scheduler};
use crate::config::{DeviceMode, Priority};

impl Scheduler {
    /// Why the gate of `id` on `device` is as it is at `now`; `None` for an account or a device it does not have.
    pub fn why(&self, id: AccountId, device: usize, now: u64) -> Option<String> {
        let account = self.accounts.get(id.0)?.as_ref()?;
        let (at, place) = self.rank(id, device)?;
        let device = &self.devices[at];
        let seat = device.seat(place)?;
        let name = &seat.name;
        let held_back = held_back(seat, at);
        let gang = seat
            .ganged
            .then_some((account.gang.stage, account.gang.ranks().len()));
        let sentence = match (held_back, gang, seat.word.gate) {
            (Some(reason), _, _) => reason,
            (None, Some(gang), _) => device.why_gang(at, seat, gang),
            (None, None, Gate::Closed) => device.why_closed(at, place, seat, now),
            (None, None, Gate::Open | Gate::RunOn) => device.why_open(at, place, seat, now),
        };
        Some(format!("{name} {sentence}"))
    }
}

/// What holds whoever else is there.
fn held_back(seat: &Seat, at: usize) -> Option<String> {
    if seat.paused {
        return Some(format!("waits: it is paused on device {at}"));
    }
    let bucket = seat.bucket.filter(|bucket| bucket.dry())?;
    Some(format!(
        "waits: its limit on device {at} is used up, {} owed; it goes on in {}",
        shown(bucket.debt_ns()),
        shown(bucket.refill_ns())
    ))
}

impl Device {
    fn why_closed(&self, at: usize, place: usize, seat: &Seat, now: u64) -> String {
        match self.rule.mode {
            DeviceMode::Exclusive => {
                return match self.name(|_, seat| seat.word.gate == Gate::Open) {
                    Some(other) => {
                        format!("waits: device {at} is exclusive and {other} has it until it leaves")
                    }
                    None => format!("is let in at its next call: device {at} is exclusive and nobody has it"),
                };
            }
            DeviceMode::Mps => {
                return format!(
                    "waits: it is ahead of its share on device {at}, or one of higher priority is at work"
                );
            }
            DeviceMode::Share | DeviceMode::Mig => {}
        }
        if seat.stands_open() {
            let other = self.name(|other, _| Some(other) == self.rest.first_place().or(self.high.holder()));
            let other = other.unwrap_or_else(|| "another account".to_owned());
            return format!("waits: {other} has device {at} for the share it is guaranteed");
        }
        if self.claim.is_some() {
            return format!(
                "waits: device {at} is being emptied for an account that uses several devices at once"
            );
        }
        if seat.too_long(self.guard_ns()) && seat.rank != 0 {
            return format!(
                "waits: its kernels take {}, longer than the latency guard of one of high priority on device {at}, until its \
                 guaranteed share is due",
                shown(seat.seen.longest_ns)
            );
        }
        match self.rest.lease.as_ref() {
            Some(lease) if lease.place == place => {
                format!("waits: its lease of device {at} has ended and its work in flight runs out")
            }
            Some(lease) => {
                let holder = self.seat(lease.place);
                let name = holder.map_or("another account", |holder| &holder.name);
                let used = holder.map_or(0, |holder| lease.used_ns(holder));
                let left = lease.total_ns.saturating_sub(used);
                let rule = match holder {
                    Some(holder) if holder.rank < seat.rank => "which goes first",
                    _ => "whose turn it is",
                };
                let end = match lease.closing_ns {
                    Some(since) => format!(
                        "ended {} ago, its work runs out",
                        shown(now.saturating_sub(since))
                    ),
                    None if lease.total_ns == super::FOREVER => "ends when this one asks".to_owned(),
                    None => format!("ends after {} more", shown(left)),
                };
                format!("waits: {name}, {rule}, has the lease of device {at}; it {end}")
            }
            None if self.high_wants() > 0 && seat.seen.waiting_since_ns.is_some() => {
                format!("waits: one of high priority has work on device {at}")
            }
            None => format!("is let in at its next call: nobody has the lease of device {at}"),
        }
    }

    fn why_open(&self, at: usize, place: usize, seat: &Seat, now: u64) -> String {
        if seat.word.yields && self.high_wants() > 0 {
            let other = self.name(|_, other| other.priority == Priority::High && other.wants);
            return format!(
                "waits: it yields to {}, of high priority, which has work on device {at}",
                other.unwrap_or_else(|| "one".to_owned())
            );
        }
        match self.rule.mode {
            DeviceMode::Exclusive => return format!("may work: device {at} is exclusive and it has it"),
            DeviceMode::Mps => {
                return format!("may work beside the others on device {at}: it is not ahead of its share");
            }
            DeviceMode::Share | DeviceMode::Mig => {}
        }
        if seat.stands_open() && self.high.holder() != Some(place) {
            return format!("may work on device {at} at any time: it is of high priority");
        }
        let lane = if seat.stands_open() {
            &self.high
        } else {
            &self.rest
        };
        let _ = now;
        match lane.lease.as_ref() {
            Some(lease) if lease.total_ns == super::FOREVER => {
                format!("may work: it has the lease of device {at} and nobody else asks for it")
            }
            Some(lease) => {
                let left = lease.total_ns.saturating_sub(lease.used_ns(seat));
                let rule = if seat.rank == 0 {
                    " before others, below its guaranteed share"
                } else {
                    ""
                };
                format!(
                    "may work: it has the lease of device {at}{rule} for {} more",
                    shown(left)
                )
            }
            None => format!("may work on device {at}"),
        }
    }

    fn why_gang(&self, at: usize, seat: &Seat, (stage, ranks): (Stage, usize)) -> String {
        let missing = shown(seat.missing_ns as u64);
        match stage {
            Stage::Closed if seat.wants => format!(
                "waits for its turn on all {ranks} devices it uses at once; on device {at} it misses {missing} of its share"
            ),
            Stage::Closed => format!("is let in at its next call, on all {ranks} devices it uses at once"),
            Stage::Claiming => format!("waits: the {ranks} devices it uses at once are being emptied for it"),
            Stage::Open => format!("may work on all {ranks} devices it uses at once, among them device {at}"),
            Stage::Closing { .. } if seat.word.gate == Gate::RunOn => {
                format!("runs on to the collective that its other ranks have begun, then leaves device {at}")
            }
            Stage::Closing { .. } => {
                format!("waits: its turn has ended and its {ranks} devices' work runs out")
            }
            Stage::Beside { .. } => format!(
                "may work beside others on device {at}: its ranks wait for one another and could not be stopped together"
            ),
        }
    }

    fn name(&self, which: impl Fn(usize, &Seat) -> bool) -> Option<String> {
        let mut seats = self.seats();
        let found = seats.find(|(place, seat)| which(*place, seat));
        found.map(|(_, seat)| seat.name.clone())
    }
}

/// A duration as people read it: three figures and a unit.
fn shown(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.0} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}
