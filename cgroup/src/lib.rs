//! Control groups as identity: which group, container, batch job and unit a process is in, told by the kernel and by nobody
//! else. `membership.rs` reads what a process is in, `mounts.rs` where that lies in the file system, `container.rs`, `job.rs`
//! and `unit.rs` say what a path means, `identity.rs` puts it together, `watch.rs` tells when a group is removed.
//!
//! Works on all three layouts: unified (v2), legacy (v1) and the mixture of both. Why not on cgroups-rs:
//! `docs/decisions/0007-cgroups-are-read-by-own-code.md`.

#![forbid(unsafe_code)]

mod container;
#[cfg(test)]
mod fuzzed;
mod identity;
mod job;
mod membership;
mod mounts;
#[cfg(test)]
#[path = "../../tests/harness/skip.rs"]
mod skip;
mod unit;
mod watch;

pub use container::{Container, Kind, container};
pub use identity::{Found, Identity};
pub use job::{Job, job};
pub use membership::{Cgroup, Hierarchy, Membership};
pub use mounts::{Layout, Mounts};
pub use unit::service;
pub use watch::Watch;

/// The components of a path that say anything.
fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

/// The first `depth` components of `path`, as a path.
fn ancestor(path: &str, depth: usize) -> String {
    let parts: Vec<&str> = components(path).take(depth).collect();
    format!("/{}", parts.join("/"))
}
