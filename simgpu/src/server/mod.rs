//! The event loop: one thread, no lock. It drains every ring, replays the stamped operations into the
//! model in order of time, publishes what is complete by now, and sleeps until it is needed.
//!
//! Next files of the walk: `server/intake.rs`, `server/sleep.rs`.

mod capacity;
mod conns;
mod intake;
mod lateness;
mod objects;
mod place;
mod publish;
mod request;
mod sleep;
mod truth;

use crate::facts::NodeFacts;
use crate::model::{DeviceConfig, Model, Ns, Sharing};
use crate::shm::clock::{DeviceClock, host_now};
use crate::shm::map::Map;
use crate::shm::segment::{Board, Entry};
use capacity::Capacity;
use conns::Conn;
use lateness::Lateness;
use objects::Objects;
pub use place::Place;
pub(crate) use place::is_trusted;
use publish::Outbox;
use sleep::Margin;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use truth::Dead;

/// What a node is made of.
#[derive(Clone)]
pub struct Config {
    pub facts: Box<NodeFacts>,
    pub sharing: Sharing,
    /// Devices that are lost, and the device time after the start at which they are.
    pub losses: Vec<(usize, Ns)>,
    /// Host time for which an unused node stays; `None`: until it is stopped.
    pub linger_ns: Option<u64>,
}

pub struct Server {
    clock: DeviceClock,
    started_at: Ns,
    time_scale: u32,
    model: Model,
    capacity: Capacity,
    objects: Objects,
    /// By client number of the model.
    conns: Vec<Option<Conn>>,
    dead: Dead,
    board: Map<Board>,
    facts: Map<NodeFacts>,
    epoll: OwnedFd,
    place: Place,
    /// Entries taken and not yet due, in order of time: (stamp, client, entry).
    pending: VecDeque<(Ns, usize, Entry)>,
    out: Outbox,
    lateness: Lateness,
    margin: Margin,
    generation: u32,
    welcomed: u64,
    max_conns: usize,
    losses: Vec<(usize, Ns)>,
    linger_ns: u64,
    /// Host time since when nobody is connected.
    unused_since: Option<u64>,
    stopped: bool,
}

impl Server {
    /// Takes the place and listens there.
    pub fn new(place: Place, config: Config) -> io::Result<Server> {
        let clock = DeviceClock::new(config.facts.time_scale);
        let started_at = clock.now();
        let facts: Map<NodeFacts> = Map::create_read_only(c"stint-sim-facts")?;
        // SAFETY: we are the only one who has this mapping yet; both sides are whole NodeFacts.
        unsafe {
            facts.as_ptr().write(NodeFacts {
                started_at,
                ..*config.facts
            })
        };
        let devices: Vec<DeviceConfig> = facts
            .devices()
            .iter()
            .map(|d| DeviceConfig {
                sms: d.sm_count,
                sharing: config.sharing,
                copy_engines: d.copy_engines,
                contention: facts.contention_permille,
            })
            .collect();
        // SAFETY: plain system calls; the descriptor is new. Without the slack of 1 ns every timed sleep
        // of an ordinary thread may be 50 us late.
        let epoll = unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0);
            match libc::epoll_create1(libc::EPOLL_CLOEXEC) {
                -1 => return Err(io::Error::last_os_error()),
                fd => OwnedFd::from_raw_fd(fd),
            }
        };
        let server = Server {
            clock,
            started_at,
            time_scale: config.facts.time_scale.max(1),
            model: Model::new(&devices),
            capacity: Capacity::new(facts.devices().iter().map(|d| d.memory_bytes).collect()),
            objects: Objects::default(),
            conns: Vec::new(),
            dead: Dead::new(devices.len()),
            board: Map::create_read_only(c"stint-sim-board")?,
            facts,
            epoll,
            place,
            pending: VecDeque::new(),
            out: Outbox::default(),
            lateness: Lateness::default(),
            margin: Margin::START,
            generation: 0,
            welcomed: 0,
            max_conns: conns::raise_descriptor_limit(),
            losses: config
                .losses
                .iter()
                .map(|&(device, at)| (device, started_at + at))
                .collect(),
            linger_ns: config.linger_ns.unwrap_or(0),
            unused_since: config.linger_ns.map(|_| host_now()),
            stopped: false,
        };
        server.watch(server.place.listener(), conns::LISTENER)?;
        Ok(server)
    }

    fn watch(&self, fd: BorrowedFd<'_>, tag: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: tag,
        };
        let (epoll, fd) = (self.epoll.as_raw_fd(), fd.as_raw_fd());
        // SAFETY: both descriptors are open, `event` is valid.
        match unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Does what is due apart from work; true when the server has nothing left to live for.
    fn is_over(&mut self) -> bool {
        let now = self.clock.now();
        for (device, _) in self.losses.extract_if(.., |(_, at)| *at <= now) {
            if let Some(board) = self.board.devices.get(device) {
                board.lost.store(1, std::sync::atomic::Ordering::Release);
            }
        }
        if self.stopped {
            return true;
        }
        let unused = self
            .unused_since
            .is_some_and(|since| host_now() >= since + self.linger_ns);
        if unused {
            // Somebody may have connected this moment.
            self.accept();
        }
        unused && self.unused_since.is_some()
    }
}
