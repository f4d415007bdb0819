//! The process behind the private node of one `stint run`: a daemon for as long as standard input is open.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::cli::Driver;
use crate::config::Config;
use crate::daemon::{Daemon, Options};
use crate::exit::{Exit, Failure};
use crate::place;
use crate::protocol::{Answer, Refused};

/// The node `run` starts for one command where none runs; ends with its standard input.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(long, value_enum)]
    pub driver: Option<Driver>,
    #[arg(long, value_name = "MODEL[:N],…")]
    pub devices: Option<String>,
}

/// Starts the daemon in `run_dir`, answers one line (`protocol::Answer`), and ends when standard input does. A directory
/// it made is removed with it.
pub fn main(args: Args, run_dir: Option<&Path>) -> Result<Exit, Failure> {
    let run_dir = run_dir.ok_or_else(|| Failure::usage("--run-dir is missing"))?;
    let ours = !run_dir.exists();
    let started = start(&args, run_dir, ours);
    let answer = match &started {
        Ok(_) => Answer::Ok(()),
        Err(Failure { exit, message }) => Answer::Error(Refused {
            exit: exit.0,
            message: message.clone(),
        }),
    };
    let ended = started.and_then(|daemon| {
        tell(&answer)?;
        let mut nothing = [0; 1];
        while matches!(std::io::stdin().read(&mut nothing), Ok(1..)) {}
        daemon.stop()
    });
    if ours {
        let _ = fs::remove_dir_all(run_dir); // what is left is of no use to anybody
    } else {
        // Nobody is here any more: a program that begins now goes on without a cap, as it would without this node.
        let _ = fs::remove_file(run_dir.join(driver::run_dir::ATTACH_POLICY));
    }
    match (ended, &answer) {
        // Who asked tells it: on stderr as well it would stand there twice, or not, as it came.
        (Err(failure), Answer::Error(_)) => tell(&answer).map(|()| failure.exit).map_err(|_| failure),
        (ended, _) => ended.map(|()| Exit::OK),
    }
}

fn start(args: &Args, run_dir: &Path, ours: bool) -> Result<Daemon, Failure> {
    if ours {
        place::make(run_dir).map_err(|error| Failure::failed(format!("{}: {error}", run_dir.display())))?;
        if args.devices.is_none() {
            share_stand_in(run_dir);
        }
    }
    Daemon::start(Options::of(
        args.driver,
        run_dir,
        args.devices.as_deref(),
        Config::default(),
    )?)
}

/// The node is private, the GPU is not: where the user has a stand-in running, this is the one to use. A link to its
/// socket that leads nowhere is replaced by whoever starts the next.
fn share_stand_in(run_dir: &Path) {
    let running = driver::run_dir::default_for_user().join(driver::run_dir::SIM_SOCKET);
    let link = run_dir.join(driver::run_dir::SIM_SOCKET);
    if let (true, Some(directory)) = (running.exists(), link.parent()) {
        let _ = place::make(directory).and_then(|()| symlink(running, &link)); // else it has its own
    }
}

fn tell(answer: &Answer<()>) -> Result<(), Failure> {
    let mut line = serde_json::to_string(answer).map_err(Failure::failed)?;
    line.push('\n');
    std::io::stdout()
        .write_all(line.as_bytes())
        .map_err(Failure::failed)
}
