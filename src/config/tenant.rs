//! `[tenants.NAME]`: whom a tenant's rules hold for, on which devices, and until when (`config/when.rs`).

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use jiff::tz::TimeZone;
use serde::{Serialize, Serializer};

use super::At;
use super::rules::Rules;
use super::when::{Hours, Until};

/// One alternative of `match`: all keys given must hold. At least one is.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Match {
    /// Name or number of a user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Name or number of a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Glob over the path below the cgroup root, beginning with `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Glob over the job's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slurm_job: Option<String>,
    /// Globs by what a container is known by ([`CONTAINER_KEYS`]).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub container: BTreeMap<String, String>,
}

/// What `container = { … }` of a match may name.
pub const CONTAINER_KEYS: [&str; 6] = ["id", "image", "label", "name", "namespace", "pod"];

/// A device as a tenant's `gpus` name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gpu {
    /// NVML's index.
    Index(u32),
    /// A UUID, or its beginning: `GPU-…` or `MIG-…`.
    Uuid(String),
}

impl Gpu {
    /// Whether this names the device of that index and UUID.
    pub fn is(&self, index: u32, uuid: &str) -> bool {
        match self {
            Gpu::Index(asked) => *asked == index,
            Gpu::Uuid(asked) => uuid
                .get(..asked.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(asked)),
        }
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gpu::Index(index) => index.fmt(f),
            Gpu::Uuid(uuid) => uuid.fmt(f),
        }
    }
}

impl Serialize for Gpu {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// `[tenants.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tenant {
    #[serde(rename = "match")]
    pub matches: Vec<Match>,
    /// The devices it may use; `None`: all.
    pub gpus: Option<Vec<Gpu>>,
    pub until: Option<Until>,
    pub hours: Option<Hours>,
    #[serde(flatten)]
    pub rules: Rules,
    /// Where it begins.
    #[serde(skip)]
    pub at: At,
    /// Where its memory was written, for errors that need a device to be found.
    #[serde(skip)]
    pub memory_at: Option<At>,
}

impl Tenant {
    /// Whether the stanza holds at `now`: not past its `until`, within its `hours`.
    pub fn in_force(&self, now: SystemTime, zone: &TimeZone) -> bool {
        !self.ended(now, zone) && self.hours.is_none_or(|hours| hours.contain(now, zone))
    }

    /// Whether `until` has passed.
    pub fn ended(&self, now: SystemTime, zone: &TimeZone) -> bool {
        self.until.is_some_and(|until| until.end(zone) <= now)
    }
}
