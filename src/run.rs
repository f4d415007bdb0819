//! `stint run`: a command as a tenant. Finds the node or starts a private one (`run/node.rs`), registers itself as the
//! head of a launch, looks which devices it asked for (`run/gpus.rs`), puts the shim in front of the command (`run/environment.rs`), and passes signals and the exit code
//! through (`run/child.rs`). It prints nothing unless it fails: stdout and stderr are the command's.

mod child;
mod environment;
mod gpus;
mod node;
mod private_node;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::artefacts::Artefacts;
use crate::cli::Driver;
use crate::config::Priority;
use crate::config::units::{Memory, Ratio};
use crate::exit::{Exit, Failure};
use crate::protocol::Launch;
pub use private_node::{Args as PrivateNodeArgs, main as private_node};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Memory cap per device, for example `8GiB` or `50%`
    #[arg(short, long, value_name = "SIZE")]
    pub memory: Option<Memory>,
    /// Guaranteed part of the compute, for example `30%`
    #[arg(short, long, value_name = "PART")]
    pub share: Option<Ratio>,
    /// Hard ceiling of compute, for example `50%`
    #[arg(long, value_name = "PART")]
    pub limit: Option<Ratio>,
    /// Who goes first
    #[arg(short, long, value_enum)]
    pub priority: Option<Priority>,
    /// Devices the command sees: indices as `stint status` shows them, UUIDs or their beginnings, for example `0,1`
    #[arg(long, value_name = "LIST")]
    pub gpus: Option<String>,
    /// Tenant the command belongs to
    #[arg(short, long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// [default: the node's; without a node, nvidia if its driver is found]
    #[arg(long, value_enum)]
    pub driver: Option<Driver>,
    /// Devices of a private stand-in node, for example `h200:2`
    #[arg(long, value_name = "MODEL[:N],…")]
    pub devices: Option<String>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Runs the verb. A value that is wrong, whoever finds that, ends with 64, what the node does not permit with 77, a command
/// that cannot be executed with 126, one not found with 127, and its other failures with 125.
pub fn main(args: Args, run_dir: Option<&Path>) -> Result<Exit, Failure> {
    let ended = prepare_and_run(args, run_dir).map_err(|failure| match failure.exit {
        Exit::USAGE | Exit::NOT_PERMITTED | Exit::CANNOT_EXECUTE | Exit::NOT_FOUND => failure,
        _ => Failure {
            exit: Exit::RUN_FAILED,
            ..failure
        },
    })?;
    Ok(ended.pass_on()) // the node is gone by now: this may be the end of the process
}

fn prepare_and_run(args: Args, run_dir: Option<&Path>) -> Result<child::Ended, Failure> {
    let artefacts = Artefacts::find()?;
    let node = node::Node::find_or_start(run_dir, args.driver, args.devices.as_deref())?;
    let node::Node {
        mut connection,
        run_dir,
        private: _until_the_end,
    } = node;
    let launched = connection.launch(launch(&args))?;
    drop(connection); // the launch is this process's, not the connection's
    if let Some(asked) = args.driver.filter(|asked| *asked != launched.driver) {
        return Err(Failure::usage(format!(
            "the node at {} has driver {}, not {}: leave `--driver` out",
            run_dir.display(),
            launched.driver.as_str(),
            asked.as_str()
        )));
    }
    let gpus = args
        .gpus
        .as_ref()
        .map(|list| gpus::visible(list, &launched.devices))
        .transpose()?;
    let changes = environment::Front {
        artefacts: &artefacts,
        sim: launched.driver == Driver::Sim,
        run_dir: &run_dir,
        newer_driver: newer_driver(&artefacts, launched.driver),
        gpus: gpus.as_deref(),
    }
    .variables(&environment::Own::read())?;
    let (program, arguments) = args
        .command
        .split_first()
        .ok_or_else(|| Failure::usage("no command"))?;
    let mut command = Command::new(program);
    command.args(arguments).envs(changes);
    child::run(command)
}

/// What the daemon is asked for. Bytes are written out: what a person wrote is exact, so is this.
fn launch(args: &Args) -> Launch {
    Launch {
        tenant: args.tenant.clone(),
        memory: args.memory.map(|memory| match memory {
            Memory::Bytes(bytes) => format!("{}B", bytes.0),
            Memory::Part(part) => part.to_string(),
            Memory::All => "all".into(),
        }),
        share: args.share.map(|share| share.to_string()),
        limit: args.limit.map(|limit| limit.to_string()),
        priority: args.priority.map(|priority| priority.as_str().into()),
    }
}

/// The real driver, if it has functions the shim's table lacks: a program linked to one of them starts only with that
/// driver in its own scope.
fn newer_driver(artefacts: &Artefacts, driver: Driver) -> Option<std::path::PathBuf> {
    let library = match driver {
        Driver::Sim => artefacts.sim_driver().join("libcuda.so.1"),
        Driver::Nvidia => driver::load::find("libcuda.so.1", driver::load::library_path().as_deref())?,
    };
    let newer = driver::load::newer_names(&library)?;
    (!newer.is_empty()).then_some(library)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Verb};
    use clap::Parser;

    #[test]
    fn the_launch_says_exactly_what_was_written() {
        let words = [
            "stint", "run", "-m", "1.5GiB", "-t", "a", "-s", "30%", "--limit", "0.5", "-p", "high", "--", "x",
        ];
        let Verb::Run(args) = Cli::try_parse_from(words).expect("parsed").verb else {
            panic!("another verb")
        };
        let launch = launch(&args);
        assert_eq!(launch.memory.as_deref(), Some("1610612736B"));
        assert_eq!(
            launch.memory.and_then(|text| text.parse::<Memory>().ok()),
            args.memory
        );
        assert_eq!(
            (launch.share.as_deref(), launch.limit.as_deref()),
            (Some("30%"), Some("50%"))
        );
        assert_eq!(launch.priority.as_deref(), Some("high"));
    }
}
