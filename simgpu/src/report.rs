//! The node's truth at one moment, and its form between server and client: little-endian words in a
//! memfd, since with many processes it is longer than a message may be.

/// Truth about the node at one moment, by the server. For NVML and `status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Device time since the node started.
    pub elapsed_ns: u64,
    pub time_scale: u32,
    /// Operations that came to the server when their device was already past their stamp.
    pub late_stamps: u64,
    /// Device time by which the worst of them was moved.
    pub late_max_ns: u64,
    pub sync: SyncLateness,
    /// Device time since the samples (`sampled_permille`) were taken.
    pub sample_age_ns: u64,
    pub devices: Vec<DeviceReport>,
    /// One row per (process, device) that ever held memory or ran work; the dead come last. When very
    /// many have died, the oldest dead are summed into rows with pid 0.
    pub processes: Vec<ProcessReport>,
}

/// How long after the model's time of what they waited for waiters were told, in device time: the host's
/// noise. Quantiles are up to a quarter too large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncLateness {
    pub count: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

impl std::fmt::Display for SyncLateness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let us = |ns: u64| ns as f64 / 1000.0;
        let (p50, p99, max) = (us(self.p50_ns), us(self.p99_ns), us(self.max_ns));
        write!(
            f,
            "{} waits told late by p50 {p50:.1} p99 {p99:.1} max {max:.1} us",
            self.count
        )
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceReport {
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    pub high_water_bytes: u64,
    /// Time during which any kernel ran.
    pub busy_ns: u64,
    /// Time spent switching between contexts.
    pub switch_ns: u64,
    /// Busy share of the last second of device time, in 1/1000.
    pub busy_permille: u32,
    /// Busy share of the last whole sixth of a second: what a driver that samples shows, in 1/1000.
    pub sampled_permille: u32,
    /// Taken away by a configured fault.
    pub lost: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessReport {
    pub pid: u32,
    pub device: u32,
    pub used_bytes: u64,
    pub high_water_bytes: u64,
    /// Time during which kernels of the process ran. While contexts take turns, the sum over the rows of
    /// a device is the device's `busy_ns`, exactly.
    pub busy_ns: u64,
    pub copy_ns: u64,
    /// Time spent on switching to contexts of the process; the sum over the rows of a device is the
    /// device's `switch_ns`, exactly.
    pub switch_ns: u64,
    /// Kernels submitted.
    pub launches: u64,
    /// Pieces of work that began on memory while work of another stream was pending on it; counted where the node was
    /// started to (`cuda/uses.rs`).
    pub overlaps: u64,
    /// Allocations of the process, and what all its calls but launches cost the driver, on whatever device: in the row of
    /// its device 0.
    pub allocations: u64,
    pub driver_ns: u64,
    /// As in [`DeviceReport`], for this process.
    pub busy_permille: u32,
    pub sampled_permille: u32,
    /// The process is dead.
    pub exited: bool,
}

const HEAD: usize = 11;
const DEVICE: usize = 8;
const PROCESS: usize = 14;

impl Report {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut words = vec![
            self.elapsed_ns,
            self.time_scale as u64,
            self.late_stamps,
            self.late_max_ns,
            self.sync.count,
            self.sync.p50_ns,
            self.sync.p99_ns,
            self.sync.max_ns,
            self.sample_age_ns,
            self.devices.len() as u64,
            self.processes.len() as u64,
        ];
        for d in &self.devices {
            words.extend([
                d.capacity_bytes,
                d.used_bytes,
                d.high_water_bytes,
                d.busy_ns,
                d.switch_ns,
            ]);
            words.extend([d.busy_permille as u64, d.sampled_permille as u64, d.lost as u64]);
        }
        for p in &self.processes {
            words.extend([
                p.pid as u64,
                p.device as u64,
                p.used_bytes,
                p.high_water_bytes,
                p.busy_ns,
            ]);
            words.extend([p.copy_ns, p.switch_ns, p.launches]);
            words.extend([p.busy_permille as u64, p.sampled_permille as u64, p.exited as u64]);
            words.extend([p.overlaps, p.allocations, p.driver_ns]);
        }
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    /// `None` if the bytes are no report.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Report> {
        let (words, []) = bytes.as_chunks::<8>() else {
            return None;
        };
        let words: Vec<u64> = words.iter().map(|w| u64::from_le_bytes(*w)).collect();
        let (head, rest) = words.split_first_chunk::<HEAD>()?;
        let &[elapsed_ns, time_scale, late_stamps, late_max_ns, ..] = head;
        let &[.., devices, processes] = head;
        let split = (devices as usize).checked_mul(DEVICE)?;
        let (device_words, process_words) = rest.split_at_checked(split)?;
        if process_words.len() != (processes as usize).checked_mul(PROCESS)? {
            return None;
        }
        let device = |w: &[u64; DEVICE]| DeviceReport {
            capacity_bytes: w[0],
            used_bytes: w[1],
            high_water_bytes: w[2],
            busy_ns: w[3],
            switch_ns: w[4],
            busy_permille: w[5] as u32,
            sampled_permille: w[6] as u32,
            lost: w[7] != 0,
        };
        let process = |w: &[u64; PROCESS]| ProcessReport {
            pid: w[0] as u32,
            device: w[1] as u32,
            used_bytes: w[2],
            high_water_bytes: w[3],
            busy_ns: w[4],
            copy_ns: w[5],
            switch_ns: w[6],
            launches: w[7],
            busy_permille: w[8] as u32,
            sampled_permille: w[9] as u32,
            exited: w[10] != 0,
            overlaps: w[11],
            allocations: w[12],
            driver_ns: w[13],
        };
        Some(Report {
            elapsed_ns,
            time_scale: time_scale as u32,
            late_stamps,
            late_max_ns,
            sync: SyncLateness {
                count: head[4],
                p50_ns: head[5],
                p99_ns: head[6],
                max_ns: head[7],
            },
            sample_age_ns: head[8],
            devices: device_words.as_chunks().0.iter().map(device).collect(),
            processes: process_words.as_chunks().0.iter().map(process).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_its_wire_form() {
        let report = Report {
            elapsed_ns: 1,
            time_scale: 2,
            late_stamps: 3,
            late_max_ns: 7,
            sync: SyncLateness {
                count: 8,
                p50_ns: 9,
                p99_ns: 10,
                max_ns: 11,
            },
            sample_age_ns: 12,
            devices: vec![
                DeviceReport {
                    capacity_bytes: 4,
                    sampled_permille: 13,
                    lost: true,
                    ..Default::default()
                };
                2
            ],
            processes: vec![
                ProcessReport {
                    pid: 5,
                    switch_ns: 14,
                    launches: 6,
                    sampled_permille: 15,
                    exited: true,
                    overlaps: 7,
                    allocations: 8,
                    driver_ns: 9,
                    ..Default::default()
                };
                3
            ],
        };
        let bytes = report.encode();
        assert_eq!(Report::decode(&bytes), Some(report));
        assert_eq!(Report::decode(&bytes[..bytes.len() - 8]), None);
        assert_eq!(Report::decode(&[]), None);
    }
}
