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
    pub devices: Vec<DeviceReport>,
    /// One row per (process, device) that ever held memory or ran work; the dead come last. When very
    /// many have died, the oldest dead are summed into rows with pid 0.
    pub processes: Vec<ProcessReport>,
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
    /// Kernels submitted.
    pub launches: u64,
    /// As in [`DeviceReport`], for this process.
    pub busy_permille: u32,
    /// The process is dead.
    pub exited: bool,
}

const DEVICE: usize = 7;
const PROCESS: usize = 9;

impl Report {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut words = vec![
            self.elapsed_ns,
            self.time_scale as u64,
            self.late_stamps,
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
            words.extend([d.busy_permille as u64, d.lost as u64]);
        }
        for p in &self.processes {
            words.extend([
                p.pid as u64,
                p.device as u64,
                p.used_bytes,
                p.high_water_bytes,
                p.busy_ns,
            ]);
            words.extend([p.copy_ns, p.launches, p.busy_permille as u64, p.exited as u64]);
        }
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    /// `None` if the bytes are no report.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Report> {
        let (words, []) = bytes.as_chunks::<8>() else {
            return None;
        };
        let words: Vec<u64> = words.iter().map(|w| u64::from_le_bytes(*w)).collect();
        let (&[elapsed_ns, time_scale, late_stamps, devices, processes], rest) = words.split_first_chunk()?;
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
            lost: w[6] != 0,
        };
        let process = |w: &[u64; PROCESS]| ProcessReport {
            pid: w[0] as u32,
            device: w[1] as u32,
            used_bytes: w[2],
            high_water_bytes: w[3],
            busy_ns: w[4],
            copy_ns: w[5],
            launches: w[6],
            busy_permille: w[7] as u32,
            exited: w[8] != 0,
        };
        Some(Report {
            elapsed_ns,
            time_scale: time_scale as u32,
            late_stamps,
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
            devices: vec![
                DeviceReport {
                    capacity_bytes: 4,
                    lost: true,
                    ..Default::default()
                };
                2
            ],
            processes: vec![
                ProcessReport {
                    pid: 5,
                    launches: 6,
                    exited: true,
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
