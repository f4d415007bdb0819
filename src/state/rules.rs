//! The rules of the whole node, which a reload changes, and what the log says of it.

use super::NodeState;
use crate::config::{Mode, Overcommit, Problems};
use crate::events::{self, Kind};

impl NodeState {
    /// Takes over what the quota file says of the whole node, and tells the keys that changed.
    pub(super) fn reloaded(
        &mut self,
        cause: String,
        changed: Vec<String>,
        (mode, overcommit, reserved): (Mode, Overcommit, Vec<u64>),
    ) -> events::Event {
        self.mode = mode;
        self.overcommit = overcommit;
        self.reserved = reserved;
        let event = events::Event::new(Kind::Config).detail("message", "the quota file was read again");
        event.detail("cause", cause).detail("changed", changed)
    }

    /// A quota file with mistakes: nothing changes.
    pub(super) fn not_reloaded(cause: String, problems: &Problems) -> events::Event {
        let told: Vec<String> = problems.0.iter().map(ToString::to_string).collect();
        let message = "the quota file is not reloaded, the rules stay as they were";
        let event = events::Event::new(Kind::Config).detail("message", message);
        event.detail("cause", cause).detail("errors", told)
    }

    /// Devices on which more is guaranteed to active accounts than can be, by place, with the two numbers of bytes.
    pub fn overcommitted(&self) -> Vec<(usize, u64, u64)> {
        if self.overcommit == Overcommit::Allow {
            return Vec::new();
        }
        let devices = 0..self.inventory.devices.len();
        let over = devices.map(|place| (place, self.guaranteed(place), self.usable(place)));
        over.filter(|(_, guaranteed, usable)| guaranteed > usable)
            .collect()
    }
}
