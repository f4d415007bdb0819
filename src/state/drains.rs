//! What `stint drain` closed to newcomers: the node, or devices. A pure value; the daemon keeps it (`daemon/drain.rs`).

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// Who closed it, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub by: String,
    pub at: SystemTime,
}

/// What is closed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drains {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<Mark>,
    /// By UUID: an index may be another device's after a restart.
    #[serde(default)]
    devices: BTreeMap<String, Mark>,
}

impl Drains {
    pub fn node(&self) -> Option<&Mark> {
        self.node.as_ref()
    }

    pub fn device(&self, uuid: &str) -> Option<&Mark> {
        self.devices.get(uuid)
    }

    /// Whether any device is closed by itself.
    pub fn any_device(&self) -> bool {
        !self.devices.is_empty()
    }

    /// Closes the node, or a device. False: it was closed already, and stays whoever's it was.
    pub fn close(&mut self, device: Option<&str>, mark: Mark) -> bool {
        let place = match device {
            None => &mut self.node,
            Some(uuid) if self.devices.contains_key(uuid) => return false,
            Some(uuid) => return self.devices.insert(uuid.into(), mark).is_none(),
        };
        if place.is_some() {
            return false;
        }
        *place = Some(mark);
        true
    }

    /// Opens the node and with it every device, or one device. False: nothing was closed.
    pub fn open(&mut self, device: Option<&str>) -> bool {
        match device {
            None => std::mem::take(self) != Drains::default(),
            Some(uuid) => self.devices.remove(uuid).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(by: &str) -> Mark {
        Mark {
            by: by.into(),
            at: SystemTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn opening_the_node_opens_its_devices_and_a_second_closing_changes_nothing() {
        let mut drains = Drains::default();
        assert!(drains.close(Some("GPU-1"), mark("root")));
        assert!(!drains.close(Some("GPU-1"), mark("other")));
        assert_eq!(drains.device("GPU-1"), Some(&mark("root")));
        assert!(drains.close(None, mark("root")) && !drains.close(None, mark("other")));
        let text = serde_json::to_string(&drains).unwrap();
        assert_eq!(serde_json::from_str::<Drains>(&text).unwrap(), drains);
        assert!(!drains.open(Some("GPU-2")));
        assert!(drains.open(None) && !drains.open(None));
        assert!(!drains.any_device());
    }
}
