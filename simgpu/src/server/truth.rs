//! What every process really had, the living and the dead.
//!
//! Rows of the dead are kept for a while and then summed, so the sum over all rows of a device stays
//! exactly its busy time. Next file of the walk: `report.rs`.

use super::Server;
use super::capacity::Use;
use super::intake::Intake;
use crate::facts::Timing;
use crate::model::{Ns, Truth};
use crate::report::{DeviceReport, ProcessReport, Report, SyncLateness};
use crate::shm::segment::OwnCount;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// Rows of the dead that are kept apart.
const KEPT: usize = 4096;

pub(super) struct Dead {
    rows: VecDeque<ProcessReport>,
    /// Of those no longer kept apart, by device; pid 0.
    sums: Vec<ProcessReport>,
}

impl Dead {
    pub fn new(devices: usize) -> Dead {
        let sum = |device| ProcessReport {
            device: device as u32,
            exited: true,
            ..Default::default()
        };
        Dead {
            rows: VecDeque::new(),
            sums: (0..devices).map(sum).collect(),
        }
    }

    pub fn add(&mut self, row: ProcessReport) {
        if !is_empty(&row) {
            self.rows.push_back(row);
        }
        if self.rows.len() > KEPT
            && let Some(old) = self.rows.pop_front()
        {
            let sum = &mut self.sums[old.device as usize];
            sum.busy_ns += old.busy_ns;
            sum.copy_ns += old.copy_ns;
            sum.switch_ns += old.switch_ns;
            sum.launches += old.launches;
            sum.overlaps += old.overlaps;
            sum.allocations += old.allocations;
            sum.driver_ns += old.driver_ns;
            sum.high_water_bytes = sum.high_water_bytes.max(old.high_water_bytes);
        }
    }

    fn rows(&self) -> impl Iterator<Item = ProcessReport> {
        self.sums
            .iter()
            .filter(|sum| !is_empty(sum))
            .chain(&self.rows)
            .copied()
    }
}

fn is_empty(row: &ProcessReport) -> bool {
    row.high_water_bytes == 0
        && row.launches == 0
        && row.busy_ns == 0
        && row.copy_ns == 0
        && row.switch_ns == 0
        && row.allocations == 0
}

/// What a client has counted of itself on one device; memory and launches in `null` timing only.
#[derive(Default)]
pub(super) struct Counted {
    used: u64,
    high_water: u64,
    launches: u64,
    overlaps: u64,
    allocations: u64,
    driver_ns: u64,
}

impl Counted {
    /// The client's word, within what the device has.
    fn read(count: &OwnCount, capacity: u64) -> Counted {
        let high_water = count.high_water_bytes.load(Ordering::Relaxed).min(capacity);
        Counted {
            used: count.used_bytes.load(Ordering::Relaxed).min(high_water),
            high_water,
            launches: count.launches.load(Ordering::Relaxed),
            ..Counted::default()
        }
    }

    pub fn add_to(&self, row: &mut ProcessReport) {
        row.used_bytes += self.used;
        row.high_water_bytes = row.high_water_bytes.max(self.high_water);
        row.launches = row.launches.saturating_add(self.launches);
        row.overlaps = self.overlaps;
        row.allocations = self.allocations;
        row.driver_ns = self.driver_ns;
    }
}

impl Server {
    pub(super) fn own_counts(&self, intake: &Intake) -> Vec<Counted> {
        let counts = intake.segment.own[..self.model.devices()].iter().enumerate();
        counts
            .map(|(device, count)| {
                let mut counted = match self.facts.timing() {
                    Timing::Null => Counted::read(count, self.capacity.capacity(device)),
                    Timing::Model => Counted::default(),
                };
                counted.overlaps = count.overlaps.load(Ordering::Relaxed);
                if device == 0 {
                    counted.allocations = intake.segment.allocations.load(Ordering::Relaxed);
                    counted.driver_ns = intake.segment.driver_ns.load(Ordering::Relaxed);
                }
                counted
            })
            .collect()
    }

    pub(super) fn row(pid: u32, device: usize, truth: &Truth, memory: Use, now: Ns) -> ProcessReport {
        ProcessReport {
            pid,
            device: device as u32,
            used_bytes: memory.used,
            high_water_bytes: memory.high_water,
            busy_ns: truth.busy_ns,
            copy_ns: truth.copy_ns,
            switch_ns: truth.switch_ns,
            launches: truth.launches,
            busy_permille: truth.window.permille(now),
            sampled_permille: truth.window.sampled(now).0,
            ..ProcessReport::default()
        }
    }

    pub(super) fn report(&mut self) -> Report {
        let now = self.clock.now();
        self.turn(now);
        let mut processes = Vec::new();
        for (i, conn) in self.conns.iter().enumerate() {
            let Some(intake) = conn.as_ref().and_then(|c| c.intake()) else {
                continue;
            };
            let Some(pid) = conn.as_ref().map(|c| c.pid) else {
                continue;
            };
            let counts = self.own_counts(intake);
            for (device, counted) in counts.iter().enumerate() {
                let truth = self.model.truth(i, device, now);
                let mut row = Server::row(pid, device, &truth, self.capacity.client(i, device), now);
                counted.add_to(&mut row);
                if !is_empty(&row) {
                    processes.push(row);
                }
            }
        }
        let devices = (0..self.model.devices())
            .map(|device| {
                let (busy_ns, switch_ns, busy_permille) = self.model.device_truth(device, now);
                let memory = self.capacity.device(device);
                let null = processes.iter().filter(|p| p.device as usize == device);
                let null_used: u64 = null.map(|p| p.used_bytes).sum();
                DeviceReport {
                    capacity_bytes: self.capacity.capacity(device),
                    used_bytes: memory.used.max(null_used),
                    high_water_bytes: memory.high_water.max(null_used),
                    busy_ns,
                    switch_ns,
                    busy_permille,
                    sampled_permille: self.model.device_sampled(device, now).0,
                    lost: self.board.devices[device].lost.load(Ordering::Relaxed) != 0,
                }
            })
            .collect();
        processes.extend(self.dead.rows());
        Report {
            elapsed_ns: now - self.started_at,
            time_scale: self.time_scale,
            late_stamps: self.model.late().0,
            late_max_ns: self.model.late().1,
            sync: SyncLateness {
                count: self.lateness.count(),
                p50_ns: self.lateness.quantile(500),
                p99_ns: self.lateness.quantile(990),
                max_ns: self.lateness.max(),
            },
            sample_age_ns: now - self.model.device_sampled(0, now).1,
            devices,
            processes,
        }
    }
}
