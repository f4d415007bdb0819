//! The node's daemon: wiring. `Daemon::start` prepares the run directory, finds the devices, and hands everything to the
//! event loop in `daemon/core.rs`, the only place that knows all parts. `stint daemon` runs one; `demo` and `run` embed one.

mod accounts;
mod admit;
mod adopt;
mod answer;
mod callers;
mod ceiling;
mod chronicle;
mod core;
mod deafness;
mod drain;
mod groups;
mod hear;
mod inheritance;
mod looks;
mod mend;
mod notify;
mod orphans;
mod parked;
mod peers;
mod quota_files;
mod reclaim;
mod record;
mod recycling;
mod regrant;
mod reload;
mod remember;
mod run_dir;
mod set;
mod settings;
mod sockets;
mod sources;
mod state_file;
mod step;
mod store;
mod watch;
mod why;

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::SystemTime;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use crate::admission::attach::PeerIdentity;
use crate::admission::users::Users;
use crate::artefacts::Artefacts;
use crate::cli::Driver;
use crate::config::{Config, Problems};
use crate::device::Inventory;
use crate::device::child::{Libraries, Supervisor, measure_contexts};
use crate::exit::{Exit, Failure};
pub use notify::OWN_VARIABLES;
pub use quota_files::{QuotaFiles, checked};
pub use reload::Quota;
pub use store::Keeping;

/// What a daemon is to run.
#[derive(Debug, Clone)]
pub struct Options {
    pub run_dir: PathBuf,
    pub driver: Driver,
    pub config: Config,
    /// Where `config` was read, to be read again; `None`: nowhere.
    pub quota: Option<Quota>,
    pub source: Source,
    pub peer_identity: PeerIdentity,
    /// Where names of users come from.
    pub users: fn() -> std::io::Result<Users>,
    pub sabotage: Sabotage,
    /// Where the accounts' descriptors are while no daemon runs.
    pub keeping: Keeping,
    /// Where what outlives a reboot goes: the history of accounts, what was set; `None`: it ends with the daemon.
    pub state_directory: Option<PathBuf>,
}

/// Written to a daemon's stop socket: ends it for good, or as if it were killed. Anything else ends it for another to come.
const FOR_GOOD: u8 = b'.';
const CRASH: u8 = b'!';

/// Where the devices are known from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A child that asks NVML and CUDA.
    Driver(Libraries),
    /// A list, never looked at again: for tests of everything else.
    Fixed(Inventory),
}

/// What `demo --break` takes out of its own embedded node. No switch of any command reaches it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sabotage {
    /// The words clients read grant every account the whole device.
    pub caps: bool,
    /// What dead clients held is not given back.
    pub reclaim: bool,
    /// A refusal of one account closes all others.
    pub isolation: bool,
    /// What an earlier daemon left is not taken over.
    pub adoption: bool,
    /// Memory that is freed goes back to the driver, whatever was asked for.
    pub pool: bool,
}

impl Options {
    /// A node on the stand-in: starts one with `devices` (default: its own) if none runs in `run_dir`.
    pub fn sim(run_dir: &Path, devices: Option<&str>, config: Config) -> Result<Options, Failure> {
        let artefacts = Artefacts::find()?;
        crate::device::sim::ensure(&artefacts, run_dir, devices)?;
        let libraries = Libraries::sim(&artefacts, run_dir);
        Ok(Options::new(
            run_dir,
            Driver::Sim,
            config,
            Source::Driver(libraries),
        ))
    }

    /// A node on this machine's GPUs.
    pub fn nvidia(run_dir: &Path, config: Config) -> Result<Options, Failure> {
        let libraries = Libraries::nvidia().ok_or_else(|| {
            // What systemd does not try again: a driver does not come by itself.
            Failure::bad_config("no NVIDIA driver on this machine (no libnvidia-ml.so.1): use `--driver sim` for the stand-in")
        })?;
        Ok(Options::new(
            run_dir,
            Driver::Nvidia,
            config,
            Source::Driver(libraries),
        ))
    }

    /// `driver`, or NVIDIA's where there is one; an error naming `--driver sim` where there is none.
    pub fn of(
        driver: Option<Driver>,
        run_dir: &Path,
        devices: Option<&str>,
        config: Config,
    ) -> Result<Options, Failure> {
        match driver {
            Some(Driver::Sim) => Options::sim(run_dir, devices, config),
            _ if devices.is_some() => Err(Failure::usage(
                "--devices describes the stand-in: add `--driver sim`",
            )),
            _ => Options::nvidia(run_dir, config),
        }
    }

    fn new(run_dir: &Path, driver: Driver, config: Config, source: Source) -> Options {
        let (peer_identity, sabotage) = (PeerIdentity::default(), Sabotage::default());
        Options {
            run_dir: run_dir.into(),
            driver,
            config,
            quota: None,
            source,
            peer_identity,
            users: Users::of_host,
            sabotage,
            keeping: Keeping::Nowhere,
            state_directory: None,
        }
    }
}

/// A running daemon. Dropped, it ends for good; its clients go on with what they have.
#[derive(Debug)]
pub struct Daemon {
    run_dir: PathBuf,
    /// A byte written here ends the loop.
    stop: UnixStream,
    /// A byte written here has the quota file read again.
    reload: UnixStream,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

impl Daemon {
    /// Starts a daemon in threads of this process. When it returns, both sockets answer.
    pub fn start(options: Options) -> Result<Daemon, Failure> {
        let (inventory, supervisor, contexts) = match &options.source {
            Source::Fixed(inventory) => (inventory.clone(), None, Vec::new()),
            Source::Driver(libraries) => {
                let mut supervisor = Supervisor::start(libraries.clone()).map_err(Failure::failed)?;
                let mut inventory = supervisor.inventory().map_err(Failure::failed)?;
                let contexts = measure_contexts(libraries, &mut inventory);
                (inventory, Some(supervisor), contexts)
            }
        };
        let problems = options.config.beyond(&inventory.capacities(), SystemTime::now());
        if !problems.is_empty() {
            return Err(Failure::bad_config(Problems(problems)));
        }
        let run_dir = options.run_dir.clone();
        let (stop, told) = UnixStream::pair().map_err(Failure::failed)?;
        // A signal handler writes here, and must not wait.
        stop.set_nonblocking(true).map_err(Failure::failed)?;
        let (reload, hangups) = UnixStream::pair().map_err(Failure::failed)?;
        for end in [&reload, &hangups] {
            end.set_nonblocking(true).map_err(Failure::failed)?;
        }
        let mut core = core::Core::new(options, inventory, supervisor, contexts, told)?;
        core.mind_quota_files(hangups)
            .map_err(|error| Failure::failed(format!("the quota file cannot be minded: {error}")))?;
        let run = move || core.run();
        let thread = std::thread::Builder::new()
            .name("stint-daemon".into())
            .spawn(run)
            .map_err(Failure::failed)?;
        Ok(Daemon {
            run_dir,
            stop,
            reload,
            thread: Some(thread),
        })
    }

    pub fn run_dir(&self) -> &Path {
        &self.run_dir
    }

    /// Ends the daemon and waits for it. What is kept of its accounts is there for the next one.
    pub fn stop(mut self) -> Result<(), Failure> {
        self.tell(0);
        self.join()
    }

    /// Ends the daemon where it is, without a last word to anybody, as a kill would.
    pub fn crash(mut self) -> Result<(), Failure> {
        self.tell(CRASH);
        self.join()
    }

    /// Waits until a signal ends the daemon, or it fails.
    fn wait(mut self) -> Result<(), Failure> {
        self.join()
    }

    fn tell(&self, how: u8) {
        let _ = (&self.stop).write(&[how]); // full, or nobody there: it was told already
    }

    fn join(&mut self) -> Result<(), Failure> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        thread.join().unwrap_or_else(|_| {
            Err(Failure::failed(
                "the daemon's thread panicked; its message is above",
            ))
        })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.tell(FOR_GOOD);
        if let Err(failure) = self.join() {
            tracing::error!("{failure}");
        }
    }
}

#[derive(Debug, clap::Args)]
pub struct Args {
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

/// `stint daemon`: runs until SIGTERM or SIGINT. SIGHUP has the quota file read again.
pub fn run(args: Args, run_dir: Option<PathBuf>) -> Result<Exit, Failure> {
    log_to_stderr();
    let files = args
        .config
        .map_or_else(QuotaFiles::installed, |file| QuotaFiles::named([file]));
    let quota = Quota::read(files, args.observe).map_err(Failure::bad_config)?;
    let config = quota.config().map_err(Failure::bad_config)?;
    let run_dir = run_dir.unwrap_or_else(driver::run_dir::default_for_user);
    let mut options = Options::of(args.driver, &run_dir, args.devices.as_deref(), config)?;
    options.keeping = Keeping::Outside;
    options.quota = Some(quota);
    options.state_directory = Some(state_directory(&run_dir));
    raise_descriptor_limit();
    let daemon = Daemon::start(options)?;
    let ends = [
        (SIGTERM, &daemon.stop),
        (SIGINT, &daemon.stop),
        (SIGHUP, &daemon.reload),
    ];
    for (signal, end) in ends {
        let told = end.try_clone().and_then(|end| pipe::register(signal, end));
        told.map_err(|error| Failure::failed(format!("signal {signal}: {error}")))?;
    }
    tracing::info!(run_dir = %daemon.run_dir().display(), "admitting clients");
    daemon.wait()?;
    tracing::info!("ended");
    Ok(Exit::OK)
}

/// Where what outlives a reboot goes: the unit's `StateDirectory=`, of which the first counts, else the run directory.
fn state_directory(run_dir: &Path) -> PathBuf {
    let given = std::env::var_os("STATE_DIRECTORY").unwrap_or_default();
    let first = std::env::split_paths(&given).find(|path| path.is_absolute());
    first.unwrap_or_else(|| run_dir.into())
}

fn log_to_stderr() {
    use std::io::IsTerminal;
    let filter = tracing_subscriber::EnvFilter::try_from_env("STINT_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let colour = std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colour)
        .with_writer(std::io::stderr);
    let _ = log.try_init(); // an embedding program has its own
}

/// One descriptor per client and six per account and device: the usual 1024 would not do.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
}

#[cfg(test)]
mod tests;
