//! What the machine has: programs on the search path, packages that can be installed.

use std::{os::unix::fs::PermissionsExt, path::PathBuf, process::Stdio, sync::OnceLock};

use anyhow::{Result, bail};

use crate::{inner, steps::Steps};

/// Whether `program` is on the search path.
pub fn has(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else {
        return false;
    };
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .any(|file| executable(&file))
}

/// Whether `file` is a program that somebody may run.
fn executable(file: &PathBuf) -> bool {
    std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Whether xtask runs as root.
pub fn is_root() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        let line = status
            .lines()
            .find(|line| line.starts_with("Uid:"))
            .unwrap_or_default();
        line.split_whitespace().nth(2) == Some("0")
    })
}

/// Whether `program` is there now; as root on a Debian-like system its `package` is installed first.
pub fn provide(steps: &mut Steps, package: &str, program: &str) -> Result<(), String> {
    if has(program) {
        return Ok(());
    }
    install(steps, package)?;
    if has(program) {
        Ok(())
    } else {
        Err(format!("package {package} brought no {program}"))
    }
}

/// Installs `package` with apt as root, else says what to do.
pub fn install(steps: &mut Steps, package: &str) -> Result<(), String> {
    if !is_root() {
        return Err(format!(
            "needs the package {package} (run as root, or: apt install {package})"
        ));
    }
    if !has("apt-get") {
        return Err(format!(
            "needs the package {package}, and there is no apt-get here"
        ));
    }
    static UPDATED: OnceLock<bool> = OnceLock::new();
    let apt = |words: &[&str]| {
        let mut command = inner::command("apt-get");
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["-qq", "-o", "DPkg::Lock::Timeout=120"])
            .args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        inner::run(&mut command)
    };
    steps
        .step(&format!("install {package}"), |_| {
            UPDATED.get_or_init(|| apt(&["update"]).is_ok());
            apt(&["install", "-y", "--no-install-recommends", package])
        })
        .map_err(|error| {
            format!(
                "the package {package} could not be installed: {:#}",
                error.root_cause()
            )
        })
}

/// Like `provide` for what nothing works without.
pub fn need(steps: &mut Steps, package: &str, program: &str, purpose: &str) -> Result<()> {
    match provide(steps, package, program) {
        Ok(()) => Ok(()),
        Err(why) => bail!("{program}, {purpose}, {why}"),
    }
}
