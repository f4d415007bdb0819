//! `stint.why/v1`: what holds for a tenant, an account or a process, where that comes from, and what was refused last.
//! Answered by `src/daemon/why.rs`; `src/why.rs` makes sentences of it.

use serde::{Deserialize, Serialize};

use super::node::Refusal;
use crate::config::Mode;

/// Value of `schema`.
pub const SCHEMA: &str = "stint.why/v1";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Why {
    pub schema: String,
    /// As asked: a tenant, an account or a pid.
    pub subject: String,
    pub mode: Mode,
    /// Where the subject is a pid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// The accounts it concerns; for a tenant without any, what one would get.
    pub accounts: Vec<Account>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    pub state: Standing,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// A client: since when; unattached: first seen; denied: when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What it holds; not known of one that was denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<Holding>,
    /// Why it was denied: `unknown`, `guarantee`, `slot`, …, and the sentence for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How a process stands to the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    Client,
    /// It holds a device without being a client.
    Unattached,
    /// It was turned away when it asked.
    Denied,
    /// It runs, and the node has nothing to do with it.
    None,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Holding {
    pub index: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Account {
    pub tenant: String,
    /// Absent: none is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    pub rule: Rule,
    pub devices: Vec<Device>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refusal: Option<Refusal>,
    /// What is set or written for it and has no effect yet, each with its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_in_force: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Cap per device as written, for example `8GiB`, `50%` or `all`.
    pub memory: String,
    /// Absent: nothing is guaranteed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guaranteed: Option<String>,
    pub from: Origin,
    /// `FILE:LINE:COLUMN`, from the quota file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Who set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// It was set until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// A launch took it from that account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// Its owner lowered it to that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowered_to: Option<String>,
}

/// Where a rule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// `stint set`.
    Set,
    /// `stint run --memory`.
    Launch,
    /// The tenant's stanza of the quota file.
    Tenant,
    /// `[defaults]` of the quota file.
    Defaults,
    /// Nobody said anything: `all`.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    pub index: u32,
    pub cap_bytes: u64,
    pub guaranteed_bytes: u64,
    /// Closed to newcomers: an account that holds nothing there gets nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
}
