//! The packages on a system of their own: `packages/files.rs` what they bring and leave.

mod files;

use std::{path::PathBuf, sync::Mutex};

use crate::harness::{
    artefacts,
    rootfs::{self, Overlay},
    target,
};

/// The version most tests install.
const VERSION: &str = "1.0";

/// Where packages are seen from inside a system.
const PACKAGES: &str = "/packages";

/// The packages `stint` and `stint-sim` of `version`, made of the built artefacts.
#[track_caller]
fn make(version: &str) -> PathBuf {
    static MADE: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !made.iter().any(|one| one == version) {
        artefacts::directory();
        artefacts::xtask(&["dist", "--as-built", "--version", version]);
        made.push(version.to_owned());
    }
    target().join("dist/as-built")
}

/// The packages' paths inside a system.
fn paths(version: &str) -> String {
    format!("{PACKAGES}/stint_{version}_amd64.deb {PACKAGES}/stint-sim_{version}_amd64.deb")
}
