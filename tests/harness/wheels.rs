//! Packages of the Python index, pinned, downloaded once into the target directory.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

use super::{outcome::run, target};

/// One download at a time; later tests find the files.
static DOWNLOADING: Mutex<()> = Mutex::new(());

/// The unpacked wheel of `requirement` (`name==version`), without its dependencies. The error says why it is not to be had.
pub fn unpacked(requirement: &str) -> Result<PathBuf, String> {
    let _one_at_a_time = DOWNLOADING
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let home = cache().join("wheels").join(requirement);
    if home.is_dir() {
        return Ok(home);
    }
    let pip = pip()?;
    let work = cache().join(format!(".wheel.{}", std::process::id()));
    let _none_left_behind = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).map_err(|error| error.to_string())?;
    quiet(
        Command::new(&pip)
            .args([
                "download",
                "--quiet",
                "--no-deps",
                "--only-binary",
                ":all:",
                "--dest",
            ])
            .arg(&work)
            .arg(requirement),
    )?;
    let wheel = only_file(&work)?;
    let content = work.join("content");
    quiet(
        Command::new("python3")
            .args(["-m", "zipfile", "-e"])
            .arg(&wheel)
            .arg(&content),
    )?;
    fs::create_dir_all(cache().join("wheels")).map_err(|error| error.to_string())?;
    fs::rename(&content, &home).map_err(|error| error.to_string())?;
    fs::remove_dir_all(&work).map_err(|error| error.to_string())?;
    Ok(home)
}

/// A `pip` of our own: the system's Python may come without one.
fn pip() -> Result<PathBuf, String> {
    let home = cache().join("pip");
    let pip = home.join("bin/pip");
    if !pip.is_file() {
        quiet(Command::new("python3").args(["-m", "venv"]).arg(&home))
            .map_err(|why| format!("no virtual environment: {why}"))?;
    }
    Ok(pip)
}

/// Where downloads stay.
pub fn cache() -> PathBuf {
    target().join("clients-cache")
}

/// Runs to the end; the last line of stderr is the error.
fn quiet(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_os_string();
    if program == "python3" && Command::new("python3").arg("--version").output().is_err() {
        return Err("no python3 here".to_owned());
    }
    let outcome = run(command
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        .env_remove("PYTHONPATH"));
    if outcome.code == 0 {
        return Ok(());
    }
    let last = outcome
        .stderr
        .lines()
        .last()
        .or(outcome.stdout.lines().last())
        .unwrap_or("no reason given")
        .to_owned();
    Err(last)
}

/// The one file in `directory`.
fn only_file(directory: &Path) -> Result<PathBuf, String> {
    let mut files = fs::read_dir(directory).map_err(|error| error.to_string())?;
    match (files.next(), files.next()) {
        (Some(Ok(file)), None) => Ok(file.path()),
        _ => Err(format!("expected one file in {}", directory.display())),
    }
}
