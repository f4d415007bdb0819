//! A node that only observes: what it would have refused. Nothing is turned down, so that nothing is counted as a refusal;
//! that an account went above its cap is told once for each cap.

use super::NodeState;
use crate::events::{self, Kind};

impl NodeState {
    /// Accounts newly above their caps, a line for each device.
    pub(super) fn above_caps(&mut self, name: &str) -> Vec<events::Event> {
        let Some(account) = self.accounts.get_mut(name) else {
            return Vec::new();
        };
        let mut above = Vec::new();
        for (place, device) in account.devices.iter_mut().enumerate() {
            let reading = &device.reading;
            // The highest mark: what came and went between two looks is told as well.
            if reading.peak_bytes > reading.cap_bytes && device.told_above != Some(reading.cap_bytes) {
                device.told_above = Some(reading.cap_bytes);
                above.push((place, reading.peak_bytes, reading.used_bytes, reading.cap_bytes));
            }
        }
        let line = |(place, peak, used, cap)| {
            let line = self
                .about(name, events::Event::new(Kind::State))
                .device(self.index(place));
            line.detail("what", "above its cap: enforced, it would have been refused")
                .detail("peak_bytes", peak)
                .detail("used_bytes", used)
                .detail("cap_bytes", cap)
        };
        above.into_iter().map(line).collect()
    }
}
