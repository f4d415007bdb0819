//! `stint reap`: ends processes that hold a GPU and belong to nobody alive. The daemon says which those are
//! (`src/admission/orphan.rs`); the kernel says whether the caller may end them. Each is held by a pidfd from before it is
//! compared with what the daemon meant, so that no signal ever reaches a later process of the same number.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use serde::Serialize;

use crate::admission::process::{self, Identity};
use crate::exit::{Exit, Failure};
use crate::protocol::node::{self, Node};
use crate::status::view::{self, Table};
use crate::{output, status};

/// Value of `schema`.
const SCHEMA: &str = "stint.reap/v1";
/// Time between the polite signal and the other, and after that until a process counts as one that cannot be ended.
const GRACE: Duration = Duration::from_secs(5);

/// An orphan holds a GPU while what started it has ended: its session's leader, the leader of its process group, or the
/// `stint run` it came from. Services, containers and Slurm jobs that live answer for their processes. One that ignores
/// SIGHUP (nohup) is listed and left alone.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Each gets SIGTERM, and SIGKILL five seconds later if it is still there. Users may end their own, root any."
)]
pub struct Args {
    /// List them, end nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Schema `stint.reap/v1`
    #[arg(long)]
    pub json: bool,
}

/// What became of an orphan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    /// It would be ended.
    Found,
    Spared,
    /// By SIGTERM, or by itself meanwhile.
    Ended,
    Killed,
    /// The caller may not end it.
    Refused,
    /// It is still there: stuck in the kernel.
    Stays,
}

#[derive(Debug, Clone, Serialize)]
struct Entry {
    pid: u32,
    user: Option<String>,
    command: Option<String>,
    /// Indices of the devices it holds.
    devices: Vec<u32>,
    used_bytes: Option<u64>,
    /// When the daemon first saw it.
    since: String,
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    spared: Option<String>,
    outcome: Outcome,
    #[serde(skip)]
    start_time: u64,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    schema: &'static str,
    dry_run: bool,
    orphans: &'a [Entry],
}

/// Runs the verb. Exit 77: one of them is not the caller's to end; 1: one could not be ended.
pub fn main(args: Args, run_dir: Option<&Path>) -> Result<Exit, Failure> {
    let mut orphans = entries(&status::connect(run_dir)?.status()?);
    if !args.dry_run {
        end(&mut orphans);
    }
    if args.json {
        output::json(&Report {
            schema: SCHEMA,
            dry_run: args.dry_run,
            orphans: &orphans,
        })?;
    } else if orphans.is_empty() {
        output::line("no process holds a GPU and belongs to nobody")?;
    } else {
        output::line(table(&orphans, SystemTime::now()).text().trim_end())?;
    }
    let any = |outcome| orphans.iter().find(|one| one.outcome == outcome);
    if let Some(one) = any(Outcome::Refused) {
        let user = one.user.as_deref().unwrap_or("another user");
        return Err(Failure::not_permitted(format!(
            "pid {} belongs to {user}: only that user and root may end it",
            one.pid
        )));
    }
    match any(Outcome::Stays) {
        Some(one) => Err(Failure::failed(format!(
            "pid {} is still there after SIGKILL: it is stuck in the kernel, its driver call has not returned",
            one.pid
        ))),
        None => Ok(Exit::OK),
    }
}

/// The orphans of a node, each once.
fn entries(node: &Node) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    let mut put = |pid, orphan: &node::Orphan, more: &dyn Fn(&mut Entry)| {
        let same = |one: &Entry| (one.pid, one.start_time) == (pid, orphan.start_time);
        let place = found.iter().position(same).unwrap_or_else(|| {
            found.push(Entry {
                pid,
                user: None,
                command: None,
                devices: Vec::new(),
                used_bytes: Some(0),
                since: String::new(),
                why: orphan.why.clone(),
                spared: orphan.spared.clone(),
                outcome: orphan.spared.as_ref().map_or(Outcome::Found, |_| Outcome::Spared),
                start_time: orphan.start_time,
            });
            found.len() - 1
        });
        more(&mut found[place]);
    };
    for client in node.tenants.iter().flat_map(|tenant| &tenant.clients) {
        if let Some(orphan) = &client.orphan {
            put(client.pid, orphan, &|entry| {
                entry.user = Some(client.user.clone());
                entry.command = Some(client.command.clone());
                entry
                    .devices
                    .extend(client.devices.iter().map(|device| device.index));
                entry.used_bytes = entry.used_bytes.map(|sum| sum.saturating_add(client.used_bytes));
                entry.since = client.started_at.clone();
            });
        }
    }
    for process in &node.unattached {
        if let Some(orphan) = &process.orphan {
            put(process.pid, orphan, &|entry| {
                entry.user = process.user.clone();
                entry.command = process.command.clone();
                entry.devices.push(process.device);
                let sum = entry.used_bytes.zip(process.used_bytes);
                entry.used_bytes = sum.map(|(sum, more)| sum.saturating_add(more));
                entry.since = process.since.clone();
            });
        }
    }
    found
}

/// Ends them, all at once: SIGTERM, and SIGKILL to those that stay.
fn end(orphans: &mut [Entry]) {
    let mut held: Vec<(usize, OwnedFd)> = Vec::new();
    for (place, one) in orphans.iter_mut().enumerate() {
        if one.outcome != Outcome::Found {
            continue;
        }
        let identity = Identity {
            pid: one.pid,
            start_time: one.start_time,
        };
        one.outcome = Outcome::Ended;
        if let Some(pidfd) = process::open(identity) {
            match pidfd_send_signal(&pidfd, Signal::TERM) {
                Err(Errno::PERM) => one.outcome = Outcome::Refused,
                _ => held.push((place, pidfd)),
            }
        }
    }
    for (signal, outcome) in [(Some(Signal::KILL), Outcome::Killed), (None, Outcome::Stays)] {
        wait(&mut held);
        for (place, pidfd) in &held {
            orphans[*place].outcome = outcome;
            if let Some(signal) = signal {
                let _ = pidfd_send_signal(pidfd, signal); // it ended just now: as good
            }
        }
    }
}

/// Waits until all have ended, at most [`GRACE`]; keeps those that have not.
fn wait(held: &mut Vec<(usize, OwnedFd)>) {
    let end = Instant::now() + GRACE;
    loop {
        held.retain(|(_, pidfd)| !process::ended(pidfd.as_fd()));
        let left = end.saturating_duration_since(Instant::now());
        if held.is_empty() || left.is_zero() {
            return;
        }
        let mut fds: Vec<PollFd<'_>> = held
            .iter()
            .map(|(_, pidfd)| PollFd::new(pidfd, PollFlags::IN))
            .collect();
        let longest = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let _ = poll(&mut fds, Some(&longest)); // a signal: looked at again
    }
}

fn table(orphans: &[Entry], now: SystemTime) -> Table {
    let mut table = Table::new([
        " PID", "USER", "COMMAND", "DEVICE", " USED", " AGE", "OUTCOME", "WHY",
    ]);
    for one in orphans {
        let devices: Vec<String> = one.devices.iter().map(u32::to_string).collect();
        let outcome = serde_json::to_value(one.outcome).ok();
        let outcome = outcome
            .as_ref()
            .and_then(|word| word.as_str())
            .unwrap_or(view::UNKNOWN);
        let why = one
            .spared
            .as_ref()
            .map_or_else(|| one.why.clone(), |spared| format!("{}; {spared}", one.why));
        table.rows.push(vec![
            one.pid.to_string(),
            one.user.clone().unwrap_or(view::UNKNOWN.into()),
            one.command.clone().unwrap_or(view::UNKNOWN.into()),
            devices.join(","),
            view::bytes(one.used_bytes),
            view::age(&one.since, now).unwrap_or(view::UNKNOWN.into()),
            outcome.into(),
            why,
        ]);
    }
    table
}
