//! The embedded node of the demo, and what its acts do with it: start tenants, wait for what the device says, measure.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::Args;
use super::document::Seen;
use super::progress::{Line, Progress};
use super::tenant::Tenant;
use super::truth::{Process, Source};
use crate::artefacts::Artefacts;
use crate::cli::Driver;
use crate::config::{self, At, Config, Pool, Rules};
use crate::daemon::{Daemon, Keeping, Options, Sabotage};
use crate::exit::Failure;
use crate::load::report::Report;
use crate::protocol::Connection;
use crate::{place, sim};

/// Smallest piece in which `load --fill` takes memory: the driver's granularity.
pub const LAST_PIECE: u64 = 2 << 20;

/// Tenants whose memory is kept when it is freed, and is not.
pub const POOLED: &str = "pooled";
pub const UNPOOLED: &str = "unpooled";

/// How long the neighbours work when nobody says.
const SECONDS: u32 = 3;
/// How long a wait may take on a machine that has better to do.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long memory that ought to come may stay away: reclaiming takes milliseconds.
const RECLAIM: Duration = Duration::from_secs(5);
/// How long the daemon may take to notice a death.
const NOTICE: Duration = Duration::from_secs(2);
/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(30);

/// A node with nobody on it but the demo's tenants.
pub struct Stage {
    pub seconds: u32,
    pub progress: Progress,
    driver: Driver,
    run_dir: PathBuf,
    artefacts: Artefacts,
    /// Taken when the demo ends.
    daemon: Option<Daemon>,
    options: Options,
    truth: Source,
    interrupted: Arc<AtomicBool>,
    /// Clients of the act.
    cast: Vec<(String, u64, u32)>,
    seen: Vec<Seen>,
}

impl Stage {
    /// Sets up a node without what `sabotage` takes out of it.
    pub fn open(args: &Args, sabotage: Sabotage, progress: Progress) -> Result<Stage, Failure> {
        if place::is_taken() {
            return Err(Failure::failed(format!(
                "this machine has a node at {}, which its programs cannot leave: the demo needs a machine without one",
                driver::run_dir::SYSTEM
            )));
        }
        let seconds = args.seconds.unwrap_or(SECONDS);
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, interrupted.clone()).map_err(Failure::failed)?;
        }
        let artefacts = Artefacts::find()?;
        let nvidia = match args.driver {
            Driver::Sim => None,
            Driver::Nvidia => Some(Source::nvidia()?),
        };
        let run_dir = place::private("demo")
            .and_then(|place| place::make(&place).map(|()| place))
            .map_err(|error| Failure::failed(format!("a place for the demo's node: {error}")))?;
        let sim = || Source::Sim {
            artefacts: artefacts.clone(),
            run_dir: run_dir.clone(),
        };
        let truth = nvidia.unwrap_or_else(sim);
        // Nothing is kept back, so that a tenant without its cap finds the device's own end, and its neighbours with it.
        let mut config = Config::default();
        config.node.reserve = None;
        for (name, pool) in [(POOLED, Pool::Elide), (UNPOOLED, Pool::Off)] {
            config.tenants.insert(name.into(), pooling(&config, pool));
        }
        let options = Options::of(Some(args.driver), &run_dir, args.devices.as_deref(), config)?;
        let mut stage = Stage {
            seconds,
            progress,
            driver: args.driver,
            truth,
            run_dir,
            artefacts,
            daemon: None,
            options: Options {
                sabotage,
                keeping: Keeping::Keeper,
                ..options
            },
            interrupted,
            cast: Vec::new(),
            seen: Vec::new(),
        };
        stage.daemon = Some(Daemon::start(stage.options.clone())?);
        Ok(stage)
    }

    /// The daemon ends where it is, as if it were killed, and another starts in its place.
    pub fn restart_daemon(&mut self) -> Result<(), Failure> {
        if let Some(daemon) = self.daemon.take() {
            daemon.crash()?;
        }
        self.daemon = Some(Daemon::start(self.options.clone())?);
        self.check_interrupted()
    }

    /// Ends the node; what its clients told.
    pub fn close(mut self) -> Vec<Seen> {
        std::mem::take(&mut self.seen)
    }

    /// Starts a client of tenant `name` with `cap` bytes: `stint load WORDS…`.
    pub fn tenant(&mut self, name: &str, cap: u64, words: &[&str]) -> Result<Tenant, Failure> {
        let tenant = Tenant::start(&self.run_dir, self.driver, name, cap, words)?;
        self.cast.push((name.into(), cap, tenant.pid));
        Ok(tenant)
    }

    /// The act is over.
    pub fn scene_ends(&mut self) {
        self.cast.clear();
        self.progress.clear();
    }

    /// An error once somebody wants the demo to end.
    pub fn check_interrupted(&self) -> Result<(), Failure> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Failure::failed("interrupted"));
        }
        Ok(())
    }

    /// Waits until `tenant` holds `bytes` besides its context.
    pub fn wait_until_holds(&mut self, tenant: &Tenant, bytes: u64) -> Result<(), Failure> {
        self.watch(PATIENCE, |truth| {
            if used(truth, &[tenant]) >= bytes {
                return Ok(Some(()));
            }
            if tenant.has_ended()? {
                let report = tenant.report()?;
                let why = report.error.unwrap_or("it ended early".into());
                return Err(Failure::failed(format!("tenant {}: {why}", tenant.name)));
            }
            Ok(None)
        })?
        .ok_or_else(|| Failure::failed(format!("tenant {} does not get {bytes} bytes", tenant.name)))
    }

    /// Waits until `tenants` together have used `bytes`, or it is clear that they never will; what they have used then.
    pub fn used_when(&mut self, tenants: &[&Tenant], bytes: u64) -> Result<u64, Failure> {
        self.watch(RECLAIM, |truth| {
            let ended = tenants
                .iter()
                .map(|tenant| tenant.has_ended())
                .collect::<Result<Vec<_>, _>>()?;
            Ok((ended.contains(&true) || most_used(truth, tenants) >= bytes).then_some(()))
        })?;
        self.most_used(tenants) // once more: who has ended may have used more since the look
    }

    /// Waits for the client's end; what it told is kept for the end of the demo.
    pub fn finish(&mut self, tenant: &Tenant) -> Result<Report, Failure> {
        let limit = PATIENCE + Duration::from_secs(self.seconds.into()) * 2;
        self.watch(limit, |_| Ok(tenant.has_ended()?.then_some(())))?
            .ok_or_else(|| Failure::failed(format!("tenant {} does not end", tenant.name)))?;
        let report = tenant.report()?;
        self.seen.push(Seen {
            tenant: tenant.name.clone(),
            pid: tenant.pid,
            cap_bytes: tenant.cap,
            memory_total_bytes: report.memory_total_bytes,
            memory_free_bytes: report.memory_free_bytes,
            launches: report.launches,
            allocations: report.allocations,
            refusals: report.refusals,
        });
        Ok(report)
    }

    /// Kills a client and waits, for a while, until the daemon has noticed.
    pub fn kill(&mut self, tenant: &Tenant) -> Result<(), Failure> {
        tenant.kill()?;
        self.cast.retain(|(_, _, pid)| *pid != tenant.pid);
        let mut node = Connection::open(&self.run_dir)?;
        self.watch(NOTICE, |_| {
            let clients = node
                .status()?
                .tenants
                .into_iter()
                .flat_map(|tenant| tenant.clients);
            Ok(clients
                .into_iter()
                .all(|client| client.pid != tenant.pid)
                .then_some(()))
        })?;
        Ok(()) // in time or not: what the successor gets is what counts
    }

    /// The most `tenants` can have used together, by each one's high-water mark.
    pub fn most_used(&self, tenants: &[&Tenant]) -> Result<u64, Failure> {
        Ok(most_used(&self.truth.read()?, tenants))
    }

    /// Kernels of `tenants`; `None` where the device does not count them.
    pub fn launches(&self, tenants: &[Tenant]) -> Result<Option<u64>, Failure> {
        let truth = self.truth.read()?;
        Ok(rows(&truth, &tenants.iter().collect::<Vec<_>>())
            .map(|process| process.launches)
            .sum())
    }

    /// Allocations of `tenant` that came to the driver; `None` where the device does not tell.
    pub fn allocations(&self, tenant: &Tenant) -> Result<Option<u64>, Failure> {
        let truth = self.truth.read()?;
        Ok(truth.get(&tenant.pid).and_then(|process| process.allocations))
    }

    /// Reads the truth again and again until `look` finds something or `limit` is over, and shows it.
    fn watch<T>(
        &mut self,
        limit: Duration,
        mut look: impl FnMut(&BTreeMap<u32, Process>) -> Result<Option<T>, Failure>,
    ) -> Result<Option<T>, Failure> {
        let deadline = Instant::now() + limit;
        loop {
            self.check_interrupted()?;
            let truth = self.truth.read()?;
            let lines: Vec<Line<'_>> = self.cast.iter().map(|client| line(&truth, client)).collect();
            self.progress.show(&lines);
            if let Some(found) = look(&truth)? {
                return Ok(Some(found));
            }
            if Instant::now() > deadline {
                return Ok(None);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        drop(self.daemon.take());
        if self.driver == Driver::Sim {
            let mut stop = sim::program(&self.artefacts, Some(&self.run_dir));
            let _ = stop.arg("stop").output(); // else it ends by itself in a moment
        }
        let _ = fs::remove_dir_all(&self.run_dir); // what is left is of no use to anybody
    }
}

/// The rules of everybody, but for what becomes of freed memory; nobody belongs to it who does not name it.
fn pooling(config: &Config, pool: Pool) -> config::Tenant {
    config::Tenant {
        matches: Vec::new(),
        gpus: None,
        until: None,
        hours: None,
        rules: Rules {
            pool,
            ..config.defaults.clone()
        },
        at: At::default(),
        memory_at: None,
    }
}

fn rows<'a>(truth: &'a BTreeMap<u32, Process>, tenants: &'a [&Tenant]) -> impl Iterator<Item = &'a Process> {
    tenants.iter().filter_map(|tenant| truth.get(&tenant.pid))
}

fn used(truth: &BTreeMap<u32, Process>, tenants: &[&Tenant]) -> u64 {
    rows(truth, tenants).map(|process| process.used_bytes).sum()
}

fn most_used(truth: &BTreeMap<u32, Process>, tenants: &[&Tenant]) -> u64 {
    rows(truth, tenants).map(|process| process.high_water_bytes).sum()
}

fn line<'a>(truth: &BTreeMap<u32, Process>, (name, cap, pid): &'a (String, u64, u32)) -> Line<'a> {
    let process = truth.get(pid).copied().unwrap_or_default();
    Line {
        name,
        pid: *pid,
        used: process.used_bytes,
        cap: *cap,
        launches: process.launches,
    }
}
