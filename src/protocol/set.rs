//! `stint.set/v1`: what `stint set` changed, in exact bytes. Answered by `src/daemon/set.rs`, printed by `src/set.rs`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Value of `schema`.
pub const SCHEMA: &str = "stint.set/v1";

/// What `stint set` asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// A tenant, or one account of it.
    pub target: String,
    /// By key (`memory`, `memory.burst`, `share`, …) the value as written; `default` drops what was set.
    pub values: BTreeMap<String, String>,
    /// Ends by itself after so long, for example `2h`.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub period: Option<String>,
}

/// What that gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    pub schema: String,
    pub target: String,
    /// RFC 3339; absent: until it is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Open accounts concerned, changed or not.
    pub accounts: Vec<Account>,
    /// Keys that were understood and have no effect yet.
    pub not_in_force: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    pub tenant: String,
    /// Absent: what an account will get that is not open yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    pub devices: Vec<Device>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    pub index: u32,
    pub before: Amounts,
    pub after: Amounts,
    /// In use right after the change; more than the cap: allocations are refused until it is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amounts {
    pub cap_bytes: u64,
    pub guaranteed_bytes: u64,
}
