//! What the timeline is told and what it tells: operations, device settings, truth, the sink.

/// Nanoseconds of device time.
pub type Ns = u64;
/// A time that does not come.
pub const NEVER: Ns = u64::MAX;

/// Kernels of one process that a device runs at a time; more wait, as grids do on hardware.
pub const RESIDENT_KERNELS: usize = 128;

/// How contexts share a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One context at a time, round robin. Work-conserving: a context that runs dry gives way at once.
    /// The incoming context pays `switch`.
    Sliced { slice: Ns, switch: Ns },
    /// All side by side, as under MPS. A kernel runs at `1 - interference × (SMs held by other
    /// processes / all SMs)` of its speed; `interference` in 1/1000.
    Together { interference: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceConfig {
    pub sms: u32,
    pub sharing: Sharing,
    /// At least 1.
    pub copy_engines: u32,
    /// What neighbours do to bandwidth, in 1/1000: a kernel loses that much of its speed while copies of
    /// other processes take all of the device's memory bandwidth, and a copy that takes all of it loses
    /// that much while others' kernels hold all SMs or others' copies take it too; less in proportion.
    pub contention: u32,
}

impl Default for DeviceConfig {
    fn default() -> Self {
        DeviceConfig {
            sms: 132,
            sharing: Sharing::Sliced {
                slice: 1_024_000,
                switch: 50_000,
            },
            copy_engines: 2,
            contention: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Takes `ns` while it holds `sms` SMs; with fewer it is proportionally slower.
    Kernel { ns: Ns, sms: u32 },
    /// As `Kernel`, but it begins only when it can hold all its SMs at once, and then keeps them while its
    /// context is resident. Kernels behind it wait until it has begun.
    Cooperative { ns: Ns, sms: u32 },
    /// One party of a kernel that spans streams, processes and devices. It holds its SMs from the start
    /// and makes progress only while all `parties` that named the same `key` are resident with SMs, each
    /// at the speed of the slowest; all end together. Waiting counts as busy. If one dies, the others
    /// stay.
    Rendezvous {
        key: u64,
        parties: u32,
        ns: Ns,
        sms: u32,
    },
    /// A kernel that breaks its context when it ends: everything that the context has queued ends with
    /// it and everything later at once, undone; only host functions are still called.
    Fault { ns: Ns, sms: u32 },
    /// Takes `traffic`/1000 of the device's memory bandwidth meanwhile.
    Copy { engine: u32, ns: Ns, traffic: u32 },
    /// Makes the `generation`th record of the event happen.
    Record { event: u32, generation: u64 },
    /// Blocks the stream until the `generation`th record of the event has happened.
    Await { event: u32, generation: u64 },
    /// Blocks the stream until the host reports the function done.
    Host { cookie: u64 },
}

impl Kind {
    /// Time it takes at full speed.
    pub fn work(&self) -> Ns {
        match *self {
            Kind::Kernel { ns, .. }
            | Kind::Cooperative { ns, .. }
            | Kind::Rendezvous { ns, .. }
            | Kind::Fault { ns, .. }
            | Kind::Copy { ns, .. } => ns,
            Kind::Record { .. } | Kind::Await { .. } | Kind::Host { .. } => 0,
        }
    }

    /// A kernel of any kind.
    pub fn is_launch(&self) -> bool {
        matches!(
            self,
            Kind::Kernel { .. } | Kind::Cooperative { .. } | Kind::Rendezvous { .. } | Kind::Fault { .. }
        )
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Position in its stream, counting from 1 without gaps.
    pub seq: u64,
    pub kind: Kind,
}

/// A stream: the `stream`th of the `client`th process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lane {
    pub client: usize,
    pub stream: usize,
}

/// Where a stream lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    pub device: usize,
    /// Number of the context within its process.
    pub context: u16,
    /// Lower is more urgent.
    pub priority: i8,
}

/// What a process has had of one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Time during which at least one kernel of the process made progress.
    pub busy_ns: u64,
    /// Integral of the SMs held over time.
    pub sm_ns: u64,
    /// Device time spent on switching to its contexts.
    pub switch_ns: u64,
    /// Device time for which its completed copies held an engine.
    pub copy_ns: u64,
    /// Kernels submitted, and of those the completed ones.
    pub launches: u64,
    pub kernels: u64,
    pub slices: u64,
    /// Busy time of the last second.
    pub window: Window,
}

const BUCKETS: u64 = 6;
/// A sixth of a second: the shortest period over which NVML says that it samples.
const BUCKET_NS: Ns = 166_666_667;

/// Busy time in six buckets of a sixth of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Number of the newest bucket; older ones lie before it, modulo their number.
    newest: u64,
    busy: [u32; BUCKETS as usize],
}

impl Window {
    fn advance(&mut self, bucket: u64) {
        if bucket <= self.newest {
            return;
        }
        for gone in (self.newest + 1..=bucket).rev().take(BUCKETS as usize) {
            self.busy[(gone % BUCKETS) as usize] = 0;
        }
        self.newest = bucket;
    }

    /// The time from `from` to `to` was busy.
    pub(super) fn add(&mut self, from: Ns, to: Ns) {
        let last = to / BUCKET_NS;
        let first = (from / BUCKET_NS).max(last.saturating_sub(BUCKETS - 1));
        self.advance(last);
        for bucket in first..=last {
            let start = from.max(bucket * BUCKET_NS);
            let end = to.min((bucket + 1) * BUCKET_NS);
            self.busy[(bucket % BUCKETS) as usize] += end.saturating_sub(start) as u32;
        }
    }

    /// As a sampling driver shows it: the busy share, in 1/1000, of the newest bucket that has ended, and
    /// the time at which it did.
    pub fn sampled(self, now: Ns) -> (u32, Ns) {
        let current = now / BUCKET_NS;
        let Some(last) = current.checked_sub(1) else {
            return (0, 0);
        };
        let kept = last <= self.newest && last + BUCKETS > self.newest;
        let busy = if kept {
            self.busy[(last % BUCKETS) as usize] as u64
        } else {
            0
        };
        let permille = (busy * 1000 + BUCKET_NS / 2) / BUCKET_NS;
        (permille.min(1000) as u32, current * BUCKET_NS)
    }

    /// Busy share of the last second before `now`, in 1/1000.
    pub fn permille(mut self, now: Ns) -> u32 {
        self.advance(now / BUCKET_NS);
        let busy: u64 = self.busy.iter().map(|&b| b as u64).sum();
        let span = (BUCKETS - 1) * BUCKET_NS + now % BUCKET_NS;
        ((busy * 1000 + span / 2) / span).min(1000) as u32
    }
}

/// What the timeline tells the outside world.
pub trait Sink {
    fn completed(&mut self, lane: Lane, seq: u64, at: Ns);
    fn recorded(&mut self, client: usize, event: u32, generation: u64, at: Ns);
    /// The host must now run the function; the stream waits for `Model::host_done`.
    fn host(&mut self, lane: Lane, cookie: u64, at: Ns);
}
