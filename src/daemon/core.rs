//! The event loop: one thread that never waits for anybody but the kernel. First of all it takes over what an earlier daemon
//! left (`adopt.rs`). Deaths come first in every round, so that what the dead held is back before anybody is admitted
//! (`reclaim.rs`); then hellos (`admit.rs`), requests (`answer.rs`), rings of doorbells, and what the device child says
//! (`hear.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant, SystemTime};

use ledger::{Owner, SlotIndex};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::chronicle::Chronicle;
use super::deafness::Deafness;
use super::looks::Looks;
use super::notify::Notifier;
use super::parked::Parked;
use super::record::Record;
use super::reload::Minding;
use super::run_dir::RunDir;
use super::settings::Settings;
use super::sources::{
    ADMIN, ATTACH, BELL, DEVICE, FIRST_CONNECTION, GROUPS, HANGUP, KEEPER, LIVES, NAMES, QUOTA, STOP,
    mind_unsent,
};
use super::store::Keeping;
use super::store::Store;
use super::{CRASH, FOR_GOOD, Options, Sabotage, sockets};
use crate::admission::admin::Admin;
use crate::admission::attach::{Attach, PeerIdentity};
use crate::admission::container::Known;
use crate::admission::identity::{Authority, Place};
use crate::admission::launches::Launches;
use crate::admission::process::Identity;
use crate::admission::users::{Users, trusted_group};
use crate::config::units::Bytes;
use crate::config::{Config, Mode};
use crate::device::Inventory;
use crate::device::child::Supervisor;
use crate::enforce::Ledgers;
use crate::enforce::bell::Listener;
use crate::events::{self, Kind, Log};
use crate::exit::Failure;
use crate::state::{About, ClientId, Event, Granted, NodeState, Overrides};

/// Time between two looks at devices, counters and executed programs.
const TICK: Duration = Duration::from_secs(1);
/// Time until a recovery that somebody disturbed is tried again.
const AGAIN: Duration = Duration::from_millis(1);

/// A client as the daemon holds it.
#[derive(Debug, Clone)]
pub(super) struct Seat {
    pub owner: Owner,
    pub account: String,
    pub slot: SlotIndex,
    /// The program it was when it attached.
    pub image: [u64; 3],
    /// Why it goes, once its process has ended or executed: its charge is still to be given back.
    pub going: Option<&'static str>,
}

impl Seat {
    pub fn identity(&self) -> Identity {
        Identity {
            pid: self.owner.pid,
            start_time: self.owner.start_time,
        }
    }
}

pub(super) struct Core {
    pub config: Config,
    pub about: About,
    pub authority: Authority,
    pub peer_identity: PeerIdentity,
    pub sabotage: Sabotage,
    pub inventory: Inventory,
    /// The devices' UUIDs, and what a context costs on each; 0: not known.
    pub uuids: Vec<[u8; 16]>,
    pub contexts: Vec<u64>,

    pub state: NodeState,
    pub ledgers: Ledgers,
    pub log: Log,
    pub users: Users,
    pub mounts: cgroup::Mounts,
    pub containers: Known,
    /// Tells when the control groups of accounts go.
    pub groups: cgroup::Watch,
    /// What was told of placements already.
    pub noted: BTreeSet<String>,
    /// The launches that clients were placed by, as long as they live.
    pub heads: BTreeMap<Identity, Identity>,
    /// Those whose names are being looked up.
    pub parked: Vec<Parked>,
    pub launches: Launches,
    /// The user whose launch each part of an account was made for.
    pub made_by: BTreeMap<String, u32>,
    /// Those who read an account made for a launch without being its clients: it stays as long as they do.
    pub observers: BTreeMap<Identity, String>,
    pub places: BTreeMap<String, Place>,
    pub grants: BTreeMap<String, Vec<Granted>>,
    pub overrides: Overrides,
    pub seats: BTreeMap<ClientId, Seat>,
    pub looks: Looks,
    pub next_client: u64,
    pub record: Record,
    pub store: Store,
    pub notifier: Notifier,
    pub chronicle: Chronicle,
    pub settings: Settings,

    /// Every process whose end matters, its descriptor in `lives` under its place here.
    pub watched: BTreeMap<u64, (Identity, OwnedFd)>,
    pub lives: OwnedFd,
    pub attaches: BTreeMap<u64, Attach>,
    pub admins: BTreeMap<u64, Admin>,
    pub next_token: u64,
    pub epoll: OwnedFd,
    pub attach_listener: OwnedFd,
    pub deafness: Deafness,
    pub admin_listener: UnixListener,
    pub bell: Listener,
    pub device: Option<Supervisor>,
    pub minding: Minding,
    pub stop: UnixStream,
    pub run_dir: RunDir,
    /// Why the run directory cannot be made anew.
    pub unmended: Option<String>,
    /// Why the daemon is to end.
    pub over: Option<Failure>,
}

impl Core {
    pub fn new(
        options: Options,
        inventory: Inventory,
        device: Option<Supervisor>,
        contexts: Vec<u64>,
        stop: UnixStream,
    ) -> Result<Core, Failure> {
        let failed = |what: &str, error: io::Error| Failure::failed(format!("{what}: {error}"));
        let uuid = |device: &crate::device::Device| {
            let message =
                || Failure::failed(format!("device {}: `{}` is no UUID", device.index, device.uuid));
            device.uuid_bytes().ok_or_else(message)
        };
        let uuids = inventory
            .devices
            .iter()
            .map(uuid)
            .collect::<Result<Vec<_>, _>>()?;
        let run_dir = RunDir::prepare(&options.run_dir).map_err(Failure::failed)?;
        run_dir
            .write_policy(options.config.node.absent)
            .map_err(Failure::failed)?;
        let record = Record::take_over(&run_dir.record());
        let (record, condition) =
            record.map_err(|error| failed(&run_dir.record().display().to_string(), error))?;
        let (store, left, wrong) = Store::open(options.keeping, &options.run_dir);
        let (chronicle, unread) = Chronicle::open(options.state_directory.as_deref());
        let (settings, lost) = Settings::open(options.state_directory.as_deref());
        let group = trusted_group();
        let attach_listener = sockets::attach(&run_dir.attach_socket())
            .map_err(|error| failed(&run_dir.attach_socket().display().to_string(), error))?;
        let admin_listener = sockets::admin(&run_dir.admin_socket())
            .map_err(|error| failed(&run_dir.admin_socket().display().to_string(), error))?;
        let new_epoll =
            || epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| failed("epoll", error.into()));
        let node = &options.config.node;
        let reserved: Vec<u64> = inventory
            .devices
            .iter()
            .map(|device| node.reserve_on(Bytes(device.total_bytes)).0)
            .collect();
        let mut contexts = contexts;
        contexts.resize(inventory.devices.len(), 0);
        let mut core = Core {
            about: About {
                node: host_name(),
                driver: options.driver,
                started_at: SystemTime::now(),
            },
            authority: Authority {
                daemon: rustix::process::geteuid().as_raw(),
                group,
            },
            peer_identity: options.peer_identity,
            sabotage: options.sabotage,
            state: NodeState::new(node.mode, node.overcommit, inventory.clone(), reserved),
            ledgers: Ledgers::new(node.mode == Mode::Observe),
            config: options.config,
            inventory,
            uuids,
            contexts,
            log: Log::default(),
            users: (options.users)().map_err(|error| failed("the names of users", error))?,
            mounts: cgroup::Mounts::read().map_err(|error| failed("/proc/self/mountinfo", error))?,
            groups: cgroup::Watch::new().map_err(|error| failed("inotify", error))?,
            containers: Known::default(),
            noted: BTreeSet::new(),
            heads: BTreeMap::new(),
            parked: Vec::new(),
            launches: Launches::default(),
            made_by: BTreeMap::new(),
            observers: BTreeMap::new(),
            looks: Looks::default(),
            places: BTreeMap::new(),
            grants: BTreeMap::new(),
            overrides: Overrides::default(),
            seats: BTreeMap::new(),
            next_client: 1,
            record,
            store,
            notifier: Notifier::new(options.keeping == Keeping::Outside),
            chronicle,
            settings,
            watched: BTreeMap::new(),
            lives: new_epoll()?,
            attaches: BTreeMap::new(),
            admins: BTreeMap::new(),
            next_token: FIRST_CONNECTION,
            epoll: new_epoll()?,
            attach_listener,
            deafness: Deafness::default(),
            admin_listener,
            bell: Listener::start().map_err(|error| failed("the listener for doorbells", error))?,
            device,
            minding: Minding::new(options.quota),
            stop,
            run_dir,
            unmended: None,
            over: None,
        };
        core.listen().map_err(|error| failed("epoll", error.into()))?;
        for what in wrong.into_iter().chain(unread).chain(lost) {
            core.apply(Event::Fault { what });
        }
        if core.sabotage.adoption {
            core.record.clear();
        } else {
            core.adopt(&condition, left);
        }
        core.say_what_is_not_in_force();
        Ok(core)
    }

    /// Runs until told to stop.
    pub fn run(&mut self) -> Result<(), Failure> {
        let mut woken = Vec::with_capacity(256);
        let mut next_tick = Instant::now();
        let tick = self
            .notifier
            .patience()
            .map_or(TICK, |patience| patience.min(TICK));
        self.notifier.ready(self.in_a_line());
        loop {
            let now = Instant::now();
            if now >= next_tick {
                self.tick(now);
                next_tick = now + tick;
            }
            if let Some(failure) = self.over.take() {
                return Err(failure);
            }
            self.hear_again(now);
            let pending = !self.sabotage.reclaim && self.seats.values().any(|seat| seat.going.is_some());
            let nap = if pending {
                AGAIN
            } else {
                next_tick.saturating_duration_since(now)
            };
            let nap = self.deafness.patience(now).map_or(nap, |deaf| deaf.min(nap));
            woken.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut woken),
                Some(&timespec(nap)),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Failure::failed(format!("epoll: {error}"))),
            }
            self.reap();
            let tokens: Vec<u64> = woken
                .iter()
                .map(|event: &epoll::Event| { event.data }.u64())
                .collect();
            for token in tokens {
                match token {
                    STOP => return self.end(),
                    KEEPER => self.replace_keeper(),
                    ATTACH => self.accept_attaches(),
                    ADMIN => self.accept_admins(),
                    BELL => self.answer_bells(),
                    LIVES => {} // reaped above
                    DEVICE => self.hear_device(),
                    NAMES => self.hear_names(),
                    GROUPS => self.groups_gone(),
                    QUOTA => self.hear_of_quota_files(),
                    HANGUP => self.hear_hangup(),
                    connection if self.attaches.contains_key(&connection) => self.step_attach(connection),
                    connection => self.serve(connection),
                }
            }
        }
    }

    /// Ends because somebody wants it. Clients go on, and so do their descriptors where they are kept.
    fn end(&mut self) -> Result<(), Failure> {
        let mut how = [0; 1];
        let crash = matches!(self.stop.read(&mut how), Ok(1)) && how == [CRASH];
        if !crash {
            self.notifier.stopping();
            self.run_dir.remove_sockets();
            self.end_chronicle();
            self.keep_settings_now();
        }
        if how == [FOR_GOOD] {
            self.store.end();
        }
        self.run_dir.unlock();
        Ok(())
    }

    fn tick(&mut self, now: Instant) {
        let overdue = |(token, attach): (&u64, &Attach)| attach.overdue(now).then_some(*token);
        let silent: Vec<u64> = self.attaches.iter().filter_map(overdue).collect();
        for token in silent {
            self.attaches.remove(&token);
        }
        self.drop_overdue(now);
        self.watch_groups();
        self.mind_rules(SystemTime::now());
        self.answer_bells();
        self.look_for_executed();
        self.end_settings(SystemTime::now());
        self.read_ledgers();
        self.chronicle(now);
        self.keep_settings();
        self.close_devices();
        self.look_for_orphans();
        self.mend_run_dir();
        if self.store.is_lost() {
            self.replace_keeper();
        }
        let line = self.in_a_line();
        self.notifier.alive(now, || line);
        if let Some(device) = &mut self.device {
            let (said, restarted) = device.tick(now);
            if restarted {
                self.listen_to_device();
            }
            self.take_in(said);
        }
    }

    /// Reads the words of all accounts into the state.
    pub fn read_ledgers(&mut self) {
        let accounts: Vec<String> = self.state.accounts().map(Into::into).collect();
        for account in accounts {
            let mut readings = self.ledgers.read(&account);
            // What a tenant is shown is what it was granted, whatever the words say.
            for (reading, granted) in readings
                .iter_mut()
                .zip(self.grants.get(&account).into_iter().flatten())
            {
                reading.cap_bytes = granted.cap_bytes;
            }
            self.apply(Event::Read { account, readings });
        }
    }

    /// Listens to the bells of the accounts there are now.
    pub fn update_bells(&self) {
        self.bell.listen_to(self.ledgers.bells());
    }

    /// Takes an event into the state; logs what that gives and passes it on to those who follow.
    pub fn apply(&mut self, event: Event) {
        let now = SystemTime::now();
        for line in self.state.apply(event, now) {
            let line = self.log.add(line, now);
            trace(line);
            let mut gone = Vec::new();
            for (token, admin) in self.admins.iter_mut().filter(|(_, admin)| admin.follows) {
                match admin.send(line) {
                    Ok(()) => mind_unsent(&self.epoll, *token, admin),
                    Err(_) => gone.push(*token),
                }
            }
            for token in gone {
                self.admins.remove(&token);
            }
        }
    }

    /// How the node is, for `systemctl status`.
    pub fn in_a_line(&self) -> String {
        format!("{} clients in {} accounts", self.seats.len(), self.places.len())
    }

    fn say_what_is_not_in_force(&mut self) {
        for problem in self.config.not_in_force.clone() {
            self.apply(Event::ConfigNote {
                message: problem.to_string(),
            });
        }
    }
}

fn trace(line: &events::Event) {
    let kind = serde_json::to_string(&line.kind).unwrap_or_default();
    let (kind, detail) = (
        kind.trim_matches('"'),
        serde_json::to_string(&line.detail).unwrap_or_default(),
    );
    let (account, pid, device) = (line.account.as_deref(), line.pid, line.device);
    match line.kind {
        Kind::Fault | Kind::Drift | Kind::Config => tracing::warn!(account, pid, device, %detail, "{kind}"),
        _ => tracing::info!(account, pid, device, %detail, "{kind}"),
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs() as i64,
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
