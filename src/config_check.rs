//! `stint config check`: every mistake of quota files, before a daemon reads them. Reads them as the daemon does
//! (`daemon/quota_files.rs`), talks to nobody.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::SystemTime;

use serde::Serialize;

use crate::config::units::Bytes;
use crate::config::{Capacity, Config, Match, Problem, Problems, Source};
use crate::daemon::{QuotaFiles, checked};
use crate::exit::{Exit, Failure};
use crate::output;

#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Check quota files and tell every mistake; exit 0 where there is none, else 78
    Check(Args),
}

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files and directories of drop-ins, read in this order as one [default: /etc/stint/stint.toml and
    /// /etc/stint/stint.d/*.toml, where they exist]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Check the amounts against devices of this memory, for example `141GiB:8` or `80GiB,40GiB`
    #[arg(long, value_name = "SIZE[:N],…")]
    pub devices: Option<Devices>,
    #[arg(long)]
    pub json: bool,
}

/// Devices by their memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Devices(Vec<Capacity>);

/// Most devices of a node.
const MOST_DEVICES: usize = 64;

impl FromStr for Devices {
    type Err = String;

    fn from_str(text: &str) -> Result<Devices, String> {
        let mut devices = Vec::new();
        for part in text.split(',') {
            let (size, count) = part.split_once(':').unwrap_or((part, "1"));
            let total: Bytes = size.parse().map_err(|error| format!("{error}"))?;
            let count = count
                .parse::<usize>()
                .ok()
                .filter(|count| (1..=MOST_DEVICES).contains(count));
            let count = count
                .ok_or_else(|| format!("`{part}`: write how many after the `:`, 1 to {MOST_DEVICES}"))?;
            for _ in 0..count {
                let index = devices.len() as u32;
                devices.push(Capacity {
                    index,
                    uuid: String::new(),
                    total,
                });
            }
        }
        if devices.len() > MOST_DEVICES {
            return Err(format!("{} devices: at most {MOST_DEVICES}", devices.len()));
        }
        Ok(Devices(devices))
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    errors: &'a [Problem],
}

/// Runs `config check`. Exit 78 with every mistake: on stderr, or on stdout as JSON.
pub fn main(verb: Verb) -> Result<Exit, Failure> {
    let Verb::Check(args) = verb;
    let files = if args.files.is_empty() {
        QuotaFiles::installed()
    } else {
        QuotaFiles::named(args.files)
    };
    let checked = files.read().and_then(|sources| {
        let config = checked(&sources)?;
        let devices = args.devices.map(|Devices(devices)| devices).unwrap_or_default();
        let problems = config.beyond(&devices, SystemTime::now());
        if problems.is_empty() {
            Ok((sources, config))
        } else {
            Err(Problems(problems))
        }
    });
    if args.json {
        let errors = checked.as_ref().err().map_or(&[][..], |problems| &problems.0);
        let ok = checked.is_ok();
        output::json(&Report { ok, errors })?;
        return Ok(if ok { Exit::OK } else { Exit::BAD_CONFIG });
    }
    let (sources, config) = checked.map_err(Failure::bad_config)?;
    tell(&config)?;
    output::line(&what_was_read(&files, &sources))?;
    Ok(Exit::OK)
}

/// What is right, and what of it does nothing yet or reaches nobody.
fn tell(config: &Config) -> Result<(), Failure> {
    for key in &config.not_in_force {
        output::line(&key.to_string())?;
    }
    let now = SystemTime::now();
    for (name, tenant) in &config.tenants {
        if tenant.ended(now, &config.zone.0) {
            output::line(&format!(
                "{}: [tenants.{name}] is past its `until` and holds no more",
                tenant.at
            ))?;
        }
        for whom in tenant.matches.iter().flat_map(unknown) {
            output::line(&format!(
                "{}: [tenants.{name}] matches {whom}, whom this machine does not know",
                tenant.at
            ))?;
        }
    }
    Ok(())
}

/// Users and groups of a match that this machine has no name for. Not a mistake: one file may serve several machines, and a
/// user may be made later.
fn unknown(one: &Match) -> Vec<String> {
    let user = |name: &String| matches!(nix::unistd::User::from_name(name), Ok(None));
    let group = |name: &String| matches!(nix::unistd::Group::from_name(name), Ok(None));
    // A number needs no name.
    let is_name = |name: &&String| name.parse::<u32>().is_err();
    let users = one.user.iter().filter(is_name).filter(|name| user(name));
    let groups = one.group.iter().filter(is_name).filter(|name| group(name));
    users
        .map(|name| format!("user `{name}`"))
        .chain(groups.map(|name| format!("group `{name}`")))
        .collect()
}

/// That nothing is wrong, and with what: no file at all is no mistake either.
fn what_was_read(files: &QuotaFiles, sources: &[Source]) -> String {
    let shown = |path: &PathBuf| match path.extension().is_some_and(|end| end == "toml") {
        true => path.display().to_string(),
        false => format!("{}/*.toml", path.display()),
    };
    if sources.is_empty() {
        let looked: Vec<String> = files.paths().iter().map(shown).collect();
        return format!(
            "no mistakes: there is no quota file ({}); without one nothing is capped",
            looked.join(", ")
        );
    }
    let read: Vec<String> = sources
        .iter()
        .map(|source| source.path.display().to_string())
        .collect();
    format!("no mistakes in {}", read.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_sizes_and_counts() {
        let devices = |text: &str| text.parse::<Devices>();
        let Devices(three) = devices("141GiB:2,80GiB").unwrap();
        let sizes: Vec<_> = three
            .iter()
            .map(|device| (device.index, device.total.0 >> 30))
            .collect();
        assert_eq!(sizes, [(0, 141), (1, 141), (2, 80)]);
        for wrong in ["", "8", "8GiB:0", "8GiB:x", "8GiB:65", "50%", "8GiB:64,8GiB"] {
            assert!(devices(wrong).is_err(), "{wrong}");
        }
    }
}
