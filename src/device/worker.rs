//! `stint device`: the child that opens NVML. Its standard input and output are a socket to the daemon (`child.rs`); it
//! says what devices there are, then looks at them as often as it is asked.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use nvml_wrapper::Nvml;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use rustix::process::{Signal, set_parent_process_death_signal};

use super::child::{Ask, Line};
use super::{Device, DriverVersion, Inventory, Look, Process, context};
use crate::exit::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// NVML to open instead of the system's
    #[arg(long, value_name = "FILE")]
    pub nvml: Option<PathBuf>,
    /// CUDA driver to open instead of the system's
    #[arg(long, value_name = "FILE")]
    pub cuda: Option<PathBuf>,
    /// Measure what a context costs, and end
    #[arg(long)]
    pub contexts: bool,
}

/// Runs until the daemon hangs up.
pub fn run(args: &Args) -> Result<Exit, Failure> {
    // A hung call never reads the end of its input: the child goes with its daemon all the same.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(Failure::failed)?;
    let path = args.nvml.as_deref().unwrap_or(Path::new("libnvidia-ml.so.1"));
    let nvml = match Nvml::builder().lib_path(path.as_os_str()).init() {
        Ok(nvml) => nvml,
        Err(error) => {
            say(&Line::Failed(format!("{}: {error}", path.display())))?;
            return Ok(Exit::FAILED);
        }
    };
    if args.contexts {
        let cuda = args.cuda.as_deref().unwrap_or(Path::new("libcuda.so.1"));
        match context::measure(cuda, &nvml) {
            Ok(contexts) => contexts
                .into_iter()
                .try_for_each(|context| say(&Line::Context(context)))?,
            Err(why) => say(&Line::Failed(why))?,
        }
        return Ok(Exit::OK);
    }
    match inventory(&nvml, path) {
        Ok(inventory) => say(&Line::Inventory(inventory))?,
        Err(error) => {
            say(&Line::Failed(format!("{}: {error}", path.display())))?;
            return Ok(Exit::FAILED);
        }
    }
    for line in io::stdin().lock().lines() {
        let line = line.map_err(Failure::failed)?;
        match serde_json::from_str(&line) {
            Ok(Ask::Look) => say(&Line::Looks(look(&nvml)))?,
            Err(error) => return Err(Failure::failed(format!("the daemon asked for `{line}`: {error}"))),
        }
    }
    Ok(Exit::OK)
}

fn say(line: &Line) -> Result<(), Failure> {
    let mut text = serde_json::to_string(line).map_err(Failure::failed)?;
    text.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::failed)
}

fn inventory(nvml: &Nvml, path: &Path) -> Result<Inventory, NvmlError> {
    let cuda = nvml.sys_cuda_driver_version().ok();
    let driver = DriverVersion {
        version: nvml.sys_driver_version().ok(),
        cuda: cuda.map(|version| format!("{}.{}", version / 1000, version % 1000 / 10)),
        path: Some(path.display().to_string()),
    };
    let devices = (0..nvml.device_count()?)
        .map(|index| device(nvml, index))
        .collect::<Result<_, _>>()?;
    Ok(Inventory { driver, devices })
}

fn device(nvml: &Nvml, index: u32) -> Result<Device, NvmlError> {
    let device = nvml.device_by_index(index)?;
    let pci_bus_id = device.pci_info().ok().map(|pci| pci.bus_id);
    Ok(Device {
        index,
        uuid: device.uuid()?,
        name: device.name()?,
        total_bytes: device.memory_info()?.total,
        numa_node: pci_bus_id.as_deref().and_then(numa_node),
        pci_bus_id,
        sm_count: None,
    })
}

/// The host's node a PCI device is attached to; `None` where the host has no such device, or one node.
fn numa_node(pci_bus_id: &str) -> Option<u32> {
    // NVML writes the domain with eight digits, the kernel with four.
    let id = pci_bus_id.to_ascii_lowercase();
    let id = id
        .strip_prefix("0000")
        .filter(|rest| rest.len() == 12)
        .unwrap_or(&id);
    std::fs::read_to_string(format!("/sys/bus/pci/devices/{id}/numa_node"))
        .ok()?
        .trim()
        .parse()
        .ok()
}

fn look(nvml: &Nvml) -> Vec<Look> {
    let count = nvml.device_count().unwrap_or(0);
    (0..count).map(|index| look_at(nvml, index)).collect()
}

fn look_at(nvml: &Nvml, index: u32) -> Look {
    let device = match nvml.device_by_index(index) {
        Ok(device) => device,
        Err(error) => {
            return Look {
                index,
                fault: Some(error.to_string()),
                ..Look::default()
            };
        }
    };
    let memory = device.memory_info();
    let fault = match &memory {
        Err(error @ (NvmlError::GpuLost | NvmlError::Unknown)) => Some(error.to_string()),
        _ => None,
    };
    Look {
        index,
        used_bytes: memory.ok().map(|memory| memory.used),
        busy_ratio: device
            .utilization_rates()
            .ok()
            .map(|rates| f64::from(rates.gpu.min(100)) / 100.0),
        processes: processes(&device),
        fault,
    }
}

/// Processes with compute or graphics work on the device; `None`: the list cannot be read.
pub fn processes(device: &nvml_wrapper::Device<'_>) -> Option<Vec<Process>> {
    // A process that opened the device twice is listed twice, each time with a part.
    let mut used = sums(device.running_compute_processes().ok()?);
    // One that does both is in both lists with all it uses.
    for (pid, bytes) in sums(device.running_graphics_processes().unwrap_or_default()) {
        used.entry(pid).or_insert(bytes);
    }
    let process = |(pid, used_bytes)| Process { pid, used_bytes };
    Some(used.into_iter().map(process).collect())
}

/// What each process uses by all its entries in one list; `None` where one of them is not told.
fn sums(list: Vec<ProcessInfo>) -> BTreeMap<u32, Option<u64>> {
    let mut sums = BTreeMap::new();
    for process in list {
        let bytes = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        let sum = sums.entry(process.pid).or_insert(Some(0u64));
        *sum = sum.zip(bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_process_are_added_unless_one_is_not_told() {
        let part = |pid, used_gpu_memory| ProcessInfo {
            pid,
            used_gpu_memory,
            gpu_instance_id: None,
            compute_instance_id: None,
        };
        let list = vec![
            part(7, UsedGpuMemory::Used(3)),
            part(8, UsedGpuMemory::Used(1)),
            part(7, UsedGpuMemory::Used(4)),
            part(8, UsedGpuMemory::Unavailable),
        ];
        assert_eq!(sums(list), [(7, Some(7)), (8, None)].into());
    }

    #[test]
    fn a_bus_the_host_does_not_have_has_no_node() {
        assert_eq!(numa_node("0000FFFF:FF:1F.7"), None);
    }
}
