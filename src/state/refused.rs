//! Refusals of allocations, as clients post them.

use std::time::{Duration, SystemTime};

use ledger::SlotIndex;

use super::{NodeState, Refusal};
use crate::events::{self, Kind};

/// Refusals of an account are logged at most so often; those between are counted in the next line.
const REFUSAL_PACE: Duration = Duration::from_millis(100);

impl NodeState {
    pub(super) fn refuse(
        &mut self,
        name: &str,
        slot: SlotIndex,
        place: usize,
        mut refusal: Refusal,
        now: SystemTime,
    ) -> Vec<events::Event> {
        refusal.device = self.index(place);
        if let Some(client) = self.client_in(name, slot) {
            refusal.pid = client.identity.pid;
        }
        let Some(account) = self.accounts.get_mut(name) else {
            return Vec::new();
        };
        if let Some(device) = account.devices.get_mut(place) {
            device.refusals += 1;
        }
        account.last_refusal = Some(refusal.clone());
        let recent = account.logged_at.and_then(|at| now.duration_since(at).ok());
        if recent.is_some_and(|since| since < REFUSAL_PACE) {
            account.unlogged += 1;
            return Vec::new();
        }
        account.logged_at = Some(now);
        let before = std::mem::take(&mut account.unlogged);
        let line = self
            .about(name, events::Event::new(Kind::Refused))
            .pid(refusal.pid)
            .device(refusal.device);
        let line = line
            .detail("reason", refusal.reason)
            .detail("asked_bytes", refusal.asked_bytes);
        let mut line = line
            .detail("used_bytes", refusal.used_bytes)
            .detail("cap_bytes", refusal.cap_bytes);
        if let Some(function) = refusal.function {
            line = line.detail("function", function);
        }
        if before > 0 {
            line = line.detail("unlogged_before", before);
        }
        vec![line]
    }
}
