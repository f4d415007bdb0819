//! The words a client writes, as the daemon read them: all sums or states, so a look that came late or not at all loses
//! nothing. What comes back is `src/scheduler/word.rs`.

/// What one account says of its work on one device. Nothing in here can harm anybody but the account itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// Since when a thread waits at the gate.
    pub waiting_since_ns: Option<u64>,
    /// Predicted GPU time of all work handed to the driver so far, and of what of it was seen finished.
    pub submitted_ns: u64,
    pub finished_ns: u64,
    /// Measured GPU time of what was seen finished.
    pub used_ns: u64,
    /// When work was last handed over or seen finished.
    pub moved_at_ns: u64,
    /// When a thread was last seen alive at the gate (one that waits says so every 2 ms).
    pub alive_at_ns: u64,
    /// A thread is between looking at the policy word and the return of the driver's call.
    pub launching: bool,
    /// A thread waits for the device inside the driver: what is in flight really is.
    pub syncing: bool,
    /// Predicted length of the longest of its usual kernels (95 % are shorter).
    pub longest_ns: u64,
    /// High priority: until when its demand holds. The daemon and its peers' gates clamp it.
    pub demand_until_ns: u64,
    /// The newest policy word a thread has acted on, and how many launches it let through a closed gate.
    pub epoch: u32,
    pub passes: u32,
}

impl Reading {
    /// Predicted GPU time handed over and not yet seen finished.
    pub fn in_flight_ns(&self) -> u64 {
        self.submitted_ns.saturating_sub(self.finished_ns)
    }

    /// Nothing in flight and nobody about to hand something over.
    pub fn drained(&self) -> bool {
        !self.launching && self.in_flight_ns() == 0
    }

    /// GPU time used, what is in flight by its prediction.
    pub(super) fn charged_ns(&self) -> i64 {
        self.used_ns.saturating_add(self.in_flight_ns()) as i64
    }
}
