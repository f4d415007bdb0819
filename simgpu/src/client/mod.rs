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
//! Next file of the walk: `client/ring.rs` (an entry on its way), then `server/mod.rs`.

use crate::facts::{DeviceFacts, NodeFacts};
use driver::{CuResult, CudaError};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

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

/// Memory of one device, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    pub capacity: u64,
    /// Charged by all processes together.
    pub used: u64,
    /// Charged by this process.
    pub mine: u64,
}

/// A kernel as the timeline knows it: how long one launch takes. Make it once per function.
#[derive(Debug)]
pub struct Kernel {
    pub(crate) ns: u64,
    pub(crate) warm: std::sync::atomic::AtomicBool,
}

/// A connection of this process to its node.
pub struct Client {}

impl Client {
    /// Finds the node at `place` or starts it, and connects. Blocks for at most a few seconds. Call it
    /// once per process, at `cuInit`.
    pub fn connect(place: &Place) -> Result<Client, ConnectError> {
        unimplemented!("in the next commits")
    }

    /// `Ok` while the connection is usable; else the error every call returns. One load, no system call.
    pub fn alive(&self) -> CuResult {
        unimplemented!("in the next commits")
    }

    /// True in a forked child of the process that connected. One load, no system call.
    pub fn forked(&self) -> bool {
        unimplemented!("in the next commits")
    }

    /// What the node is: timing, time scale, driver version, costs.
    pub fn node(&self) -> &NodeFacts {
        unimplemented!("in the next commits")
    }

    /// The devices in ordinal order, 1 to 16 (`CUDA_VISIBLE_DEVICES` is the front end's affair).
    pub fn devices(&self) -> &[DeviceFacts] {
        self.node().devices()
    }

    /// True when a configured fault has taken the device away: calls on it fail with
    /// `DEVICE_UNAVAILABLE` (46), waits for its work end with it. One load.
    pub fn device_lost(&self, device: usize) -> bool {
        unimplemented!("in the next commits")
    }

    /// Device time now, in ns.
    pub fn now(&self) -> u64 {
        unimplemented!("in the next commits")
    }

    /// What the call costs: take the guard first thing in the call, drop it last. The drop waits (spinning
    /// briefly, sleeping when long) until the cost has passed since `spend`. Free in `null` timing.
    pub fn spend(&self, cost: Cost) -> Spend<'_> {
        unimplemented!("in the next commits")
    }

    // ---- memory ----------------------------------------------------------------------------------

    /// Charges `bytes` of the device's capacity to this process; `OUT_OF_MEMORY` when they do not fit,
    /// and then nothing is charged. Dies with the process. One round trip to the server (none in `null`
    /// timing, where capacity is checked for this process alone).
    pub fn charge(&self, device: usize, bytes: u64) -> CuResult {
        unimplemented!("in the next commits")
    }

    /// Gives back `bytes`; `INVALID_VALUE` for more than this process has charged.
    pub fn discharge(&self, device: usize, bytes: u64) -> CuResult {
        unimplemented!("in the next commits")
    }

    /// Capacity and use of the device. No system call.
    pub fn memory(&self, device: usize) -> Memory {
        unimplemented!("in the next commits")
    }

    // ---- streams ---------------------------------------------------------------------------------

    /// A new stream of the process's context number `context` on `device` (0: the primary context; each
    /// other CUcontext its own number). Contexts take turns on a device; streams of one context run side
    /// by side. `priority` as in CUDA: lower is more urgent. `OUT_OF_MEMORY` beyond 65,536 streams.
    pub fn stream(&self, device: usize, context: u16, priority: i8) -> Result<StreamId, CudaError> {
        unimplemented!("in the next commits")
    }

    /// Gives the stream up. Its pending work still completes, as `cuStreamDestroy` has it.
    pub fn drop_stream(&self, stream: StreamId) {
        unimplemented!("in the next commits")
    }

    /// Submits a kernel that takes `ns` of device time when it holds `sms` SMs (clamped to 1..=all; fewer
    /// free ones make it proportionally slower). No system call, unless 1,024 operations are pending on
    /// the stream: then it blocks until there is room, as a real launch does. `ns` is clamped to a day.
    pub fn launch(&self, stream: StreamId, ns: u64, sms: u32) -> CuResult {
        unimplemented!("in the next commits")
    }

    /// Submits a copy of `ns` (see `DeviceFacts::copy_ns`) on copy engine `engine` (modulo their number).
    pub fn copy(&self, stream: StreamId, engine: u32, ns: u64) -> CuResult {
        unimplemented!("in the next commits")
    }

    /// What `stream` does from now on comes after everything submitted to `leader` so far. No system
    /// call. (For the legacy default stream and its like.)
    pub fn follow(&self, stream: StreamId, leader: StreamId) -> CuResult {
        unimplemented!("in the next commits")
    }

    /// Calls `function` on a thread of the client once everything before it on the stream is complete;
    /// the stream goes on when it returns. A panic of it is swallowed.
    pub fn host_function(&self, stream: StreamId, function: Box<dyn FnOnce() + Send>) -> CuResult {
        unimplemented!("in the next commits")
    }

    /// Waits for everything submitted to the stream.
    pub fn synchronize(&self, stream: StreamId, wait: Wait) -> CuResult {
        unimplemented!("in the next commits")
    }

    /// Waits for everything submitted to any stream of the context, dropped streams included.
    pub fn synchronize_context(&self, device: usize, context: u16, wait: Wait) -> CuResult {
        unimplemented!("in the next commits")
    }

    /// True when everything submitted to the stream is complete. No system call but, once, a wake-up.
    pub fn query(&self, stream: StreamId) -> Result<bool, CudaError> {
        unimplemented!("in the next commits")
    }

    // ---- events ----------------------------------------------------------------------------------

    /// A new event, not recorded. `OUT_OF_MEMORY` beyond 1,048,576.
    pub fn event(&self) -> Result<EventId, CudaError> {
        unimplemented!("in the next commits")
    }

    /// Gives the event up; waits already submitted on it keep their meaning.
    pub fn drop_event(&self, event: EventId) {
        unimplemented!("in the next commits")
    }

    /// The event stands for everything submitted to the stream so far.
    pub fn record(&self, event: EventId, stream: StreamId) -> CuResult {
        unimplemented!("in the next commits")
    }

    /// What the stream does from now on comes after the event's latest record; nothing if there is none.
    /// Across contexts and devices too.
    pub fn wait_event(&self, stream: StreamId, event: EventId) -> CuResult {
        unimplemented!("in the next commits")
    }

    /// True when the event's latest record is complete, or there is none.
    pub fn event_query(&self, event: EventId) -> Result<bool, CudaError> {
        unimplemented!("in the next commits")
    }

    /// Waits for the event's latest record; returns at once if there is none.
    pub fn event_synchronize(&self, event: EventId, wait: Wait) -> CuResult {
        unimplemented!("in the next commits")
    }

    /// Nanoseconds of device time from `start` to `end` (negative if they are the other way round):
    /// `INVALID_HANDLE` if one was never recorded, `NOT_READY` while one is not complete.
    pub fn event_elapsed(&self, start: EventId, end: EventId) -> Result<i64, CudaError> {
        unimplemented!("in the next commits")
    }

    // ---- kernels ---------------------------------------------------------------------------------

    /// What is known about a kernel of this name: `…sim_spin_us_500…` (also `_ns_`, `_ms_`) says it
    /// itself, else the node's table, else the node's default (10 us).
    pub fn kernel(&self, name: &str) -> Kernel {
        unimplemented!("in the next commits")
    }

    /// How long this one launch takes: with the node's noise, and longer the first time.
    pub fn kernel_ns(&self, kernel: &Kernel) -> u64 {
        unimplemented!("in the next commits")
    }

    // ---- objects shared between processes ----------------------------------------------------------

    /// Puts a descriptor where every process of the node can fetch it, under an id nobody can guess. It
    /// is gone when this process dies or [`Client::unshare`]s it.
    pub fn share(&self, object: BorrowedFd<'_>) -> Result<u64, CudaError> {
        unimplemented!("in the next commits")
    }

    pub fn unshare(&self, id: u64) -> CuResult {
        unimplemented!("in the next commits")
    }

    /// A descriptor shared by some process; `INVALID_HANDLE` if there is none of this id.
    pub fn fetch(&self, id: u64) -> Result<OwnedFd, CudaError> {
        unimplemented!("in the next commits")
    }

    // ---- faults ----------------------------------------------------------------------------------

    /// Call it first thing in every entry point, with the base name: counts the call, delays it if so
    /// configured, and gives the error it must return at once, if any. One load when no fault is
    /// configured.
    pub fn fault(&self, function: &'static str) -> Option<CudaError> {
        unimplemented!("in the next commits")
    }
}

/// Guard of [`Client::spend`].
pub struct Spend<'a> {
    client: &'a Client,
    until: u64,
}

/// Truth about the node at one moment, by the server. For NVML and `status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Device time since the node started.
    pub elapsed_ns: u64,
    pub time_scale: u32,
    /// Operations that were published after their device had moved past their stamp.
    pub late_stamps: u64,
    pub devices: Vec<DeviceReport>,
    /// One row per (process, device) that ever held memory or ran work; the dead come last. When very
    /// many have died, the oldest dead are summed into rows with pid 0.
    pub processes: Vec<ProcessReport>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct DeviceReport {
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    pub high_water_bytes: u64,
    /// Time during which any kernel ran.
    pub busy_ns: u64,
    pub switch_ns: u64,
    /// Busy share of the last second of device time, in 1/1000.
    pub busy_permille: u32,
    /// 1: lost by a configured fault.
    pub lost: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ProcessReport {
    pub pid: i32,
    pub device: u32,
    pub used_bytes: u64,
    pub high_water_bytes: u64,
    /// Time during which kernels of the process ran. Σ over rows of a device = the device's `busy_ns`.
    pub busy_ns: u64,
    pub copy_ns: u64,
    /// Kernels submitted.
    pub launches: u64,
    /// As in [`DeviceReport`], for this process.
    pub busy_permille: u32,
    /// 1: the process is dead.
    pub exited: u32,
}

/// A connection that only looks: no memory, no streams, not a user of any device. It keeps a node alive.
pub struct Observer {}

impl Observer {
    /// As [`Client::connect`].
    pub fn connect(place: &Place) -> Result<Observer, ConnectError> {
        unimplemented!("in the next commits")
    }

    pub fn node(&self) -> &NodeFacts {
        unimplemented!("in the next commits")
    }

    pub fn devices(&self) -> &[DeviceFacts] {
        self.node().devices()
    }

    pub fn device_lost(&self, device: usize) -> bool {
        unimplemented!("in the next commits")
    }

    /// The node's truth now. One round trip.
    pub fn report(&self) -> Result<Report, CudaError> {
        unimplemented!("in the next commits")
    }

    /// As [`Client::fault`], with the NVML name and an `nvmlReturn_t`.
    pub fn fault(&self, function: &'static str) -> Option<u32> {
        unimplemented!("in the next commits")
    }
}
