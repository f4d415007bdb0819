//! The state as `stint.node/v1` (`protocol/node.rs`).

use std::time::SystemTime;

use super::{Account, NodeState};
use crate::admission::process::Identity;
use crate::cli::Driver as DriverKind;
use crate::config::Mode;
use crate::events::timestamp;
use crate::protocol::node::{
    Activity, Client, ClientDevice, Device, DeviceCompute, DeviceMemory, Driver, Node, SCHEMA, Schedulable,
    Tenant, TenantCompute, TenantDevice, TenantMemory, Unattached,
};

/// What the document says of the daemon itself.
#[derive(Debug, Clone)]
pub struct About {
    pub node: String,
    pub driver: DriverKind,
    pub started_at: SystemTime,
}

impl NodeState {
    /// The node at `now`, as of the last readings applied.
    pub fn document(&self, about: &About, now: SystemTime) -> Node {
        let driver = &self.inventory.driver;
        Node {
            schema: SCHEMA.into(),
            node: about.node.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            mode: self.mode,
            uptime_seconds: now.duration_since(about.started_at).unwrap_or_default().as_secs(),
            driver: Driver {
                kind: about.driver,
                version: driver.version.clone(),
                cuda: driver.cuda.clone(),
                path: driver.path.clone(),
            },
            devices: (0..self.inventory.devices.len())
                .map(|place| self.device(place))
                .collect(),
            tenants: self
                .accounts
                .iter()
                .map(|(name, account)| self.tenant(name, account, now))
                .collect(),
            not_in_force: Vec::new(),
            unattached: self
                .strangers
                .iter()
                .map(|((pid, place), stranger)| Unattached {
                    pid: *pid,
                    user: stranger.user.clone(),
                    command: stranger.command.clone(),
                    device: self.index(*place),
                    used_bytes: stranger.used_bytes,
                    since: timestamp(stranger.since),
                    orphan: stranger.start_time.and_then(|start_time| {
                        self.orphan(Identity {
                            pid: *pid,
                            start_time,
                        })
                    }),
                })
                .collect(),
        }
    }

    fn device(&self, place: usize) -> Device {
        let device = &self.inventory.devices[place];
        let look = self.looks.iter().find(|look| look.index == device.index);
        let listed = look.is_some_and(|look| look.processes.is_some());
        let strangers = || self.strangers.iter().filter(|((_, at), _)| *at == place);
        let drained = self.drains.node().or(self.drains.device(&device.uuid)).is_some();
        // One stranger whose memory cannot be read makes the sum unknown.
        let unattributed = strangers()
            .map(|(_, stranger)| stranger.used_bytes)
            .sum::<Option<u64>>();
        Device {
            index: device.index,
            uuid: device.uuid.clone(),
            name: device.name.clone(),
            pci_bus_id: device.pci_bus_id.clone(),
            numa_node: device.numa_node,
            mode: "share".into(),
            health: look
                .and_then(|look| look.fault.clone())
                .unwrap_or_else(|| "ok".into()),
            memory: DeviceMemory {
                total_bytes: device.total_bytes,
                reserved_bytes: self.reserved.get(place).copied().unwrap_or(0),
                used_bytes: look.and_then(|look| look.used_bytes),
                unattributed_bytes: unattributed.filter(|_| listed),
            },
            compute: DeviceCompute {
                busy_ratio: look.and_then(|look| look.busy_ratio),
                sm_count: device.sm_count,
            },
            drained,
            schedulable: Some(Schedulable {
                memory_bytes: if drained { 0 } else { self.unguaranteed(place) },
            }),
        }
    }

    fn tenant(&self, name: &str, account: &Account, now: SystemTime) -> Tenant {
        let clients = || self.clients.values().filter(|client| client.account == name);
        Tenant {
            name: account.tenant.clone(),
            account: name.into(),
            state: if self.is_running(name, now) {
                Activity::Running
            } else {
                Activity::Idle
            },
            enforced: self.mode == Mode::Enforce,
            backend: "ledger".into(),
            on_full: vec!["oom".into()],
            devices: account
                .devices
                .iter()
                .enumerate()
                .map(|(place, device)| self.on_device(place, device))
                .collect(),
            clients: clients()
                .map(|client| Client {
                    pid: client.identity.pid,
                    command: client.command.clone(),
                    user: client.user.clone(),
                    shim: client.shim.clone(),
                    started_at: timestamp(client.started_at),
                    used_bytes: self
                        .held_by(client)
                        .iter()
                        .fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes)),
                    devices: self
                        .held_by(client)
                        .into_iter()
                        .map(|(index, used_bytes)| ClientDevice { index, used_bytes })
                        .collect(),
                    last_launch_at: client.last_launch.map(timestamp),
                    orphan: self.orphan(client.identity),
                })
                .collect(),
            last_refusal: account.last_refusal.as_ref().map(super::subject::shown),
        }
    }

    fn on_device(&self, place: usize, device: &super::OnDevice) -> TenantDevice {
        let reading = &device.reading;
        let launches = reading
            .slots
            .values()
            .fold(device.launches_before, |sum, (_, n)| sum.saturating_add(*n));
        TenantDevice {
            index: self.index(place),
            memory: TenantMemory {
                cap_bytes: reading.cap_bytes,
                used_bytes: reading.used_bytes,
                peak_bytes: Some(reading.peak_bytes),
                context_bytes: Some(reading.context_bytes),
                slab_bytes: Some(reading.slab_bytes),
                pool_idle_bytes: Some(reading.idle_bytes),
                refusals_total: device.refusals,
            },
            compute: TenantCompute {
                launches_total: launches,
            },
        }
    }
}
