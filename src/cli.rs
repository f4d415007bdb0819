//! The command line: what may be typed, and which file runs it. Parse, check, dispatch; nothing else happens here.

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use crate::exit::{Exit, Failure};
use crate::{
    completions, config_check, daemon, demo, device, doctor, drain, event_lines, host, keeper, load, man,
    output, reap, recommend, reload, run, set, sim, status, top, why,
};

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
    /// The node's run directory, for private nodes and tests [default: $STINT_RUN_DIR, else /run/stint as root, else the
    /// user's own]
    #[arg(long, global = true, value_name = "DIR")]
    pub run_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a node with greedy, careful and dying tenants, and measure every promise
    Demo(demo::Args),
    /// Run the node's daemon
    Daemon(daemon::Args),
    /// Run a command as a tenant
    Run(run::Args),
    /// Show devices, tenants and clients
    Status(status::Args),
    /// Show the same, live
    Top(top::Args),
    /// Show admissions, refusals, reclaims and faults
    Events(event_lines::Args),
    /// Change what a tenant has, live
    Set(set::Args),
    /// Tell the rule in force for a tenant or process, and what was refused last
    Why(why::Args),
    /// Tell the memory cap that would fit a tenant, from what was measured
    Recommend(recommend::Args),
    /// Close the node or a device to new programs
    Drain(drain::Args),
    /// Find what is wrong with a node, and prove its caps by trying to exceed one
    Doctor(doctor::Args),
    /// End processes that hold a GPU and belong to nobody alive
    Reap(reap::Args),
    /// A synthetic CUDA client: what demo and benches run
    Load(load::Args),
    /// Read the quota file again
    Reload(reload::Args),
    /// The quota file
    #[command(subcommand)]
    Config(config_check::Verb),
    /// The stand-in GPU node
    #[command(subcommand)]
    Sim(sim::Verb),
    /// Put the shim first in this host's loader cache, for every login and service
    #[command(subcommand)]
    Host(host::Verb),
    /// Print what a shell needs to complete this command line
    Completions(completions::Args),
    /// Write the man pages
    #[command(hide = true)]
    Man(man::Args),
    /// The private node of one `run`
    #[command(hide = true)]
    PrivateNode(run::PrivateNodeArgs),
    /// Holds the descriptors of clients' memory accounts while no daemon runs
    #[command(hide = true)]
    Keeper(keeper::Args),
    /// The daemon's child that talks to NVML and CUDA
    #[command(hide = true)]
    Device(device::worker::Args),
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
            output::failure(&failure);
            failure.exit.into()
        }
    }
}

/// The command line as it is shown to people: without the verbs that only our own programs use.
pub fn shown() -> clap::Command {
    let whole = Cli::command();
    let mut shown = clap::Command::new("stint")
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(100)
        .disable_help_subcommand(true)
        .args(whole.get_arguments().cloned())
        .subcommands(
            whole
                .get_subcommands()
                .filter(|verb| !verb.is_hide_set())
                .cloned(),
        );
    if let Some(about) = whole.get_about() {
        shown = shown.about(about.clone());
    }
    shown
}

/// One arm per verb; `run_dir` of the command line goes to every verb that talks to a node.
fn dispatch(cli: Cli) -> Result<Exit, Failure> {
    let Cli { verb, run_dir } = cli;
    let run_dir = run_dir.or_else(driver::run_dir::named);
    match verb {
        Verb::Run(args) => run::main(args, run_dir.as_deref()),
        Verb::PrivateNode(args) => run::private_node(args, run_dir.as_deref()),
        Verb::Daemon(args) => daemon::run(args, run_dir),
        Verb::Keeper(args) => keeper::main(args, run_dir),
        Verb::Device(args) => device::worker::run(&args),
        Verb::Status(args) => status::main(args, run_dir.as_deref()),
        Verb::Top(args) => top::main(args, run_dir.as_deref()),
        Verb::Events(args) => event_lines::main(&args, run_dir.as_deref()),
        Verb::Set(args) => set::main(args, run_dir.as_deref()),
        Verb::Why(args) => why::main(&args, run_dir.as_deref()),
        Verb::Recommend(args) => recommend::main(&args, run_dir.as_deref()),
        Verb::Drain(args) => drain::main(&args, run_dir.as_deref()),
        Verb::Doctor(args) => doctor::main(&args, run_dir.as_deref()),
        Verb::Reap(args) => reap::main(args, run_dir.as_deref()),
        Verb::Load(args) => load::main(args),
        Verb::Reload(args) => reload::main(&args, run_dir.as_deref()),
        Verb::Config(verb) => config_check::main(verb),
        Verb::Sim(verb) => sim::main(verb, run_dir.as_deref()),
        Verb::Host(verb) => host::main(verb),
        Verb::Completions(args) => completions::main(&args),
        Verb::Man(args) => man::main(&args),
        Verb::Demo(args) => demo::main(args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::units::{Bytes, Memory};

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_only_our_own_programs_type_is_not_shown() {
        let mut shown = shown();
        let help = shown.render_help().to_string();
        for hidden in Cli::command().get_subcommands().filter(|verb| verb.is_hide_set()) {
            let name = hidden.get_name();
            assert!(shown.find_subcommand(name).is_none(), "{name}");
            assert!(!help.contains(&format!("  {name} ")), "{help}");
        }
        shown.debug_assert();
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
        for wrong in ["0", "0.5", "x", "86401"] {
            let error = parse(&["load", "--seconds", wrong]).expect_err(wrong);
            assert!(error.to_string().contains("whole seconds, 1 to 86400"), "{error}");
        }
    }
}
