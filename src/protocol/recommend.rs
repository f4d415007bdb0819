//! `stint.recommend/v1`: what accounts used in the last fortnight, and the cap that would fit them. Answered by
//! `src/daemon/chronicle.rs`; `src/recommend.rs` prints it.

use serde::{Deserialize, Serialize};

/// Value of `schema`.
pub const SCHEMA: &str = "stint.recommend/v1";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recommendations {
    pub schema: String,
    /// By account.
    pub recommendations: Vec<Recommendation>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recommendation {
    pub tenant: String,
    /// The account, or, for accounts of jobs and containers, their tenant.
    pub account: String,
    /// Days, of the last 14, with anything in them.
    pub days: usize,
    /// Time it held memory, and the part of that in which nothing launched work.
    pub used_seconds: u64,
    pub idle_seconds: u64,
    /// The most it held at once on one device.
    pub peak_bytes: u64,
    /// What it held at most in 99 % of the time it held anything; up to 12.5 % too much, never above the peak.
    pub p99_bytes: u64,
    /// Refusals at its cap, and the most it would have held had there been none: its programs' own word.
    pub refusals_total: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_bytes: Option<u64>,
    /// What it has now.
    pub devices: Vec<Device>,
    /// The cap that would fit; absent: too little is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// What is missing for one: `time` (it held memory for less than an hour).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    pub index: u32,
    pub cap_bytes: u64,
}
