//! The quota file: parsed once into something that cannot be wrong. `raw.rs` knows the shape, `reader.rs` reads it,
//! `check.rs` knows the meaning, `problem.rs` how a mistake is told; `node.rs`, `rules.rs`, `tenant.rs` and `device.rs` are what
//! is meant. No file is opened here; `daemon/quota_files.rs` reads them.

mod capacity;
mod changes;
mod check;
mod device;
mod fuzz;
mod node;
mod problem;
mod raw;
mod reader;
mod rules;
mod source;
mod tenant;
pub mod units;
mod when;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::SystemTime;

use jiff::tz::TimeZone;
use serde::Serialize;

pub use capacity::Capacity;
pub use device::{DeviceMode, DeviceRules, Policy};
pub use fuzz::fuzz;
pub use node::{Absent, Context, Drift, Mode, NodeRules, Overcommit, Unknown};
pub use problem::{Problem, Problems, nearest};
pub use rules::{MemoryRule, OnFull, OnIdle, Per, Pool, PoolContents, Priority, Rules, share_above_limit};
pub use source::Source;
pub use tenant::{CONTAINER_KEYS, Gpu, Match, Tenant};
pub use when::{Hours, Until};

/// A place in a quota file: line and column from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct At {
    pub file: PathBuf,
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// A key that was understood and has no effect yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotInForce {
    pub key: &'static str,
    /// `node`, `defaults`, `tenants.NAME` or `devices.N`.
    pub stanza: String,
    pub at: At,
}

impl NotInForce {
    /// The tenant whose stanza it stands in.
    pub fn tenant(&self) -> Option<&str> {
        self.stanza.strip_prefix("tenants.")
    }
}

impl fmt::Display for NotInForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotInForce { key, stanza, at } = self;
        write!(
            f,
            "{at}: `{key}` of [{stanza}] is understood and not in force yet"
        )
    }
}

/// The quota file, checked. The default is that of a node without one: memory `all`, everything shown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Config {
    pub node: NodeRules,
    pub defaults: Rules,
    #[serde(skip)]
    pub defaults_memory_at: Option<At>,
    /// As written, those not in force now too: [`Config::tenant`] leaves them out.
    pub tenants: BTreeMap<String, Tenant>,
    /// By index.
    pub devices: BTreeMap<u32, DeviceRules>,
    /// Said once at start and shown, never silently dropped.
    #[serde(skip)]
    pub not_in_force: Vec<NotInForce>,
    /// Where `until` and `hours` are read; UTC unless told.
    #[serde(skip)]
    pub zone: Zone,
}

/// A time zone; by default UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(pub TimeZone);

impl Default for Zone {
    fn default() -> Zone {
        Zone(TimeZone::UTC)
    }
}

/// Name of the tenant of those who match no other.
pub const DEFAULT_TENANT: &str = "default";

impl Config {
    /// Parses and checks `sources` in order; a later file's `[node]` and `[defaults]` keys go before an earlier one's.
    pub fn parse(sources: &[Source]) -> Result<Config, Problems> {
        check::parse(sources)
    }

    /// The tenants in force at `now`: a stanza past its `until` or outside its `hours` is as if it were not there.
    pub fn in_force(&self, now: SystemTime) -> impl Iterator<Item = (&str, &Tenant)> {
        let all = self.tenants.iter().map(|(name, tenant)| (name.as_str(), tenant));
        all.filter(move |(_, tenant)| tenant.in_force(now, &self.zone.0))
    }

    /// The tenant of that name, where it is in force at `now`.
    pub fn tenant(&self, name: &str, now: SystemTime) -> Option<&Tenant> {
        self.tenants
            .get(name)
            .filter(|tenant| tenant.in_force(now, &self.zone.0))
    }

    /// What holds for the tenant of that name at `now`: its own rules, or `[defaults]` where the file has none for it.
    pub fn rules_of(&self, name: &str, now: SystemTime) -> &Rules {
        self.tenant(name, now)
            .map_or(&self.defaults, |tenant| &tenant.rules)
    }
}

/// Checks a tenant's name: 1 to 63 letters, digits, `.`, `_` and `-`, beginning with a letter or digit.
pub fn tenant_name(name: &str) -> Result<(), String> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && name.len() <= 63 && name.chars().all(good) {
        return Ok(());
    }
    Err(format!(
        "`{name}` is not a tenant's name: write 1 to 63 letters, digits, `.`, `_` or `-`, beginning with a letter or digit"
    ))
}

#[cfg(test)]
mod fuzzed;
#[cfg(test)]
mod tests;
