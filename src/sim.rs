//! `stint sim`: the stand-in GPU node. The work is done by `stint-sim`, a program of its own; this file finds it, passes
//! everything on, and reads its truth for `load` and `demo`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::artefacts::Artefacts;
use crate::exit::{Exit, Failure};

#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Start the stand-in node; it stays until `stop`. `stint sim start --help` lists its options
    #[command(disable_help_flag = true)]
    Start(StartArgs),
    /// Its own truth per process: busy ns, bytes, high-water mark
    Status {
        /// Schema `stint.sim/v1`
        #[arg(long)]
        json: bool,
    },
    /// End it
    Stop,
}

/// Passed on to `stint-sim`, which checks the values.
#[derive(Debug, clap::Args)]
pub struct StartArgs {
    /// For example `--devices h200:2`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    pub options: Vec<OsString>,
}

/// Runs `stint sim VERB …` by becoming `stint-sim VERB …`: returns only if that fails.
pub fn main(verb: Verb, run_dir: Option<&Path>) -> Result<Exit, Failure> {
    let words: Vec<OsString> = match verb {
        Verb::Start(args) => [OsString::from("start")]
            .into_iter()
            .chain(args.options)
            .collect(),
        Verb::Status { json } => {
            let json = json.then(|| OsString::from("--json"));
            [OsString::from("status")].into_iter().chain(json).collect()
        }
        Verb::Stop => vec!["stop".into()],
    };
    let mut command = program(&Artefacts::find()?, run_dir);
    let error = command.args(words).exec();
    Err(Failure::failed(format!(
        "{} cannot be run: {error}",
        command.get_program().display()
    )))
}

/// The stand-in's truth (`stint.sim/v1`), as far as `load` and `demo` read it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Truth {
    pub elapsed_ns: u64,
    /// One second of device time takes this many host seconds.
    pub time_scale: u32,
    pub devices: Vec<TrueDevice>,
    pub processes: Vec<TrueProcess>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TrueDevice {
    pub index: u32,
    pub capacity_bytes: u64,
    pub used_bytes: u64,
}

/// One process on one device.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TrueProcess {
    pub pid: u32,
    pub device: u32,
    pub used_bytes: u64,
    pub high_water_bytes: u64,
    pub busy_ns: u64,
    pub launches: u64,
    /// Allocations of the process that came to the driver, on whatever device; in the row of its device 0.
    #[serde(default)]
    pub allocations: u64,
    pub exited: bool,
}

impl Truth {
    /// Reads it from the running node; `run_dir` as for `stint-sim`.
    pub fn read(artefacts: &Artefacts, run_dir: Option<&Path>) -> Result<Truth, Failure> {
        let mut command = program(artefacts, run_dir);
        command.args(["status", "--json"]).stdin(Stdio::null());
        let output = command.output().map_err(|error| {
            Failure::failed(format!(
                "{} cannot be run: {error}",
                command.get_program().display()
            ))
        })?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::failed(format!(
                "the stand-in's truth cannot be read: {}",
                why.trim()
            )));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| Failure::failed(format!("the stand-in's truth cannot be read: {error}")))
    }

    /// The rows of `pids`.
    pub fn of<'a>(&'a self, pids: &'a BTreeSet<u32>) -> impl Iterator<Item = &'a TrueProcess> {
        self.processes
            .iter()
            .filter(|process| pids.contains(&process.pid))
    }
}

/// `stint-sim` as a command without arguments, free of what `stint run` puts before its own command.
pub fn program(artefacts: &Artefacts, run_dir: Option<&Path>) -> Command {
    let mut command = Command::new(artefacts.sim_server());
    command.env_remove("LD_PRELOAD").env_remove("LD_LIBRARY_PATH");
    if let Some(dir) = run_dir {
        command.env("STINT_RUN_DIR", dir);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_is_read_with_fields_we_do_not_know() {
        let text = r#"{"schema":"stint.sim/v1","elapsed_ns":5,"time_scale":1,"late_stamps":0,
            "devices":[{"index":0,"capacity_bytes":9,"used_bytes":3,"high_water_bytes":4,"busy_ns":1,"switch_ns":0}],
            "processes":[{"pid":7,"device":0,"used_bytes":3,"high_water_bytes":4,"busy_ns":1,"launches":2,"exited":false},
                         {"pid":8,"device":0,"used_bytes":0,"high_water_bytes":4,"busy_ns":1,"launches":2,"exited":true}]}"#;
        let truth: Truth = serde_json::from_str(text).unwrap();
        let rows: Vec<u32> = truth.of(&BTreeSet::from([8, 9])).map(|row| row.pid).collect();
        assert_eq!(rows, [8]);
    }
}
