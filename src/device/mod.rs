//! What the node has: devices, their memory, who uses it. Asked of NVML by a child of the daemon (`child.rs` is the
//! daemon's end, `worker.rs` the child's, `context.rs` what it asks CUDA), because a call into a driver can hang and nothing that hangs may be here.

pub mod child;
#[allow(unsafe_code)] // calls into libcuda by pointer
mod context;
pub mod sim;
pub mod worker;

use serde::{Deserialize, Serialize};

/// A device, as long as the daemon runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// NVML's index.
    pub index: u32,
    /// `GPU-` and 32 hexadecimal digits.
    pub uuid: String,
    pub name: String,
    pub total_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci_bus_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_count: Option<u32>,
}

impl Device {
    /// The 16 bytes of the UUID, as CUDA gives them; `None` if NVML's text is no UUID.
    pub fn uuid_bytes(&self) -> Option<[u8; 16]> {
        uuid_bytes(&self.uuid)
    }
}

fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.strip_prefix("GPU-")?.chars().filter(|c| *c != '-').collect();
    let mut bytes = [0; 16];
    if digits.len() != 32 || !digits.is_ascii() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// The driver behind the devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverVersion {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Newest CUDA it speaks, for example `13.5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// The NVML library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// All devices and their driver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    pub driver: DriverVersion,
    pub devices: Vec<Device>,
}

impl Inventory {
    /// The devices as the quota file is checked against them.
    pub fn capacities(&self) -> Vec<crate::config::Capacity> {
        let capacity = |device: &Device| crate::config::Capacity {
            index: device.index,
            uuid: device.uuid.clone(),
            total: crate::config::units::Bytes(device.total_bytes),
        };
        self.devices.iter().map(capacity).collect()
    }
}

/// One look at a device. What could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Look {
    pub index: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_ratio: Option<f64>,
    /// Absent: the list could not be read, which is not the same as nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<Vec<Process>>,
    /// What is wrong with the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// A process that holds a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvmls_uuid_is_cudas_sixteen_bytes() {
        let mut device = Device {
            index: 0,
            uuid: "GPU-01020304-0506-0708-090a-0b0c0d0e0f10".into(),
            name: "x".into(),
            total_bytes: 1,
            pci_bus_id: None,
            numa_node: None,
            sm_count: None,
        };
        assert_eq!(
            device.uuid_bytes(),
            Some([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])
        );
        for wrong in [
            "",
            "GPU-0102",
            "GPU-0102030405060708090a0b0c0d0e0fxx",
            "MIG-0102030405060708090a0b0c0d0e0f10",
        ] {
            device.uuid = wrong.into();
            assert_eq!(device.uuid_bytes(), None, "{wrong}");
        }
    }
}
