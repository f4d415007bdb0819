//! `[node]`: what holds for the whole node. What holds for one tenant is in `config/rules.rs`.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::units::{Bytes, Memory, Ratio};

/// Whether rules bind or are only shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    #[default]
    Enforce,
    Observe,
}

/// What a client does when no daemon answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Absent {
    #[default]
    Refuse,
    Run,
}

/// What becomes of a GPU process that matches no tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unknown {
    /// It belongs to the tenant `default`.
    #[default]
    Default,
    /// It runs without a cap and is listed among those that are nobody's clients.
    Report,
    /// Its attach is refused.
    Refuse,
}

/// Whether more memory may be guaranteed than a device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Overcommit {
    #[default]
    Refuse,
    Allow,
}

/// What happens when ledger and device disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Drift {
    #[default]
    Report,
    Throttle,
    Freeze,
    Refuse,
}

/// Whether what the driver needs for a context counts against the cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Context {
    #[default]
    Inside,
    Outside,
}

/// `[node]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeRules {
    pub mode: Mode,
    pub unknown: Unknown,
    pub absent: Absent,
    /// Kept back on every device; `None`: nothing.
    pub reserve: Option<Memory>,
    pub drift: Drift,
    /// Where dashboard, metrics and the HTTP interface are served; `None`: nowhere.
    pub http: Option<SocketAddr>,
    /// Holds the word that allows writes over HTTP; `None`: none are allowed.
    pub token_file: Option<PathBuf>,
    pub overcommit: Overcommit,
    pub context: Context,
}

impl Default for NodeRules {
    fn default() -> NodeRules {
        NodeRules {
            mode: Mode::default(),
            unknown: Unknown::default(),
            absent: Absent::default(),
            reserve: Ratio::from_millionths(20_000).map(Memory::Part),
            drift: Drift::default(),
            http: Some(SocketAddr::from(([127, 0, 0, 1], 9477))),
            token_file: None,
            overcommit: Overcommit::default(),
            context: Context::default(),
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
