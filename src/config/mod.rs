//! The quota file: parsed once into something that cannot be wrong. `raw.rs` knows the shape, `reader.rs` reads it,
//! `check.rs` knows the meaning, `problem.rs` how a mistake is told. No file is opened here; `daemon/quota_files.rs` reads them.

mod check;
mod problem;
mod raw;
mod reader;
pub mod units;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use problem::{Problem, Problems};
use units::{Bytes, Memory};

/// Whether rules bind or are only shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    #[default]
    Enforce,
    Observe,
}

/// What a client does when no daemon answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Absent {
    #[default]
    Refuse,
    Run,
}

/// What becomes of a GPU process that matches no tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unknown {
    /// It belongs to the tenant `default`.
    #[default]
    Default,
    /// Its attach is refused.
    Refuse,
}

/// Whether more memory may be guaranteed than a device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overcommit {
    #[default]
    Refuse,
    Allow,
}

/// Who shares one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    Tenant,
    User,
}

/// `[node]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRules {
    pub mode: Mode,
    pub unknown: Unknown,
    pub absent: Absent,
    /// Kept back on every device; `None`: nothing.
    pub reserve: Option<Memory>,
    pub overcommit: Overcommit,
}

impl Default for NodeRules {
    fn default() -> NodeRules {
        NodeRules {
            mode: Mode::default(),
            unknown: Unknown::default(),
            absent: Absent::default(),
            reserve: units::Ratio::from_millionths(20_000).map(Memory::Part),
            overcommit: Overcommit::default(),
        }
    }
}

impl NodeRules {
    /// Bytes kept back on a device of `total` bytes.
    pub fn reserve_on(&self, total: Bytes) -> Bytes {
        self.reserve
            .and_then(|reserve| reserve.on_device(total))
            .unwrap_or_default()
    }
}

/// Memory of one account on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRule {
    /// Never lent to others; `None`: nothing is guaranteed.
    pub guaranteed: Option<Memory>,
    /// The cap.
    pub cap: Memory,
}

impl MemoryRule {
    /// Everything the device has, nothing of it guaranteed.
    pub const ALL: MemoryRule = MemoryRule {
        guaranteed: None,
        cap: Memory::All,
    };

    /// One value is both cap and guarantee; `all` guarantees nothing.
    pub fn one(value: Memory) -> MemoryRule {
        MemoryRule {
            guaranteed: (value != Memory::All).then_some(value),
            cap: value,
        }
    }
}

/// What holds for a tenant; the keys of `[defaults]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    pub per: Per,
    pub memory: MemoryRule,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            per: Per::User,
            memory: MemoryRule::ALL,
        }
    }
}

/// One alternative of `match` that can hold: all its keys must.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Match {
    pub user: String,
}

/// `[tenants.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    pub matches: Vec<Match>,
    pub rules: Rules,
    /// Where its memory was written, for errors that need a device to be found.
    pub memory_at: Option<At>,
}

/// A place in a quota file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At {
    pub file: PathBuf,
    pub line: usize,
    pub column: usize,
}

/// The quota file, checked. The default is that of a node without one: memory `all`, everything shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    pub node: NodeRules,
    pub defaults: Rules,
    pub defaults_memory_at: Option<At>,
    pub tenants: BTreeMap<String, Tenant>,
    /// Keys that were understood and have no effect yet; said once at start, never silently dropped.
    pub not_in_force: Vec<Problem>,
}

/// Name of the tenant of those who match no other.
pub const DEFAULT_TENANT: &str = "default";

/// A quota file as read.
#[derive(Debug, Clone)]
pub struct Source {
    pub path: PathBuf,
    pub text: String,
}

impl Config {
    /// Parses and checks `sources` in order; a later file's `[node]` and `[defaults]` keys go before an earlier one's.
    pub fn parse(sources: &[Source]) -> Result<Config, Problems> {
        check::parse(sources)
    }

    /// Values that no device of `total` bytes can hold: one mistake per value.
    pub fn above_device(&self, device: u32, total: Bytes) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut look = |rules: &Rules, at: &Option<At>| {
            let amounts = [Some(rules.memory.cap), rules.memory.guaranteed];
            let largest = amounts
                .into_iter()
                .flatten()
                .find(|amount| amount.on_device(total).is_none());
            if let (Some(Memory::Bytes(asked)), Some(at)) = (largest, at) {
                problems.push(Problem {
                    file: at.file.clone(),
                    line: at.line,
                    column: at.column,
                    message: format!(
                        "{} bytes are more than device {device} has ({} bytes): write at most that, a percentage, or \"all\"",
                        asked.0, total.0
                    ),
                    allowed: Vec::new(),
                    suggestion: None,
                });
            }
        };
        look(&self.defaults, &self.defaults_memory_at);
        for tenant in self.tenants.values() {
            look(&tenant.rules, &tenant.memory_at);
        }
        problems
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
mod tests;
