//! The command line: what may be typed, and which file runs it. Parse, check, dispatch; nothing else happens here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::config::units::{self, Bytes, Memory, Ratio};
use crate::exit::{Exit, Failure};
use crate::{daemon, demo, device, event_lines, load, run, sim, status, top};

#[derive(Debug, Parser)]
#[command(
    name = "stint",
    version,
    about,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
    /// The node's run directory, for private nodes and tests [default: /run/stint as root, else the user's own]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "STINT_RUN_DIR",
        hide_env_values = true
    )]
    pub run_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a node with greedy, careful and dying tenants, and measure every promise
    Demo(DemoArgs),
    /// Run the node's daemon
    Daemon(DaemonArgs),
    /// Run a command as a tenant
    Run(RunArgs),
    /// Show devices, tenants and clients
    Status(StatusArgs),
    /// Show the same, live
    Top(TopArgs),
    /// Show admissions, refusals, reclaims and faults
    Events(EventsArgs),
    /// A synthetic CUDA client: what demo and benches run
    Load(LoadArgs),
    /// The stand-in GPU node
    #[command(subcommand)]
    Sim(SimVerb),
    /// The private node of one `run`
    #[command(hide = true)]
    PrivateNode(PrivateNodeArgs),
    /// The daemon's child that talks to NVML and CUDA
    #[command(hide = true)]
    Device(DeviceArgs),
}

/// Whose GPUs: NVIDIA's, or the stand-in's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    Nvidia,
    Sim,
}

impl Driver {
    /// `nvidia` or `sim`, as in the status document.
    pub fn as_str(self) -> &'static str {
        match self {
            Driver::Nvidia => "nvidia",
            Driver::Sim => "sim",
        }
    }
}

#[derive(Debug, Args)]
pub struct DemoArgs {
    #[arg(long, value_enum, default_value = "sim")]
    pub driver: Driver,
    /// Stand-in devices, for example `h200:2`
    #[arg(long, value_name = "MODEL[:N],…")]
    pub devices: Option<String>,
    /// How long the neighbours work
    #[arg(long, value_name = "N")]
    pub seconds: Option<u64>,
    /// Sabotage the mechanism behind one promise; the table must then show it broken
    #[arg(long = "break", value_name = "PROMISE")]
    pub break_promise: Option<String>,
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// Quota file [default: /etc/stint/stint.toml and /etc/stint/stint.d/*.toml, where they exist]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// [default: nvidia if its driver is found]
    #[arg(long, value_enum)]
    pub driver: Option<Driver>,
    /// Stand-in devices, for example `h200:2` (with `--driver sim`)
    #[arg(long, value_name = "MODEL[:N],…")]
    pub devices: Option<String>,
    /// Account and show everything, refuse nothing
    #[arg(long)]
    pub observe: bool,
}

#[derive(Debug, Args)]
pub struct RunArgs {
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
    /// Devices the command sees: indices or UUIDs, for example `0,1`
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Priority {
    Low,
    Normal,
    High,
}

impl Priority {
    /// As written on the command line and in the quota file.
    pub fn as_str(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Normal => "normal",
            Priority::High => "high",
        }
    }
}

/// The node `run` starts for one command where none runs; ends with its standard input.
#[derive(Debug, Args)]
pub struct PrivateNodeArgs {
    #[arg(long, value_enum)]
    pub driver: Option<Driver>,
    #[arg(long, value_name = "MODEL[:N],…")]
    pub devices: Option<String>,
}

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Schema `stint.node/v1`
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct TopArgs {
    /// Time between two looks
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = units::duration)]
    pub every: Duration,
}

#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Go on with what happens from now
    #[arg(short, long)]
    pub follow: bool,
    /// One `stint.event/v1` object a line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct LoadArgs {
    /// Memory held all the time
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
    /// Allocate pieces of this size and keep them until one is refused, then smaller ones, and go on asking
    #[arg(long, value_name = "SIZE")]
    pub fill: Option<Bytes>,
    /// What is submitted
    #[arg(long, value_enum, default_value = "launch")]
    pub kind: Kind,
    /// Bytes of one copy, with `--kind copy`
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub size: Bytes,
    /// Length of one kernel, whole microseconds
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub kernel: Option<Duration>,
    /// Blocks of one kernel
    #[arg(long, value_name = "BLOCKS")]
    pub grid: Option<u32>,
    /// First part of the kernel's name
    #[arg(long)]
    pub name: Option<String>,
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=128))]
    pub streams: u32,
    /// Time between two bursts; without it kernels follow one another
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub every: Option<Duration>,
    /// Kernels of one burst
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub burst: u32,
    #[arg(long, value_enum, default_value = "periodic")]
    pub arrivals: Arrivals,
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Allocate and free this much again and again
    #[arg(long, value_name = "SIZE")]
    pub churn: Option<Bytes>,
    /// How long to work
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// Schema `stint.load/v1`
    #[arg(long)]
    pub json: bool,
}

/// What `load` submits to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Kernels of `--kernel` each
    Launch,
    /// Copies of `--size` from host to device
    Copy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Arrivals {
    Periodic,
    Poisson,
}

#[derive(Debug, Subcommand)]
pub enum SimVerb {
    /// Start the stand-in node; it stays until `stop`
    Start(SimStartArgs),
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
#[derive(Debug, Args)]
pub struct SimStartArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    pub options: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct DeviceArgs {
    /// NVML to open instead of the system's
    #[arg(long, value_name = "FILE")]
    pub nvml: Option<PathBuf>,
    /// CUDA driver to open instead of the system's
    #[arg(long, value_name = "FILE")]
    pub cuda: Option<PathBuf>,
    /// Measure what a context costs, and end
    #[arg(long)]
    pub contexts: bool,
}

/// Parses the process's arguments, runs the verb, prints a failure's message to stderr. Usage errors end with 64.
pub fn main() -> std::process::ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let exit = if error.use_stderr() { Exit::USAGE } else { Exit::OK };
            let _ = error.print(); // nothing is left to tell anybody when stderr is gone
            return exit.into();
        }
    };
    match dispatch(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("stint: {failure}");
            failure.exit.into()
        }
    }
}

/// One arm per verb; `run_dir` of the command line goes to every verb that talks to a node.
fn dispatch(cli: Cli) -> Result<Exit, Failure> {
    let Cli { verb, run_dir } = cli;
    match verb {
        Verb::Run(args) => run::main(args, run_dir.as_deref()),
        Verb::PrivateNode(args) => run::private_node(args, run_dir.as_deref()),
        Verb::Daemon(args) => daemon::run(args, run_dir),
        Verb::Device(args) => device::worker::run(&args),
        Verb::Status(args) => status::main(args, run_dir.as_deref()),
        Verb::Top(args) => top::main(args, run_dir.as_deref()),
        Verb::Events(args) => event_lines::main(args, run_dir.as_deref()),
        Verb::Load(args) => load::main(args),
        Verb::Sim(verb) => sim::main(verb, run_dir.as_deref()),
        Verb::Demo(args) => demo::main(args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn quantities_are_checked_while_parsing() {
        let parse = |words: &[&str]| Cli::try_parse_from([&["stint"], words].concat());
        let Ok(Cli {
            verb: Verb::Run(run), ..
        }) = parse(&["run", "-m", "8GiB", "--", "a", "-m", "1"])
        else {
            panic!("run was not parsed");
        };
        assert_eq!(run.memory, Some(Memory::Bytes(Bytes(8 << 30))));
        assert_eq!(run.command, ["a", "-m", "1"]);
        for wrong in ["0", "", "0m", "-1", "1e9", "12 GiB", "8"] {
            let error = parse(&["run", "-m", wrong, "--", "a"]).expect_err(wrong);
            assert!(error.use_stderr());
        }
        assert!(parse(&["daemon", "--run-dir", "/x"]).is_ok());
    }
}
