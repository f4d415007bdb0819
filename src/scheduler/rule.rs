//! What the quota file grants, as far as compute is concerned. Read next: `src/scheduler/reading.rs`.

use crate::config::units::Ratio;
use crate::config::{DeviceMode, Policy, Priority};

/// What holds for an account.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// As people know it.
    pub name: String,
    /// Guaranteed part of each of its devices over one second. Where they sum up to more than the whole, all are scaled.
    pub share: Ratio,
    /// Hard ceiling on each of its devices; `None`: none.
    pub limit: Option<Ratio>,
    pub priority: Priority,
    /// Most latency others may add to its work.
    pub latency_guard_ns: Option<u64>,
    /// While this one is busy, others of lower priority may get nothing.
    pub starve: bool,
    /// Gated on all its devices at once. Without it, each device for itself.
    pub together: bool,
    /// Its gate stays closed.
    pub paused: bool,
}

impl Rule {
    /// A share of normal priority, nothing else.
    pub fn share(name: &str, share: Ratio) -> Rule {
        Rule {
            name: name.to_owned(),
            share,
            limit: None,
            priority: Priority::Normal,
            latency_guard_ns: None,
            starve: false,
            together: true,
            paused: false,
        }
    }
}

/// What holds for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceRule {
    pub mode: DeviceMode,
    pub policy: Policy,
}
