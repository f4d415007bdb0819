//! `stint.drain/v1`: what is closed to newcomers, and who is still there. Answered by `src/daemon/drain.rs`, printed by
//! `src/drain.rs`.

use serde::{Deserialize, Serialize};

/// Value of `schema`.
pub const SCHEMA: &str = "stint.drain/v1";

/// What `stint drain` asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drain {
    /// Index or UUID of a device; absent: the whole node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    pub action: Action,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Turns newcomers away from now on.
    Close,
    /// Lets them in again.
    Open,
    /// Changes nothing.
    #[default]
    Show,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drained {
    pub schema: String,
    /// Absent: the node is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Closed>,
    /// The devices asked about.
    pub devices: Vec<Device>,
    /// Processes still there: of the device asked about, else of the node.
    pub left: Vec<Left>,
}

/// Since when it is closed, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    pub since: String,
    pub by: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    pub index: u32,
    pub uuid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Closed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    pub pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Absent: it is nobody's client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
}
