//! `stint config check`: every mistake of quota files, before a daemon reads them. Reads them as the daemon does
//! (`daemon/quota_files.rs`), talks to nobody.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::SystemTime;

use serde::Serialize;

use crate::config::units::Bytes;
use crate::config::{Capacity, Config, NotInForce, Problem, Problems};
use crate::daemon::QuotaFiles;
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
    /// Keys that are right and have no effect yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_in_force: Vec<Later<'a>>,
}

#[derive(Serialize)]
struct Later<'a> {
    key: &'a str,
    stanza: &'a str,
    file: &'a std::path::Path,
    line: usize,
    column: usize,
}

impl<'a> Later<'a> {
    fn of(key: &'a NotInForce) -> Later<'a> {
        Later {
            key: key.key,
            stanza: &key.stanza,
            file: &key.at.file,
            line: key.at.line,
            column: key.at.column,
        }
    }
}

/// Runs `config check`. Exit 78 with every mistake: on stderr, or on stdout as JSON.
pub fn main(verb: Verb) -> Result<Exit, Failure> {
    let Verb::Check(args) = verb;
    let files = if args.files.is_empty() {
        QuotaFiles::installed()
    } else {
        QuotaFiles::named(args.files)
    };
    let checked = files.config().and_then(|config| {
        let devices = args.devices.map(|Devices(devices)| devices).unwrap_or_default();
        let problems = config.beyond(&devices, SystemTime::now());
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(Problems(problems))
        }
    });
    match checked {
        Ok(config) if args.json => {
            output::json(&Report {
                ok: true,
                errors: &[],
                not_in_force: config.not_in_force.iter().map(Later::of).collect(),
            })?;
            Ok(Exit::OK)
        }
        Ok(config) => tell(&config),
        Err(problems) if args.json => {
            output::json(&Report {
                ok: false,
                errors: &problems.0,
                not_in_force: Vec::new(),
            })?;
            Ok(Exit::BAD_CONFIG)
        }
        Err(problems) => Err(Failure::bad_config(problems)),
    }
}

/// What is right, and what of it does nothing yet.
fn tell(config: &Config) -> Result<Exit, Failure> {
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
    }
    output::line("no mistakes")?;
    Ok(Exit::OK)
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
