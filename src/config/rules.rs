//! What holds for one tenant: the keys that `[defaults]` and `[tenants.NAME]` share. Whom and when they hold for is in
//! `config/tenant.rs`.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize, Serializer};

use super::units::{Memory, Ratio};

/// Who shares one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    Tenant,
    User,
    Job,
    Container,
}

/// Memory of one account on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRule {
    /// Never lent to others; `None`: nothing is guaranteed.
    pub guaranteed: Option<Memory>,
    /// The cap; `burst` in the quota file.
    #[serde(rename = "burst")]
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

/// Who goes first; the greater one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    Low,
    #[default]
    Normal,
    High,
}

impl Priority {
    /// As written on the command line and in the quota file.
    pub fn as_str(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Normal => "normal",
            Priority::High => "high",
        }
    }
}

/// One step of what happens at the cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFull {
    /// Idle memory of the tenant's pools goes back to the device.
    Trim,
    /// The call waits at most so long for room.
    Wait(Duration),
    /// The allocation lies in managed memory.
    SpillManaged,
    /// The allocation lies in pinned host memory.
    SpillPinned,
    /// Idle clients of the tenant go to host memory.
    SwapIdle,
    /// The allocation is refused.
    Oom,
}

impl fmt::Display for OnFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OnFull::Trim => f.write_str("trim"),
            OnFull::Wait(time) => write!(f, "wait:{}", humantime::format_duration(*time)),
            OnFull::SpillManaged => f.write_str("spill:managed"),
            OnFull::SpillPinned => f.write_str("spill:pinned"),
            OnFull::SwapIdle => f.write_str("swap:idle"),
            OnFull::Oom => f.write_str("oom"),
        }
    }
}

impl Serialize for OnFull {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What becomes of memory a program frees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pool {
    /// Kept for the next allocation, with the order the driver gives.
    Preserve,
    /// Kept, and waiting that cannot be noticed is left out.
    Elide,
    /// Given back to the driver at once. The default until the other ways have been seen on a GPU.
    #[default]
    Off,
}

impl Pool {
    pub const WORDS: [(&'static str, Pool); 3] = [
        ("preserve", Pool::Preserve),
        ("elide", Pool::Elide),
        ("off", Pool::Off),
    ];

    /// The one of that name.
    pub fn named(name: &str) -> Option<Pool> {
        let found = Pool::WORDS.iter().find(|(word, _)| *word == name);
        found.map(|(_, pool)| *pool)
    }
}

/// What a kept allocation contains when it is given out again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PoolContents {
    #[default]
    Keep,
    Zero,
    Poison,
}

/// What happens to a tenant that was idle for `idle_after`. Never a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnIdle {
    #[default]
    Event,
    Pause,
    Swap,
}

/// What holds for a tenant; the keys of `[defaults]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rules {
    pub per: Per,
    pub memory: MemoryRule,
    /// Guaranteed part of the compute; `None`: an equal one.
    pub share: Option<Ratio>,
    /// Hard ceiling of compute; `None`: none.
    pub limit: Option<Ratio>,
    pub priority: Priority,
    /// In order; what follows the last is a refusal.
    pub on_full: Vec<OnFull>,
    pub pool: Pool,
    pub pool_contents: PoolContents,
    /// Most pinned host memory.
    pub host_memory: Memory,
    #[serde(serialize_with = "told")]
    pub idle_after: Option<Duration>,
    pub on_idle: OnIdle,
    /// Most latency others may add.
    #[serde(serialize_with = "told")]
    pub latency_guard: Option<Duration>,
    /// Others may get nothing while this one is busy.
    pub starve: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            per: Per::User,
            memory: MemoryRule::ALL,
            share: None,
            limit: None,
            priority: Priority::default(),
            on_full: vec![OnFull::Oom],
            pool: Pool::default(),
            pool_contents: PoolContents::default(),
            host_memory: Memory::All,
            idle_after: None,
            on_idle: OnIdle::default(),
            latency_guard: None,
            starve: false,
        }
    }
}

/// A guaranteed part of the compute above the ceiling of it is a mistake, wherever the two come from.
pub fn share_above_limit(share: Option<Ratio>, limit: Option<Ratio>) -> Result<(), String> {
    match (share, limit) {
        (Some(share), Some(limit)) if share > limit => Err(format!(
            "`share` ({share}) is more than `limit` ({limit}): write at most as much"
        )),
        _ => Ok(()),
    }
}

/// A duration as people read it.
fn told<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => serializer.collect_str(&humantime::format_duration(*duration)),
        None => serializer.serialize_none(),
    }
}
