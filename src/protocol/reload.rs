//! `stint.reload/v1`: what `stint reload` changed. Answered by `src/daemon/reload.rs`, printed by `src/reload.rs`.

use serde::{Deserialize, Serialize};

/// Value of `schema`.
pub const SCHEMA: &str = "stint.reload/v1";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    pub schema: String,
    /// Keys that have another value, one line each: `tenants.a.memory.burst: 8GiB → 6GiB`.
    pub changed: Vec<String>,
    /// Open accounts that have other caps now.
    pub accounts: Vec<String>,
}
