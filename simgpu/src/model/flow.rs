//! Heads of streams: what starts when, and what a completion lets start.
//!
//! Releases cascade (an event frees a stream whose next operation is an event …), so they go through a
//! work list, never through recursion. Next file of the walk: `model/device.rs`.

use super::device::{Device, Form, Owner, Terms};
use super::op::RESIDENT_KERNELS;
use super::{Client, Head, Home, Kind, Lane, Model, Ns, Sink};

impl Model {
    /// Integrates progress and busy time of a device up to `at`.
    pub(super) fn integrate(&mut self, device: usize, at: Ns) {
        let d = &mut self.devices[device];
        if at <= d.now {
            return;
        }
        let (from, ns) = (d.now, at - d.now);
        d.now = at;
        if let Some((owner, _)) = d.switching {
            d.switch_ns += ns;
            if let Some(client) = self.clients[owner.client].as_mut() {
                client.truth[device].switch_ns += ns;
            }
        }
        d.progress(ns);
        if d.active.is_empty() {
            return;
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

    /// Decides anew what runs on the touched devices, each at its present.
    pub(super) fn replan(&mut self) {
        let mut planned = std::mem::take(&mut self.touched);
        for &device in &planned {
            let clients = &self.clients;
            let terms = |client: usize| terms_of(clients, client);
            let entered = self.devices[device].take_turns(terms);
            self.devices[device].hand_out(terms);
            if let Some(owner) = entered {
                self.count_slice(device, owner);
            }
        }
        if !self.groups.is_empty() {
            self.couple(&mut planned);
        }
        for &device in &planned {
            self.devices[device].find_next();
        }
        planned.clear();
        self.touched = planned;
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
            d.enter(owner, terms_of(&self.clients, owner.client));
            self.count_slice(device, owner);
        }
        let d = &mut self.devices[device];
        let ended: Vec<(Lane, Owner, Form)> = d
            .runs
            .extract_if(.., |r| r.is_over())
            .map(|r| (r.lane, r.owner, r.form))
            .collect();
        for &(lane, _, form) in &ended {
            self.kernel_done(device, lane, at, sink);
            if let Form::Party(group) = form {
                self.end_group(group, at, sink);
            }
        }
        for engine in 0..self.devices[device].engines.len() {
            let engine = &mut self.devices[device].engines[engine];
            let Some(done) = engine.busy.take_if(|busy| busy.left == 0) else {
                continue;
            };
            engine.start_next(at);
            if let Some(client) = self.clients[done.lane.client].as_mut() {
                client.truth[device].copy_ns += at - done.since;
            }
            self.finish_head(done.lane, at, sink);
        }
        for (_, owner, form) in ended {
            if form == Form::Breaking {
                self.break_context(device, owner, at, sink);
            }
        }
        self.touch(device);
        self.settle(sink);
    }

    /// A kernel has left its device: its stream goes on, and another that waited for room may start.
    pub(super) fn kernel_done(&mut self, device: usize, lane: Lane, at: Ns, sink: &mut impl Sink) {
        if let Some(client) = self.clients[lane.client].as_mut() {
            client.truth[device].kernels += 1;
        }
        self.finish_head(lane, at, sink);
        self.unstall(device, lane.client, at);
        self.touch(device);
    }

    /// Everything the context has queued ends, undone; from now on its operations take no time.
    fn break_context(&mut self, device: usize, owner: Owner, at: Ns, sink: &mut impl Sink) {
        let Some(client) = self.clients[owner.client].as_mut() else {
            return;
        };
        if client.is_broken(device, owner.context) {
            return;
        }
        client.broken.push((device, owner.context));
        let of_context = |home: Home| (home.device, home.context) == (device, owner.context);
        let mut lanes = Vec::new();
        for (stream, state) in client.streams.iter_mut().enumerate() {
            if let Some(state) = state.as_deref_mut()
                && of_context(state.home)
                && !matches!(state.head, Head::Idle | Head::Host)
            {
                lanes.push(Lane {
                    client: owner.client,
                    stream,
                });
            }
        }
        let gone = |lane: Lane| lanes.contains(&lane);
        for event in client.events.values_mut() {
            event.waiters.retain(|&(stream, _)| {
                !gone(Lane {
                    client: owner.client,
                    stream,
                })
            });
        }
        let before = self.devices[device].running(owner.client);
        self.devices[device].forget_work(gone);
        let room = before - self.devices[device].running(owner.client);
        for partner in self.leave_groups(gone) {
            self.integrate(partner, at);
            self.touch(partner);
        }
        for lane in lanes {
            self.finish_head(lane, at, sink);
        }
        // One that got room before and was of this context leaves its room, too.
        for _ in 0..room + 1 {
            self.unstall(device, owner.client, at);
        }
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
            self.uncount(done.op.kind);
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
        self.replan();
    }

    /// Starts the head of an idle stream; true if it took no time and the next one may start.
    fn start_head(&mut self, lane: Lane, at: Ns, sink: &mut impl Sink) -> bool {
        let Some(client) = self.clients[lane.client].as_mut() else {
            return false;
        };
        let home = client.stream(lane.stream).map(|s| s.home);
        let broken = home.is_some_and(|home| client.is_broken(home.device, home.context));
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
            _ if broken && !matches!(kind, Kind::Host { .. } | Kind::Record { .. }) => {}
            Kind::Kernel { ns, sms } => return self.start_kernel(lane, home, Form::Plain, ns, sms),
            Kind::Fault { ns, sms } => return self.start_kernel(lane, home, Form::Breaking, ns, sms),
            Kind::Cooperative { ns, sms } => {
                return self.start_kernel(lane, home, Form::Whole { begun: false }, ns, sms);
            }
            Kind::Rendezvous { ns, sms, .. } => {
                return self.start_kernel(lane, home, Form::Party(usize::MAX), ns, sms);
            }
            Kind::Copy { engine, ns, traffic } => {
                stream.head = Head::Copying;
                let engine = engine as usize % device.engines.len();
                device.engines[engine].push(lane, ns, traffic, at);
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
            stream.work_out = done.work;
            client.queued -= 1;
            self.uncount(done.op.kind);
            sink.completed(lane, done.op.seq, at);
        }
        true
    }

    /// Starts a kernel at the head of its stream, or lets it wait for room.
    fn start_kernel(&mut self, lane: Lane, home: Home, form: Form, ns: Ns, sms: u32) -> bool {
        let full = self.devices[home.device].running(lane.client) >= RESIDENT_KERNELS;
        let form = match (full, form, self.head_kind(lane)) {
            (false, Form::Party(_), Some(Kind::Rendezvous { key, parties, .. })) => {
                Form::Party(self.join(home.device, lane, key, parties, ns))
            }
            (_, form, _) => form,
        };
        let device: &mut Device = &mut self.devices[home.device];
        let owner = Owner {
            client: lane.client,
            context: home.context,
        };
        match full {
            true => device.stalled.push_back(lane),
            false => device.start(owner, lane, home.priority, form, ns, sms),
        }
        if let Form::Party(group) = form
            && !full
        {
            self.begin_if_complete(group);
        }
        let client = self.clients[lane.client].as_mut();
        if let Some(stream) = client.and_then(|c| c.stream_mut(lane.stream)) {
            stream.head = if full { Head::Stalled } else { Head::Running };
        }
        false
    }

    fn head_kind(&self, lane: Lane) -> Option<Kind> {
        Some(self.stream(lane)?.queue.front()?.op.kind)
    }

    /// The event that a stream waits for has happened, possibly on another device.
    fn release(&mut self, lane: Lane, at: Ns, sink: &mut impl Sink) {
        let Some(stream) = self.stream(lane) else { return };
        let at = at.max(self.devices[stream.home.device].now);
        self.finish_head(lane, at, sink);
    }
}

impl Client {
    fn is_broken(&self, device: usize, context: u16) -> bool {
        self.broken.contains(&(device, context))
    }
}

fn terms_of(clients: &[Option<Client>], client: usize) -> Terms {
    let none = Terms {
        share: 100,
        slice: None,
    };
    clients
        .get(client)
        .and_then(Option::as_ref)
        .map_or(none, |c| c.terms)
}
