//! Heads of streams: what starts when, and what a completion lets start.
//!
//! Releases cascade (an event frees a stream whose next operation is an event …), so they go through a
//! work list, never through recursion. Next file of the walk: `model/device.rs`.

use super::device::{Device, Owner};
use super::op::RESIDENT_KERNELS;
use super::{Head, Kind, Lane, Model, Ns, Sink};

impl Model {
    /// Integrates progress and busy time of a device up to `at`.
    pub(super) fn integrate(&mut self, device: usize, at: Ns) {
        let d = &mut self.devices[device];
        if at <= d.now {
            return;
        }
        let (from, ns) = (d.now, at - d.now);
        d.now = at;
        if d.switching.is_some() {
            d.switch_ns += ns;
        }
        if d.active.is_empty() {
            return;
        }
        for run in &mut d.runs {
            run.left = run.left.saturating_sub(run.rate as u128 * ns as u128);
        }
        d.busy_ns += ns;
        d.window.add(from, at);
        for &(client, held) in &d.active {
            if let Some(client) = self.clients[client].as_mut() {
                let truth = &mut client.truth[device];
                truth.busy_ns += ns;
                truth.sm_ns += ns * held as u64;
                truth.window.add(from, at);
            }
        }
    }

    /// Decides anew what runs on the device, at its present.
    pub(super) fn plan(&mut self, device: usize) {
        let clients = &self.clients;
        let share = |client: usize| clients[client].as_ref().map_or(100, |c| c.share);
        if let Some(owner) = self.devices[device].plan(share) {
            self.count_slice(device, owner);
        }
    }

    fn count_slice(&mut self, device: usize, owner: Owner) {
        if let Some(client) = self.clients[owner.client].as_mut() {
            client.truth[device].slices += 1;
        }
    }

    /// Handles what is due on one device at `at` (its `next`).
    pub(super) fn step(&mut self, device: usize, at: Ns, sink: &mut impl Sink) {
        self.integrate(device, at);
        let d = &mut self.devices[device];
        if let Some((owner, end)) = d.switching
            && end <= at
        {
            d.switching = None;
            d.enter(owner);
            self.count_slice(device, owner);
        }
        let d = &mut self.devices[device];
        let ended: Vec<Lane> = d
            .runs
            .extract_if(.., |r| r.rate > 0 && r.left == 0)
            .map(|r| r.lane)
            .collect();
        for lane in ended {
            if let Some(client) = self.clients[lane.client].as_mut() {
                client.truth[device].kernels += 1;
            }
            self.finish_head(lane, at, sink);
            self.unstall(device, lane.client, at);
        }
        for engine in 0..self.devices[device].engines.len() {
            let Some((lane, end)) = self.devices[device].engines[engine].busy else {
                continue;
            };
            if end <= at {
                self.devices[device].engines[engine].start_next(at);
                let ns = self
                    .stream(lane)
                    .and_then(|s| s.queue.front())
                    .map_or(0, |q| q.op.kind.work());
                if let Some(client) = self.clients[lane.client].as_mut() {
                    client.truth[device].copy_ns += ns;
                }
                self.finish_head(lane, at, sink);
            }
        }
        self.touch(device);
        self.settle(sink);
    }

    /// The head of the stream is done at `at`: reports it; what follows goes on the work list.
    pub(super) fn finish_head(&mut self, lane: Lane, at: Ns, sink: &mut impl Sink) {
        let Some(client) = self.clients[lane.client].as_mut() else {
            return;
        };
        let Some(stream) = client.stream_mut(lane.stream) else {
            return;
        };
        stream.head = Head::Idle;
        if let Some(done) = stream.queue.pop_front() {
            stream.work_out = done.work;
            client.queued -= 1;
            sink.completed(lane, done.op.seq, at);
        }
        self.ready.push_back((lane, at));
    }

    /// A kernel of the process ended: one that waited for room may start.
    fn unstall(&mut self, device: usize, client: usize, at: Ns) {
        let stalled = &mut self.devices[device].stalled;
        if let Some(i) = stalled.iter().position(|lane| lane.client == client)
            && let Some(lane) = stalled.remove(i)
        {
            if let Some(stream) = self.clients[client]
                .as_mut()
                .and_then(|c| c.stream_mut(lane.stream))
            {
                stream.head = Head::Idle;
            }
            self.ready.push_back((lane, at));
        }
    }

    fn touch(&mut self, device: usize) {
        if !self.touched.contains(&device) {
            self.touched.push(device);
        }
    }

    /// Works the list off, then plans every device it touched.
    pub(super) fn settle(&mut self, sink: &mut impl Sink) {
        while let Some((lane, at)) = self.ready.pop_front() {
            let Some(stream) = self.stream(lane) else { continue };
            let device = stream.home.device;
            let at = at.max(self.devices[device].now);
            self.integrate(device, at);
            self.touch(device);
            while self.start_head(lane, at, sink) {}
        }
        while let Some(device) = self.touched.pop() {
            self.plan(device);
        }
    }

    /// Starts the head of an idle stream; true if it took no time and the next one may start.
    fn start_head(&mut self, lane: Lane, at: Ns, sink: &mut impl Sink) -> bool {
        let Some(client) = self.clients[lane.client].as_mut() else {
            return false;
        };
        let Some(stream) = client.streams[lane.stream].as_deref_mut() else {
            return false;
        };
        if stream.head != Head::Idle {
            return false;
        }
        let Some(front) = stream.queue.front() else {
            return false;
        };
        let (home, kind) = (stream.home, front.op.kind);
        let device = &mut self.devices[home.device];
        match kind {
            Kind::Kernel { ns, sms } => {
                stream.head = start_kernel(device, lane, home.context, home.priority, ns, sms);
                return false;
            }
            Kind::Copy { engine, ns } => {
                stream.head = Head::Copying;
                let engine = engine as usize % device.engines.len();
                device.engines[engine].push(lane, ns, at);
                return false;
            }
            Kind::Host { cookie } => {
                stream.head = Head::Host;
                sink.host(lane, cookie, at);
                return false;
            }
            Kind::Await { event, generation } => {
                let event = client.events.entry(event).or_default();
                if event.done < generation {
                    event.waiters.push((lane.stream, generation));
                    stream.head = Head::Awaiting;
                    return false;
                }
            }
            Kind::Record {
                event: id,
                generation,
            } => {
                let event = client.events.entry(id).or_default();
                event.done = event.done.max(generation);
                let done = event.done;
                let released: Vec<_> = event.waiters.extract_if(.., |w| w.1 <= done).collect();
                sink.recorded(lane.client, id, generation, at);
                for (stream, _) in released {
                    self.release(
                        Lane {
                            client: lane.client,
                            stream,
                        },
                        at,
                        sink,
                    );
                }
            }
        }
        let Some(client) = self.clients[lane.client].as_mut() else {
            return false;
        };
        let Some(stream) = client.streams[lane.stream].as_deref_mut() else {
            return false;
        };
        if let Some(done) = stream.queue.pop_front() {
            client.queued -= 1;
            sink.completed(lane, done.op.seq, at);
        }
        true
    }

    /// The event that a stream waits for has happened, possibly on another device.
    fn release(&mut self, lane: Lane, at: Ns, sink: &mut impl Sink) {
        let Some(stream) = self.stream(lane) else { return };
        let at = at.max(self.devices[stream.home.device].now);
        self.finish_head(lane, at, sink);
    }
}

fn start_kernel(device: &mut Device, lane: Lane, context: u16, priority: i8, ns: Ns, sms: u32) -> Head {
    if device.running(lane.client) >= RESIDENT_KERNELS {
        device.stalled.push_back(lane);
        return Head::Stalled;
    }
    device.start(
        Owner {
            client: lane.client,
            context,
        },
        lane,
        priority,
        ns,
        sms,
    );
    Head::Running
}
