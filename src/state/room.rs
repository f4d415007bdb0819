//! What a node has and can still guarantee.

use std::collections::BTreeMap;

use super::{Granted, NodeState};
use crate::config::Overcommit;

/// Why an account cannot be opened: more would be guaranteed than there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overcommitted {
    pub device: usize,
    pub asked_bytes: u64,
    pub left_bytes: u64,
}

impl NodeState {
    /// Bytes of device `place` an account may use at most.
    pub fn usable(&self, place: usize) -> u64 {
        let total = self
            .inventory
            .devices
            .get(place)
            .map_or(0, |device| device.total_bytes);
        total.saturating_sub(self.reserved.get(place).copied().unwrap_or(0))
    }

    /// Whether the node can guarantee `granted` to one more account.
    pub fn room_for(&self, granted: &[Granted]) -> Result<(), Overcommitted> {
        if self.overcommit == Overcommit::Allow {
            return Ok(());
        }
        for (device, granted) in granted.iter().enumerate() {
            let left_bytes = self.unguaranteed(device);
            if granted.guaranteed_bytes > left_bytes {
                return Err(Overcommitted {
                    device,
                    asked_bytes: granted.guaranteed_bytes,
                    left_bytes,
                });
            }
        }
        Ok(())
    }

    /// Whether the node can guarantee what every account is to have: no more than there is, or than now.
    pub fn room_for_all(&self, wanted: &BTreeMap<String, Vec<Granted>>) -> Result<(), Overcommitted> {
        if self.overcommit == Overcommit::Allow {
            return Ok(());
        }
        for device in 0..self.inventory.devices.len() {
            let active = wanted.iter().filter(|(account, _)| self.is_active(account));
            let asked = active.filter_map(|(_, granted)| granted.get(device));
            let asked_bytes = asked.fold(0u64, |sum, granted| sum.saturating_add(granted.guaranteed_bytes));
            let left_bytes = self.usable(device).max(self.guaranteed(device));
            if asked_bytes > left_bytes {
                return Err(Overcommitted {
                    device,
                    asked_bytes,
                    left_bytes,
                });
            }
        }
        Ok(())
    }

    /// Bytes of device `place` that are guaranteed to no active account.
    pub(super) fn unguaranteed(&self, place: usize) -> u64 {
        self.usable(place).saturating_sub(self.guaranteed(place))
    }

    /// Bytes of device `place` that are guaranteed to active accounts.
    pub(super) fn guaranteed(&self, place: usize) -> u64 {
        let active = self.accounts.iter().filter(|(name, _)| self.is_active(name));
        let guaranteed = active.filter_map(|(_, account)| account.devices.get(place));
        guaranteed.fold(0u64, |sum, device| sum.saturating_add(device.guaranteed))
    }
}
