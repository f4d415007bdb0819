//! `stint host`: puts the shim first in the loader cache of this host, so that every login, cron job and service finds it
//! where it looks for the driver, and programs without CUDA never meet it. `docs/host-mode.md` shows what changes on disk.
//!
//! The walk: `host/wanted.rs` (which copies, made by `host/tailor.rs` after `host/probe.rs` agreed), `host/site.rs` (puts
//! them in place), `host/boot.rs` (before the daemon has started), `host/report.rs` (how it stands).

mod boot;
mod probe;
mod report;
mod site;
mod tailor;
mod wanted;

use std::io;
use std::path::{Path, PathBuf};

use clap::Subcommand;

use crate::artefacts::Artefacts;
use crate::exit::{Exit, Failure};
use crate::output;

use report::{Report, State};
use site::Site;
use wanted::{Shipped, Wanted};

/// The schema of `--json`.
const SCHEMA: &str = "stint.host/v1";

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Put Stint in front of the driver for every program of this host that starts from now on
    Enable {
        #[command(flatten)]
        root: Root,
        /// Only where host mode is on: after a change of the driver or of Stint
        #[arg(long)]
        if_enabled: bool,
    },
    /// Take it away again, to the last byte
    Disable {
        #[command(flatten)]
        root: Root,
    },
    /// Show whether it is on and fits the driver; exit 1 if it does not
    Status {
        #[command(flatten)]
        root: Root,
        /// Print `stint.host/v1`
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
pub struct Root {
    /// Work on the system below DIR, an image for example, with its own loader
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

/// Why host mode cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("{path}: {error}", path = path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Probe(#[from] probe::ProbeError),
    #[error("this system has no 64-bit {soname}: install the GPU's driver first")]
    NoDriver { soname: &'static str },
    #[error("{path} is no driver's library: it exports no {proof}", path = path.display())]
    Driver { path: PathBuf, proof: &'static str },
    #[error("a copy of Stint's library cannot be made: {0}")]
    Tailor(#[from] tailor::TailorError),
    #[error("{path} cannot be loaded: {why}", path = path.display())]
    Load { path: PathBuf, why: String },
    #[error("ldconfig failed: {why}")]
    Ldconfig { why: String },
    #[error(
        "programs would still get {} for {name}: its directory is listed before /etc/ld.so.conf.d/000-stint.conf, \
         see /etc/ld.so.conf and /etc/ld.so.conf.d",
        first.as_ref().map_or("nothing".into(), |path| path.display().to_string())
    )]
    NotFirst {
        name: &'static str,
        first: Option<PathBuf>,
    },
}

impl HostError {
    fn io(path: &Path, error: io::Error) -> HostError {
        HostError::Io {
            path: path.into(),
            error,
        }
    }

    /// As the end of `verb`.
    fn failure(&self, verb: &str) -> Failure {
        let denied =
            matches!(self, HostError::Io { error, .. } if error.kind() == io::ErrorKind::PermissionDenied);
        let exit = if denied { Exit::NOT_PERMITTED } else { Exit::FAILED };
        Failure::new(exit, format!("host {verb}: {self}"))
    }
}

/// Runs the verb.
pub fn main(verb: Verb) -> Result<Exit, Failure> {
    match verb {
        Verb::Enable { root, if_enabled } => enable(&root, if_enabled),
        Verb::Disable { root } => disable(&root),
        Verb::Status { root, json } => status(&root, json),
    }
}

fn enable(root: &Root, if_enabled: bool) -> Result<Exit, Failure> {
    let failed = |error: HostError| error.failure("enable");
    needs_root("enable")?;
    let shipped = shipped()?;
    root.enter("enable")?;
    if if_enabled && site::directory_in_force().is_none() {
        return Ok(Exit::OK);
    }
    let site = Site::hold().map_err(failed)?;
    let wanted = Wanted::here(&shipped).map_err(unchanged("enable"))?;
    // Nothing to do is nothing done: a trigger that watches the loader's cache must not call itself.
    if Report::of(Ok(&wanted)).state != State::On {
        site.install(&wanted).map_err(unchanged("enable"))?;
    }
    boot::provide(root.root.is_none()).map_err(failed)?;
    let report = Report::of(Ok(&wanted));
    output::line(&report.text())?;
    if root.root.is_none() && !boot::daemon_answers() && boot::now() == Some(boot::Absent::Refuse) {
        output::line("  no daemon answers: programs that use CUDA are refused until `stint daemon` runs")?;
    }
    Ok(exit(&report))
}

fn disable(root: &Root) -> Result<Exit, Failure> {
    let failed = |error: HostError| error.failure("disable");
    needs_root("disable")?;
    root.enter("disable")?;
    let remove = || -> Result<(), HostError> {
        let site = Site::hold()?;
        if site::is_anything_there() || boot::is_provided() {
            site.take_out()?;
            boot::withdraw(root.root.is_none())?;
            site.sweep()?;
        }
        Ok(())
    };
    remove().map_err(failed)?;
    output::line("host mode is off: programs that start from now on find the driver itself")?;
    Ok(Exit::OK)
}

fn status(root: &Root, json: bool) -> Result<Exit, Failure> {
    let shipped = shipped()?;
    root.enter("status")?;
    let wanted = Wanted::here(&shipped);
    let report = Report::of(wanted.as_ref());
    if json {
        output::json(&report)?;
    } else {
        output::line(&report.text())?;
    }
    Ok(exit(&report))
}

/// For `doctor`: whether host mode is as it should be, on or off, and what there is to say.
pub fn standing() -> Result<(bool, String), Failure> {
    let report = Report::of(Wanted::here(&shipped()?).as_ref());
    let text = report.text();
    let words: Vec<&str> = text.lines().map(str::trim).collect();
    Ok((report.state != State::Stale, words.join("; ")))
}

fn exit(report: &Report) -> Exit {
    match report.state {
        State::Stale => Exit::FAILED,
        State::On | State::Off => Exit::OK,
    }
}

/// The error of a command that has put everything back.
fn unchanged(verb: &'static str) -> impl Fn(HostError) -> Failure {
    move |error| {
        let failure = error.failure(verb);
        Failure {
            message: format!("{}; nothing was changed", failure.message),
            ..failure
        }
    }
}

fn needs_root(verb: &str) -> Result<(), Failure> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(Failure::not_permitted(format!(
        "host {verb} needs root: it changes which library every program loads"
    )))
}

/// Our libraries, read before another root is entered.
fn shipped() -> Result<Shipped, Failure> {
    let artefacts = Artefacts::find()?;
    wanted::read(&artefacts.shim(), &artefacts.nvml_twin()).map_err(Failure::failed)
}

impl Root {
    /// Makes the directory the root of this process: from here on all paths are the system's own.
    fn enter(&self, verb: &str) -> Result<(), Failure> {
        let Some(root) = &self.root else {
            return Ok(());
        };
        let enter = || -> io::Result<()> {
            rustix::process::chroot(root)?;
            std::env::set_current_dir("/")
        };
        enter().map_err(|error| HostError::io(root, error).failure(verb))
    }
}
