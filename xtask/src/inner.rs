//! Commands that xtask starts, with an environment that is the user's and not `cargo run`'s.
//!
//! Cargo puts its own directories into `LD_LIBRARY_PATH` and describes xtask in `CARGO_*`; an inherited
//! `CUDARC_CUDA_VERSION` adds a second CUDA version to the build graph, an inherited preload or run directory would
//! attach a test to the machine's own node.

use std::{ffi::OsStr, process::Command};

use anyhow::{Context, Result, bail};

use crate::layout::Layout;

/// Variables that an inner command never sees; of `CARGO_*` those that configure Cargo itself are kept.
const REMOVED: [&str; 8] = [
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "CUDARC_CUDA_VERSION",
    "CUDA_VISIBLE_DEVICES",
    "STINT_RUN_DIR",
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
];
const KEPT: [&str; 8] = [
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CARGO_NET_OFFLINE",
    "CARGO_INCREMENTAL",
    "CARGO_TERM_COLOR",
    "CARGO_BUILD_JOBS",
    "CARGO_HTTP_CAINFO",
    "CARGO_ENCODED_RUSTFLAGS",
];

/// `program` with the cleaned environment.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let of_cargo = text.starts_with("CARGO")
            && !KEPT.contains(&&*text)
            && !text.starts_with("CARGO_REGISTRIES_")
            && !text.starts_with("CARGO_NET_");
        if of_cargo || REMOVED.contains(&&*text) {
            command.env_remove(&name);
        }
    }
    command
}

/// The Cargo that started xtask, in the repository's root.
pub fn cargo(layout: &Layout) -> Command {
    let mut command = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(&layout.root);
    command
}

/// Runs to the end; anything but success is an error that shows the command line.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs to the end without showing anything; on failure the last lines it wrote to stderr are the error.
pub fn quiet(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(12)..].join("\n");
        bail!("{} ended with {}\n{tail}", shown(command), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The command line as a person would type it.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
