//! The constants of the policy, and the few that follow from what was measured. Read next: `src/scheduler/seat.rs`.

/// One microsecond and one millisecond, in nanoseconds.
pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;

/// A lease without an end: nobody else wants the device.
pub const FOREVER: u64 = u64::MAX;

/// All times are nanoseconds of one monotonic clock, or of GPU time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// GPU time after which the holder of a lease must be behind its competitors to keep it.
    pub lease_ns: u64,
    /// The same for an account that is gated on several devices at once.
    pub slot_ns: u64,
    /// The same for accounts that share a device with one of high priority.
    pub background_lease_ns: u64,
    /// GPU time an account may have in flight.
    pub window_ns: u64,
    /// Bounds of that beside an account of high priority, and what holds there without a `latency_guard`.
    pub narrow_ns: (u64, u64),
    pub narrow_default_ns: u64,
    /// A switch between two drained contexts.
    pub switch_ns: u64,
    /// What a hand-off takes besides: the end mark is seen, two wakes.
    pub signal_ns: u64,
    /// How far behind one that wakes up must be to close the holder's lease before its end.
    pub preempt_ns: u64,
    /// Without a sign of life for so long, a waiting account is passed over.
    pub silent_ns: u64,
    /// Work in flight that has not moved for so long, and four times as long as predicted, lets the next one in beside it.
    pub stuck_ns: u64,
    /// One whose work in flight has not moved for so long, and four times as long as predicted, is let through one launch.
    pub spin_ns: u64,
    /// GPU time an account with a limit may use at once.
    pub bucket_ns: u64,
    /// How much an account of lower priority may miss of its share before it goes first.
    pub slack_ns: u64,
    /// With the daemon's heartbeat this old, gates open by themselves.
    pub stale_ns: u64,
    /// While somebody waits the daemon looks at least this often, should a doorbell be lost.
    pub look_ns: u64,
}

impl Settings {
    /// For devices whose switch between drained contexts takes `switch_ns` (measured at the start of the daemon).
    pub fn for_switch(switch_ns: u64) -> Settings {
        let lease_ns = (40 * (switch_ns + 20 * US)).clamp(2 * MS, 10 * MS);
        Settings {
            lease_ns,
            slot_ns: lease_ns.max(10 * MS),
            background_lease_ns: 10 * MS,
            window_ns: MS,
            narrow_ns: (100 * US, 400 * US),
            narrow_default_ns: 150 * US,
            switch_ns,
            signal_ns: 50 * US,
            preempt_ns: lease_ns * 2 / 3,
            silent_ns: 5 * MS,
            stuck_ns: 100 * MS,
            spin_ns: 50 * MS,
            bucket_ns: 2 * MS,
            slack_ns: 10 * MS,
            stale_ns: 100 * MS,
            look_ns: 2 * MS,
        }
    }

    /// The window of an account whose longest kernels take `longest_ns`, beside one of high priority that bears `guard_ns`.
    pub fn narrow_window(&self, guard_ns: Option<u64>, longest_ns: u64) -> u64 {
        guard_ns.map_or(self.narrow_default_ns, |guard| {
            let left = guard.saturating_sub(self.switch_ns + longest_ns);
            left.clamp(self.narrow_ns.0, self.narrow_ns.1)
        })
    }
}

impl Default for Settings {
    /// A switch of 55 µs, and so a lease of 3 ms.
    fn default() -> Settings {
        Settings::for_switch(55 * US)
    }
}
