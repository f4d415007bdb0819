//! `stint.node/v1`: the node as one document. A field whose mechanism does not exist, or that cannot be read, is absent.
//! Built by `src/state/document.rs`, printed by `status` and `top`.

use serde::{Deserialize, Serialize};

use crate::cli::Driver as DriverKind;
use crate::config::Mode;

/// Value of `schema`.
pub const SCHEMA: &str = "stint.node/v1";

/// Times are RFC 3339, sizes bytes, ratios 0..1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    pub schema: String,
    /// Host name.
    pub node: String,
    pub version: String,
    pub mode: Mode,
    pub uptime_seconds: u64,
    pub driver: Driver,
    pub devices: Vec<Device>,
    /// One entry per account.
    pub tenants: Vec<Tenant>,
    /// Processes that hold a device without being a client.
    pub unattached: Vec<Unattached>,
    /// What the quota file says that has no effect yet, each with its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_in_force: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Driver {
    pub kind: DriverKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// CUDA version the driver speaks, for example `13.5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// The NVML library in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    pub index: u32,
    pub uuid: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci_bus_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
    /// `share`: the only mode there is so far.
    pub mode: String,
    /// `ok`, or what is wrong.
    pub health: String,
    /// Closed to newcomers by `stint drain`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
    pub memory: DeviceMemory,
    #[serde(default, skip_serializing_if = "DeviceCompute::is_empty")]
    pub compute: DeviceCompute,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedulable: Option<Schedulable>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceMemory {
    pub total_bytes: u64,
    /// Kept back by `[node] reserve`.
    pub reserved_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// Used by processes that are nobody's clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattributed_bytes: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceCompute {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ratio: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_count: Option<u32>,
}

impl DeviceCompute {
    fn is_empty(&self) -> bool {
        *self == DeviceCompute::default()
    }
}

/// What an account that does not exist yet could still be guaranteed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedulable {
    pub memory_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    Running,
    Idle,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    pub name: String,
    pub account: String,
    pub state: Activity,
    /// False while the node observes only.
    pub enforced: bool,
    pub backend: String,
    /// What happens at the cap, in order.
    pub on_full: Vec<String>,
    pub devices: Vec<TenantDevice>,
    pub clients: Vec<Client>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refusal: Option<Refusal>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TenantDevice {
    pub index: u32,
    pub memory: TenantMemory,
    pub compute: TenantCompute,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TenantMemory {
    pub cap_bytes: u64,
    pub used_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// What of it is contexts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_bytes: Option<u64>,
    /// What of it is the driver's slabs beyond what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slab_bytes: Option<u64>,
    /// What of it programs freed and their next request will get; free to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_idle_bytes: Option<u64>,
    pub refusals_total: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TenantCompute {
    pub launches_total: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Client {
    pub pid: u32,
    pub command: String,
    pub user: String,
    /// Version of its shim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shim: Option<String>,
    /// When it became a client.
    pub started_at: String,
    /// Over all devices.
    pub used_bytes: u64,
    /// Those it holds memory of.
    #[serde(default)]
    pub devices: Vec<ClientDevice>,
    /// Known to the daemon's look at the counters, a second apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_launch_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orphan: Option<Orphan>,
}

/// Nobody alive answers for a process: see `src/admission/orphan.rs`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orphan {
    /// Who has ended.
    pub why: String,
    /// Why `stint reap` leaves it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spared: Option<String>,
    /// In clock ticks since boot: with the pid it names one process for as long as the machine runs.
    pub start_time: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientDevice {
    pub index: u32,
    pub used_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    pub at: String,
    pub pid: u32,
    pub device: u32,
    pub asked_bytes: u64,
    pub used_bytes: u64,
    pub cap_bytes: u64,
    /// `cap`, `device`, `reserve`, `guarantee`, `budget` or `paused`.
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unattached {
    pub pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    pub device: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    /// First seen by the daemon.
    pub since: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orphan: Option<Orphan>,
}
