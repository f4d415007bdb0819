//! What the device itself says of processes: the stand-in's truth, or NVML on a GPU.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use nvml_wrapper::Nvml;
use nvml_wrapper::enums::device::UsedGpuMemory;

use crate::artefacts::Artefacts;
use crate::exit::Failure;
use crate::sim::Truth;

/// Where the truth is read.
pub enum Source {
    Sim {
        artefacts: Artefacts,
        run_dir: PathBuf,
    },
    /// NVML keeps no high-water mark and no launches: the former is the highest value seen here.
    Nvidia {
        nvml: Box<Nvml>,
        highest: RefCell<BTreeMap<u32, u64>>,
    },
}

/// One process, over all devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Process {
    pub used_bytes: u64,
    pub high_water_bytes: u64,
    /// `None`: the device does not know.
    pub launches: Option<u64>,
    /// Its allocations that came to the driver. `None`: the device does not know.
    pub allocations: Option<u64>,
}

impl Source {
    /// NVML of this machine.
    pub fn nvidia() -> Result<Source, Failure> {
        let nvml = Nvml::init().map_err(|error| {
            Failure::failed(format!(
                "no NVIDIA driver answers ({error}): use `--driver sim` for the stand-in"
            ))
        })?;
        Ok(Source::Nvidia {
            nvml: Box::new(nvml),
            highest: RefCell::default(),
        })
    }

    /// Every process that has, or on the stand-in had, something on a device.
    pub fn read(&self) -> Result<BTreeMap<u32, Process>, Failure> {
        match self {
            Source::Sim { artefacts, run_dir } => Ok(of_sim(&Truth::read(artefacts, Some(run_dir))?)),
            Source::Nvidia { nvml, highest } => {
                let used = of_nvml(nvml).map_err(|error| Failure::failed(format!("NVML: {error}")))?;
                let mut highest = highest.borrow_mut();
                for (pid, bytes) in &used {
                    let most = highest.entry(*pid).or_default();
                    *most = (*most).max(*bytes);
                }
                let process = |(pid, most): (&u32, &u64)| {
                    let used_bytes = used.get(pid).copied().unwrap_or(0);
                    (
                        *pid,
                        Process {
                            used_bytes,
                            high_water_bytes: *most,
                            launches: None,
                            allocations: None,
                        },
                    )
                };
                Ok(highest.iter().map(process).collect())
            }
        }
    }
}

fn of_sim(truth: &Truth) -> BTreeMap<u32, Process> {
    let mut processes: BTreeMap<u32, Process> = BTreeMap::new();
    for row in &truth.processes {
        let process = processes.entry(row.pid).or_default();
        process.used_bytes += row.used_bytes;
        process.high_water_bytes += row.high_water_bytes;
        *process.launches.get_or_insert(0) += row.launches;
        *process.allocations.get_or_insert(0) += row.allocations;
    }
    processes
}

fn of_nvml(nvml: &Nvml) -> Result<BTreeMap<u32, u64>, nvml_wrapper::error::NvmlError> {
    let mut used = BTreeMap::new();
    for index in 0..nvml.device_count()? {
        for process in nvml.device_by_index(index)?.running_compute_processes()? {
            if let UsedGpuMemory::Used(bytes) = process.used_gpu_memory {
                *used.entry(process.pid).or_default() += bytes;
            }
        }
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::TrueProcess;

    #[test]
    fn a_process_on_two_devices_is_one() {
        let row = |device| TrueProcess {
            pid: 7,
            device,
            used_bytes: 1,
            high_water_bytes: 2,
            busy_ns: 0,
            launches: 3,
            allocations: 4,
            exited: false,
        };
        let truth = Truth {
            elapsed_ns: 0,
            time_scale: 1,
            devices: Vec::new(),
            processes: vec![row(0), row(1)],
        };
        let one = Process {
            used_bytes: 2,
            high_water_bytes: 4,
            launches: Some(6),
            allocations: Some(8),
        };
        assert_eq!(of_sim(&truth), BTreeMap::from([(7, one)]));
    }
}
