//! `stint load`: a synthetic CUDA client. Checks its arguments, opens the device, works (`load/work.rs`), and tells what
//! it did (`load/report.rs`). It is what demo and benches run; nothing in it knows of the shim.

mod clock;
mod cuda;
mod kernel;
pub mod report;
mod schedule;
mod work;

use std::time::Duration;

use crate::config::units::{self, Bytes};
use crate::exit::{Exit, Failure};
use crate::output;
use cuda::Context;
use kernel::Spin;
use report::Report;

#[derive(Debug, clap::Args)]
pub struct Args {
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
    #[arg(long, value_name = "N", default_value = "10", value_parser = seconds)]
    pub seconds: u32,
    /// Schema `stint.load/v1`
    #[arg(long)]
    pub json: bool,
}

/// Most seconds a command may be told to work.
const LONGEST: u32 = 86_400;

/// Whole seconds of work.
pub fn seconds(text: &str) -> Result<u32, String> {
    let found = text
        .parse()
        .ok()
        .filter(|seconds| (1..=LONGEST).contains(seconds));
    found.ok_or_else(|| format!("write whole seconds, 1 to {LONGEST}"))
}

/// What `load` submits to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Kernels of `--kernel` each
    Launch,
    /// Copies of `--size` from host to device
    Copy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Arrivals {
    Periodic,
    Poisson,
}

/// The device used; `CUDA_VISIBLE_DEVICES` says which one that is.
const DEVICE: i32 = 0;

/// The arguments, checked.
#[derive(Debug, Clone, PartialEq)]
struct Plan {
    memory: Option<u64>,
    fill: Option<u64>,
    churn: Option<u64>,
    submit: Option<Submit>,
    streams: usize,
    burst: u32,
    every: Option<(Arrivals, Duration, u64)>,
    length: Duration,
}

/// What one burst is made of.
#[derive(Debug, Clone, PartialEq)]
enum Submit {
    Kernel { spin: Spin, grid: u32 },
    Copy { bytes: u64 },
}

impl Plan {
    fn check(args: &Args) -> Result<Plan, Failure> {
        let submit = match (args.kind, args.kernel) {
            (Kind::Launch, Some(length)) => Some(Submit::Kernel {
                spin: kernel::spin(args.name.as_deref().unwrap_or(kernel::NAME), length)?,
                grid: match args.grid {
                    Some(0) => return Err(Failure::usage("--grid 0: write at least 1 block")),
                    grid => grid.unwrap_or(1),
                },
            }),
            (Kind::Launch, None) => None,
            (Kind::Copy, Some(_)) => {
                return Err(Failure::usage(
                    "--kernel is not for `--kind copy`: write `--size`",
                ));
            }
            (Kind::Copy, None) => Some(Submit::Copy { bytes: args.size.0 }),
        };
        let bytes = |size: Option<Bytes>| size.map(|size| size.0);
        if submit.is_none() && args.memory.is_none() && args.fill.is_none() && args.churn.is_none() {
            return Err(Failure::usage(
                "nothing to do: write at least one of --kernel, --memory, --fill, --churn and --kind copy",
            ));
        }
        Ok(Plan {
            memory: bytes(args.memory),
            fill: bytes(args.fill),
            churn: bytes(args.churn),
            submit,
            streams: args.streams as usize,
            burst: args.burst,
            every: args.every.map(|every| (args.arrivals, every, args.seed)),
            length: Duration::from_secs(args.seconds.into()),
        })
    }
}

/// Runs the verb. Exit 3 when an allocation it needed was refused, 1 when the driver failed otherwise.
pub fn main(args: Args) -> Result<Exit, Failure> {
    let plan = Plan::check(&args)?;
    let (report, exit) = run(&plan)?;
    if args.json {
        output::json(&report)?;
    } else {
        output::line(&report.text())?;
    }
    Ok(exit)
}

fn run(plan: &Plan) -> Result<(Report, Exit), Failure> {
    let mut report = Report {
        schema: report::SCHEMA.into(),
        ..Report::default()
    };
    let exit = match Context::open(DEVICE).and_then(|context| work::work(&context, plan, &mut report)) {
        Ok(()) => Exit::OK,
        Err(failure @ cuda::CudaFailure::Call { .. }) => {
            let refused = failure.is_out_of_memory();
            report.refusals += u64::from(refused);
            report.error = Some(failure.to_string());
            if refused { Exit::REFUSED } else { Exit::FAILED }
        }
        Err(failure) => return Err(Failure::failed(failure)),
    };
    Ok((report, exit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Verb};
    use clap::Parser;

    fn plan(words: &[&str]) -> Result<Plan, Failure> {
        let cli = Cli::try_parse_from([&["stint", "load"], words].concat()).expect("parsed");
        let Verb::Load(args) = cli.verb else {
            panic!("another verb")
        };
        Plan::check(&args)
    }

    #[test]
    fn what_is_asked_is_what_is_planned() {
        let plan = plan(&[
            "--memory",
            "1GiB",
            "--kernel",
            "500us",
            "--every",
            "20ms",
            "--burst",
            "20",
            "--seconds",
            "3",
        ]);
        let plan = plan.unwrap();
        assert_eq!(plan.memory, Some(1 << 30));
        assert_eq!(
            plan.every,
            Some((Arrivals::Periodic, Duration::from_millis(20), 1))
        );
        assert_eq!(
            (plan.burst, plan.streams, plan.length),
            (20, 1, Duration::from_secs(3))
        );
        let Some(Submit::Kernel { spin, grid: 1 }) = plan.submit else {
            panic!("{:?}", plan.submit)
        };
        assert_eq!(spin.nanoseconds, 500_000);
    }

    #[test]
    fn contradictions_are_usage_errors() {
        for words in [
            &[][..],
            &["--kind", "copy", "--kernel", "1ms"],
            &["--kernel", "1ms", "--grid", "0"],
        ] {
            assert_eq!(plan(words).unwrap_err().exit, Exit::USAGE, "{words:?}");
        }
        for kind in ["graph", "cooperative", "collective"] {
            assert!(Cli::try_parse_from(["stint", "load", "--kind", kind]).is_err());
        }
    }
}
