//! The client side of the stand-in: what the `libcuda` and NVML front ends are written on.
//!
//! One [`Client`] per process: it finds or starts the node, charges memory node-wide and submits work. A
//! launch writes one 64-byte entry into a ring and makes no system call; only waiting, a full queue,
//! host functions and memory calls may. An [`Observer`] only looks (NVML, status) and holds no stream.
//!
//! Errors are `CUresult` codes. Any call may return `UNKNOWN` (999) once the server is gone, for ever
//! after, and `NOT_INITIALIZED` (3) in a child forked from the process that connected.
//!
//! All times are device time: host `CLOCK_MONOTONIC` nanoseconds divided by the node's time scale.
//! Next files of the walk: `client/streams.rs`, `client/ring.rs`, then `server/mod.rs`.

mod breaks;
mod connect;
mod events;
mod fault;
mod host;
mod kernel;
mod memory;
mod observer;
mod ring;
mod start;
mod state;
mod streams;
mod uses;
mod wait;

use crate::facts::{Costs, DeviceFacts, NodeFacts, Timing};
use crate::proto::role;
use crate::shm::clock::{DeviceClock, host_now, sleep};
use crate::shm::map::Map;
use crate::shm::segment::{Board, Segment};
use breaks::Breaks;
use driver::{CuResult, CudaError};
use fault::Faults;
use host::HostFunctions;
use kernel::Noise;
pub use kernel::{Kernel, Manner};
pub use memory::Memory;
pub use observer::Observer;
use ring::Producer;
pub use start::start;
use state::State;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
pub use uses::Uses;

/// Where the node is and how to start one.
#[derive(Clone, Debug)]
pub struct Place {
    /// The stand-in's socket: `driver::run_dir::of_sim()` joined with `SIM_SOCKET`.
    pub socket: PathBuf,
    /// The `stint-sim` to start when no node answers; `None`: do not start one.
    pub server: Option<PathBuf>,
}

/// Why there is no connection.
#[derive(Debug)]
pub enum ConnectError {
    /// Nobody answers, and no server could be started (or none was named).
    NoNode(std::io::Error),
    /// A server of another version of the stand-in.
    Version,
    /// The directory of the socket is not ours (owner or mode): refusing to trust it.
    Untrusted,
}

/// A stream of this process. Copyable, valid until [`Client::drop_stream`]; a stale one is answered
/// `INVALID_HANDLE` or names a later stream, as with the real driver's handles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StreamId {
    pub(crate) index: u16,
    pub(crate) device: u8,
}

/// An event of this process, valid until [`Client::drop_event`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EventId(pub(crate) u32);

/// How to wait, from the context's or the event's flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wait {
    /// Yield for a while, then sleep (`CU_CTX_SCHED_AUTO`).
    #[default]
    Auto,
    /// Busy; on hosts with few cores this yields, or the waiter would starve the server.
    Spin,
    Yield,
    /// `CU_CTX_SCHED_BLOCKING_SYNC`.
    Block,
}

/// What a driver call costs, for [`Client::spend`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    Launch,
    Record,
    Query,
    /// An allocation of so many bytes.
    Alloc(u64),
    Free,
    Context,
}

impl Cost {
    fn ns(self, costs: &Costs) -> u64 {
        match self {
            Cost::Launch => costs.launch,
            Cost::Record => costs.record,
            Cost::Query => costs.query,
            Cost::Alloc(bytes) => costs.alloc + (bytes >> 20).saturating_mul(costs.alloc_per_mib),
            Cost::Free => costs.free,
            Cost::Context => costs.context,
        }
    }
}

/// A connection of this process to its node.
pub struct Client {
    shared: Arc<Shared>,
}

/// What the client and its thread for host functions both hold.
struct Shared {
    state: State,
    null: bool,
    few_cores: bool,
    clock: DeviceClock,
    segment: Map<Segment>,
    board: Map<Board>,
    producer: Mutex<Producer>,
    facts: Box<NodeFacts>,
    faults: Faults,
    breaks: Breaks,
    noise: Noise,
    kick: OwnedFd,
    socket: OwnedFd,
    /// One request at a time.
    asking: Mutex<()>,
    host: Mutex<HostFunctions>,
    /// Memory charged by this process, per device.
    mine: [AtomicU64; crate::facts::MAX_DEVICES],
}

impl Client {
    /// Finds the node at `place` or starts it, and connects. Blocks for at most ten seconds. Call it
    /// once per process, at `cuInit`.
    pub fn connect(place: &Place) -> Result<Client, ConnectError> {
        Client::connect_with(place, 100)
    }

    /// As [`Client::connect`], for a process that may hold `share` percent of the SMs, 1 to 100, where
    /// contexts run side by side.
    pub fn connect_with(place: &Place, share: u32) -> Result<Client, ConnectError> {
        let mut link = connect::establish(place, role::CLIENT, share)?;
        let missing = || ConnectError::NoNode(std::io::ErrorKind::UnexpectedEof.into());
        let kick = link.rest.pop().ok_or_else(missing)?;
        let segment = link.rest.pop().ok_or_else(missing)?;
        let segment = Map::open(segment, true).map_err(ConnectError::NoNode)?;
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let shared = Shared {
            state: State::new().map_err(ConnectError::NoNode)?,
            null: link.facts.timing() == Timing::Null,
            few_cores: cores <= 4,
            clock: DeviceClock::new(link.facts.time_scale),
            segment,
            board: link.board,
            producer: Mutex::default(),
            faults: Faults::new(link.facts.faults()),
            breaks: Breaks::default(),
            noise: Noise::new(link.facts.noise_permille, link.facts.seed ^ link.number),
            facts: link.facts,
            kick,
            socket: link.socket,
            asking: Mutex::default(),
            host: Mutex::default(),
            mine: Default::default(),
        };
        Ok(Client {
            shared: Arc::new(shared),
        })
    }

    /// `Ok` while the connection is usable; else the error every call returns. One load, no system call.
    #[inline]
    pub fn alive(&self) -> CuResult {
        self.shared.state.check()
    }

    /// True in a forked child of the process that connected. One load, no system call.
    #[inline]
    pub fn forked(&self) -> bool {
        self.shared.state.is_forked()
    }

    /// What the node is: timing, time scale, driver version, costs. Usable in a forked child too.
    pub fn node(&self) -> &NodeFacts {
        &self.shared.facts
    }

    /// The devices in ordinal order, 1 to 16 (`CUDA_VISIBLE_DEVICES` is the front end's affair).
    pub fn devices(&self) -> &[DeviceFacts] {
        self.node().devices()
    }

    /// True when a configured fault has taken the device away: calls on it fail with
    /// `DEVICE_UNAVAILABLE` (46), waits for its work end with it. One load.
    pub fn device_lost(&self, device: usize) -> bool {
        self.shared.usable(device) == Err(CudaError::DEVICE_UNAVAILABLE)
    }

    /// Device time now, in ns.
    pub fn now(&self) -> u64 {
        self.shared.clock.now()
    }

    /// What the call costs: take the guard first thing in the call, drop it last. The drop waits (spinning
    /// briefly, sleeping when long) until the cost has passed since `spend`. Free in `null` timing.
    #[inline]
    pub fn spend(&self, cost: Cost) -> Spend {
        let ns = cost.ns(&self.shared.facts.costs);
        self.shared.count_cost(cost, ns);
        if self.shared.null {
            return Spend { until: 0 };
        }
        match ns {
            0 => Spend { until: 0 },
            ns => Spend {
                until: host_now().saturating_add(self.shared.clock.host_span(ns)),
            },
        }
    }
}

impl Shared {
    /// Counts what a call of the driver costs. Launches, of which there are many, cost the same by whatever way memory comes.
    #[inline]
    fn count_cost(&self, cost: Cost, ns: u64) {
        if cost == Cost::Launch {
            return;
        }
        self.segment.driver_ns.fetch_add(ns, Ordering::Relaxed);
        if let Cost::Alloc(_) = cost {
            self.segment.allocations.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The thread for host functions leaves when it sees this.
        self.shared.state.lose();
        if !self.forked() {
            crate::shm::clock::futex_wake(&self.shared.segment.host_turns);
        }
    }
}

/// Guard of [`Client::spend`].
#[must_use = "the cost is spent when this is dropped"]
pub struct Spend {
    /// Host time; 0: free.
    until: u64,
}

/// Costs longer than this are slept through, all but the end, in host ns.
const SLEEP_ABOVE_NS: u64 = 150_000;

impl Drop for Spend {
    fn drop(&mut self) {
        if self.until == 0 {
            return;
        }
        loop {
            let left = self.until.saturating_sub(host_now());
            match left {
                0 => return,
                left if left > SLEEP_ABOVE_NS => sleep(left - SLEEP_ABOVE_NS / 2),
                left if left > 10_000 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
    }
}

impl Shared {
    /// Counts a launch that takes no time.
    #[inline]
    fn count_null_launch(&self, device: u8) {
        if let Some(own) = self.segment.own.get(device as usize) {
            own.launches.fetch_add(1, Ordering::Relaxed);
        }
    }
}
