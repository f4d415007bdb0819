//! The timeline of a node's devices. Pure: no clock, no I/O.
//!
//! Callers hand it operations that carry their own submission time and ask it to advance to a moment;
//! everything it reports carries device time that does not depend on how late the caller was. The same
//! stamped operations give the same history, to the nanosecond, however often anybody looks.
//! Time stands still on an idle device, so a stamp before "now" is still placed exactly.
//!
//! Next files of the walk: `model/flow.rs` (heads of streams), then `model/device.rs`.

mod bound;
mod device;
mod flow;
mod group;
mod hand_out;
mod op;
#[cfg(test)]
mod tests;
mod turns;

use device::{Device, Terms};
use group::Group;
pub use op::{DeviceConfig, Home, Kind, Lane, NEVER, Ns, Op, Sharing, Sink, Truth};
use std::collections::{HashMap, VecDeque};

/// What the head of a stream is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Head {
    Idle,
    Running,
    /// Too many kernels of the process are running.
    Stalled,
    Copying,
    Awaiting,
    Host,
}

struct Queued {
    op: Op,
    /// All work of the stream up to and including this.
    work: u64,
}

struct Stream {
    home: Home,
    head: Head,
    queue: VecDeque<Queued>,
    /// Full-speed work submitted and finished so far.
    work_in: u64,
    work_out: u64,
    /// Sequence number of the newest operation.
    newest: u64,
}

#[derive(Default)]
struct Event {
    done: u64,
    waiters: Vec<(usize, u64)>,
}

struct Client {
    streams: Vec<Option<Box<Stream>>>,
    events: HashMap<u32, Event>,
    truth: Vec<Truth>,
    terms: Terms,
    /// Device and context of those that a kernel has broken.
    broken: Vec<(usize, u16)>,
    /// Operations in its queues.
    queued: usize,
}

impl Client {
    fn stream(&self, index: usize) -> Option<&Stream> {
        self.streams.get(index).and_then(|s| s.as_deref())
    }

    fn stream_mut(&mut self, index: usize) -> Option<&mut Stream> {
        self.streams.get_mut(index).and_then(|s| s.as_deref_mut())
    }
}

/// Why an operation was not taken. Its sender does not follow the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    Device,
    /// Sequence numbers of a stream must not have gaps.
    Sequence,
    /// A stream with pending work moved to another device or context.
    Moved,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Census {
    pub clients: usize,
    /// Kernels and copies at a device.
    pub in_flight: usize,
}

pub struct Model {
    devices: Vec<Device>,
    clients: Vec<Option<Client>>,
    /// Streams whose head may start, and the moment it may. The work list of `flow.rs`.
    ready: VecDeque<(Lane, Ns)>,
    /// Devices to plan anew when the work list is empty.
    touched: Vec<usize>,
    /// Kernels that meet others.
    groups: Vec<Option<Group>>,
    host_ops: usize,
    /// Kernels queued that will break their context: then every bound is the next event.
    breaking: usize,
    late: u64,
    late_max: Ns,
}

impl Model {
    pub fn new(devices: &[DeviceConfig]) -> Model {
        Model {
            devices: devices.iter().cloned().map(Device::new).collect(),
            clients: Vec::new(),
            ready: VecDeque::new(),
            touched: Vec::new(),
            groups: Vec::new(),
            host_ops: 0,
            breaking: 0,
            late: 0,
            late_max: 0,
        }
    }

    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// A new process; `share` in percent. Its number is free again after `remove_client`.
    pub fn add_client(&mut self, share: u32) -> usize {
        let client = Client {
            streams: Vec::new(),
            events: HashMap::new(),
            truth: vec![Truth::default(); self.devices.len()],
            terms: Terms {
                share: share.clamp(1, 100),
                slice: None,
            },
            broken: Vec::new(),
            queued: 0,
        };
        match self.clients.iter().position(Option::is_none) {
            Some(free) => {
                self.clients[free] = Some(client);
                free
            }
            None => {
                self.clients.push(Some(client));
                self.clients.len() - 1
            }
        }
    }

    /// For a process without work: the most SMs, in percent, it may hold when contexts run together.
    pub fn set_share(&mut self, client: usize, share: u32) {
        if let Some(client) = self.clients.get_mut(client).and_then(Option::as_mut) {
            client.terms.share = share.clamp(1, 100);
        }
    }

    /// From `at` on the process's contexts have slices of their own length, or again the device's.
    pub fn set_slice(&mut self, client: usize, slice: Option<Ns>, at: Ns, sink: &mut impl Sink) {
        self.advance(at, sink);
        if let Some(client) = self.clients.get_mut(client).and_then(Option::as_mut) {
            client.terms.slice = slice;
        }
    }

    /// An operation submitted at `at`. Everything before `at` must have been processed (`advance`).
    pub fn submit(
        &mut self,
        lane: Lane,
        home: Home,
        at: Ns,
        op: Op,
        sink: &mut impl Sink,
    ) -> Result<(), Refused> {
        if home.device >= self.devices.len() {
            return Err(Refused::Device);
        }
        let Some(client) = self.clients.get_mut(lane.client).and_then(Option::as_mut) else {
            return Ok(());
        };
        if client.streams.len() <= lane.stream {
            client.streams.resize_with(lane.stream + 1, || None);
        }
        let stream = client.streams[lane.stream].get_or_insert_with(|| Box::new(Stream::new(home)));
        if op.seq != stream.newest + 1 {
            return Err(Refused::Sequence);
        }
        if stream.home != home {
            if !stream.queue.is_empty() {
                return Err(Refused::Moved);
            }
            stream.home = home;
        }
        stream.newest = op.seq;
        stream.work_in += op.kind.work();
        stream.queue.push_back(Queued {
            op,
            work: stream.work_in,
        });
        client.queued += 1;
        match op.kind {
            Kind::Host { .. } => self.host_ops += 1,
            Kind::Fault { .. } => self.breaking += 1,
            _ => {}
        }
        client.truth[home.device].launches += op.kind.is_launch() as u64;
        if stream.queue.len() == 1 {
            let at = self.not_before(home.device, at);
            self.ready.push_back((lane, at));
            self.settle(sink);
        }
        Ok(())
    }

    /// The host has finished the function that blocks the stream. Ignored if none does.
    pub fn host_done(&mut self, lane: Lane, at: Ns, sink: &mut impl Sink) {
        let Some(stream) = self.stream(lane) else { return };
        if stream.head == Head::Host {
            let at = self.not_before(stream.home.device, at);
            self.finish_head(lane, at, sink);
            self.settle(sink);
        }
    }

    /// Earliest time at which anything happens by itself.
    pub fn next(&self) -> Ns {
        self.devices.iter().map(|d| d.next).min().unwrap_or(NEVER)
    }

    /// Processes everything that happens at or before `limit`, in order of time over all devices.
    pub fn advance(&mut self, limit: Ns, sink: &mut impl Sink) {
        while let Some(device) = (0..self.devices.len()).min_by_key(|&i| self.devices[i].next) {
            let at = self.devices[device].next;
            if at > limit || at == NEVER {
                return;
            }
            self.step(device, at, sink);
        }
    }

    /// Operations queued by the client.
    pub fn queued(&self, client: usize) -> usize {
        self.clients
            .get(client)
            .and_then(Option::as_ref)
            .map_or(0, |c| c.queued)
    }

    /// Host functions queued or running: they act on the host without anybody waiting for them.
    pub fn host_ops(&self) -> usize {
        self.host_ops
    }

    /// Operations that came when their device was already past their stamp, and the worst case.
    pub fn late(&self) -> (u64, Ns) {
        (self.late, self.late_max)
    }

    /// Removes the process and all its work, at `at`; gives its truth per device.
    pub fn remove_client(&mut self, client: usize, at: Ns, sink: &mut impl Sink) -> Vec<Truth> {
        self.advance(at, sink);
        for device in 0..self.devices.len() {
            let at = at.max(self.devices[device].now);
            if self.devices[device].knows(client) {
                self.integrate(device, at);
            }
            self.devices[device].forget(client);
        }
        let partners = self.leave_groups(|lane| lane.client == client);
        let Some(gone) = self.clients.get_mut(client).and_then(Option::take) else {
            return Vec::new();
        };
        for queued in gone.streams.iter().flatten().flat_map(|s| s.queue.iter()) {
            self.uncount(queued.op.kind);
        }
        for device in partners {
            // Theirs happens now.
            let now = at.max(self.devices[device].now);
            self.integrate(device, now);
        }
        self.touched.extend(0..self.devices.len());
        self.replan();
        gone.truth
    }

    /// The process's truth at `at`, with what running work has done so far. Only looks.
    pub fn truth(&self, client: usize, device: usize, at: Ns) -> Truth {
        let Some(c) = self.clients.get(client).and_then(Option::as_ref) else {
            return Truth::default();
        };
        let d = &self.devices[device];
        let mut truth = c.truth[device];
        if d.switching.is_some_and(|(owner, _)| owner.client == client) {
            truth.switch_ns += at.min(d.next).max(d.now) - d.now;
        }
        if let Some((_, held)) = d.active.iter().find(|(owner, _)| *owner == client) {
            let until = at.min(d.next).max(d.now);
            truth.busy_ns += until - d.now;
            truth.sm_ns += (until - d.now) * *held as u64;
            truth.window.add(d.now, until);
        }
        truth
    }

    /// Of the device until `at`: time with any kernel making progress, time spent switching contexts,
    /// busy share of the last second in 1/1000.
    pub fn device_truth(&self, device: usize, at: Ns) -> (u64, u64, u32) {
        let d = &self.devices[device];
        let until = at.min(d.next).max(d.now);
        let (mut busy, mut switch, mut window) = (d.busy_ns, d.switch_ns, d.window);
        if !d.active.is_empty() {
            busy += until - d.now;
            window.add(d.now, until);
        }
        if d.switching.is_some() {
            switch += until - d.now;
        }
        (busy, switch, window.permille(at))
    }

    /// The same of the window of the device that its utilisation is sampled over.
    pub fn device_sampled(&self, device: usize, at: Ns) -> (u32, Ns) {
        let d = &self.devices[device];
        let mut window = d.window;
        if !d.active.is_empty() {
            window.add(d.now, at.min(d.next).max(d.now));
        }
        window.sampled(at)
    }

    pub fn census(&self) -> Census {
        let copies = |d: &Device| -> usize {
            d.engines
                .iter()
                .map(|e| e.queue.len() + e.busy.is_some() as usize)
                .sum()
        };
        Census {
            clients: self.clients.iter().flatten().count(),
            in_flight: self
                .devices
                .iter()
                .map(|d| d.runs.len() + d.stalled.len() + copies(d))
                .sum(),
        }
    }

    fn stream(&self, lane: Lane) -> Option<&Stream> {
        self.clients.get(lane.client)?.as_ref()?.stream(lane.stream)
    }

    /// The operation is no longer queued.
    fn uncount(&mut self, kind: Kind) {
        match kind {
            Kind::Host { .. } => self.host_ops -= 1,
            Kind::Fault { .. } => self.breaking -= 1,
            _ => {}
        }
    }

    /// `at`, or the device's present if that is later: then the stamp came late and is counted.
    fn not_before(&mut self, device: usize, at: Ns) -> Ns {
        let now = self.devices[device].now;
        if at < now {
            self.late += 1;
            self.late_max = self.late_max.max(now - at);
        }
        at.max(now)
    }
}

impl Stream {
    fn new(home: Home) -> Stream {
        Stream {
            home,
            head: Head::Idle,
            queue: VecDeque::new(),
            work_in: 0,
            work_out: 0,
            newest: 0,
        }
    }
}
