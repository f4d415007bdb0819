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
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Takes `ns` while it holds `sms` SMs; with fewer it is proportionally slower.
    Kernel {
        ns: Ns,
        sms: u32,
    },
    Copy {
        engine: u32,
        ns: Ns,
    },
    /// Makes the `generation`th record of the event happen.
    Record {
        event: u32,
        generation: u64,
    },
    /// Blocks the stream until the `generation`th record of the event has happened.
    Await {
        event: u32,
        generation: u64,
    },
    /// Blocks the stream until the host reports the function done.
    Host {
        cookie: u64,
    },
}

impl Kind {
    /// Time it takes at full speed.
    pub fn work(&self) -> Ns {
        match *self {
            Kind::Kernel { ns, .. } | Kind::Copy { ns, .. } => ns,
            _ => 0,
        }
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
    pub copy_ns: u64,
    /// Kernels submitted, and of those the completed ones.
    pub launches: u64,
    pub kernels: u64,
    pub slices: u64,
    /// Busy time of the last second.
    pub window: Window,
}

const BUCKETS: u64 = 8;
const BUCKET_NS: Ns = 125_000_000;

/// Busy time in eight buckets of 125 ms.
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
