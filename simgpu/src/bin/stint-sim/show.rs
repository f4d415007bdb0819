//! The node's truth on stdout: `stint.sim/v1`, or a table.

use crate::{Failure, failure};
use serde::Serialize;
use simgpu::client::Observer;
use simgpu::report::Report;
use std::io::Write;

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    elapsed_ns: u64,
    time_scale: u32,
    late_stamps: u64,
    late_max_ns: u64,
    sync_late: SyncLate,
    devices: Vec<Device>,
    processes: Vec<Process>,
}

#[derive(Serialize)]
struct SyncLate {
    count: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

#[derive(Serialize)]
struct Device {
    index: usize,
    capacity_bytes: u64,
    used_bytes: u64,
    high_water_bytes: u64,
    busy_ns: u64,
    switch_ns: u64,
}

#[derive(Serialize)]
struct Process {
    pid: u32,
    device: u32,
    used_bytes: u64,
    high_water_bytes: u64,
    busy_ns: u64,
    copy_ns: u64,
    switch_ns: u64,
    launches: u64,
    exited: bool,
    overlaps: u64,
    allocations: u64,
    driver_ns: u64,
}

impl From<Report> for Document {
    fn from(report: Report) -> Document {
        let devices = report.devices.iter().enumerate().map(|(index, d)| Device {
            index,
            capacity_bytes: d.capacity_bytes,
            used_bytes: d.used_bytes,
            high_water_bytes: d.high_water_bytes,
            busy_ns: d.busy_ns,
            switch_ns: d.switch_ns,
        });
        let processes = report.processes.iter().map(|p| Process {
            pid: p.pid,
            device: p.device,
            used_bytes: p.used_bytes,
            high_water_bytes: p.high_water_bytes,
            busy_ns: p.busy_ns,
            copy_ns: p.copy_ns,
            switch_ns: p.switch_ns,
            launches: p.launches,
            exited: p.exited,
            overlaps: p.overlaps,
            allocations: p.allocations,
            driver_ns: p.driver_ns,
        });
        Document {
            schema: "stint.sim/v1",
            elapsed_ns: report.elapsed_ns,
            time_scale: report.time_scale,
            late_stamps: report.late_stamps,
            late_max_ns: report.late_max_ns,
            sync_late: SyncLate {
                count: report.sync.count,
                p50_ns: report.sync.p50_ns,
                p99_ns: report.sync.p99_ns,
                max_ns: report.sync.max_ns,
            },
            devices: devices.collect(),
            processes: processes.collect(),
        }
    }
}

pub fn json(observer: &Observer) -> Result<(), Failure> {
    let report = observer
        .report()
        .map_err(|e| failure(69, format!("the node's report: {e}")))?;
    let text = serde_json::to_string(&Document::from(report)).map_err(|e| failure(1, e.to_string()))?;
    print(&text)
}

pub fn table(observer: &Observer) -> Result<(), Failure> {
    let report = observer
        .report()
        .map_err(|e| failure(69, format!("the node's report: {e}")))?;
    let mib = |bytes: u64| format!("{:.1}", bytes as f64 / (1 << 20) as f64);
    let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
    let mut text = format!(
        "up {} s, time scale {}, late stamps {}, {}\n{:>6}  {:<24} {:>12} {:>12} {:>12} {:>12} {:>6}\n",
        report.elapsed_ns / 1_000_000_000,
        report.time_scale,
        report.late_stamps,
        report.sync,
        "DEVICE",
        "MODEL",
        "TOTAL MiB",
        "USED MiB",
        "PEAK MiB",
        "BUSY ms",
        "BUSY %",
    );
    for (i, (d, facts)) in report.devices.iter().zip(observer.devices()).enumerate() {
        let (total, used, peak) = (mib(d.capacity_bytes), mib(d.used_bytes), mib(d.high_water_bytes));
        let (name, busy, percent) = (facts.name.as_str(), ms(d.busy_ns), d.busy_permille as f64 / 10.0);
        text += &format!("{i:>6}  {name:<24} {total:>12} {used:>12} {peak:>12} {busy:>12} {percent:>6.1}\n");
    }
    if !report.processes.is_empty() {
        text += &format!(
            "{:>8} {:>6} {:>12} {:>12} {:>12} {:>10}  {}\n",
            "PID", "DEVICE", "USED MiB", "PEAK MiB", "BUSY ms", "LAUNCHES", "STATE"
        );
    }
    for p in &report.processes {
        let (used, peak, busy) = (mib(p.used_bytes), mib(p.high_water_bytes), ms(p.busy_ns));
        let state = if p.exited { "exited" } else { "alive" };
        let (pid, device, launches) = (p.pid, p.device, p.launches);
        text += &format!("{pid:>8} {device:>6} {used:>12} {peak:>12} {busy:>12} {launches:>10}  {state}\n");
    }
    print(text.trim_end())
}

/// A closed pipe is the reader's wish, not an error.
fn print(text: &str) -> Result<(), Failure> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(failure(1, error.to_string())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simgpu::report::{DeviceReport, ProcessReport};

    #[test]
    fn the_document_is_the_contracts() {
        let report = Report {
            elapsed_ns: 1,
            time_scale: 1,
            late_stamps: 0,
            late_max_ns: 0,
            sync: Default::default(),
            sample_age_ns: 0,
            devices: vec![DeviceReport {
                capacity_bytes: 9,
                ..Default::default()
            }],
            processes: vec![ProcessReport {
                pid: 7,
                launches: 3,
                exited: true,
                ..Default::default()
            }],
        };
        let text = serde_json::to_string(&Document::from(report)).expect("serialises");
        assert_eq!(
            text,
            r#"{"schema":"stint.sim/v1","elapsed_ns":1,"time_scale":1,"late_stamps":0,"late_max_ns":0,"sync_late":{"count":0,"p50_ns":0,"p99_ns":0,"max_ns":0},"devices":[{"index":0,"capacity_bytes":9,"used_bytes":0,"high_water_bytes":0,"busy_ns":0,"switch_ns":0}],"processes":[{"pid":7,"device":0,"used_bytes":0,"high_water_bytes":0,"busy_ns":0,"copy_ns":0,"switch_ns":0,"launches":3,"exited":true,"overlaps":0,"allocations":0,"driver_ns":0}]}"#
        );
    }
}
