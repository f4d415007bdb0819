//! A node in virtual time: devices, clients and the daemon, driven by one queue of events. The same seed gives the same run.
//! Read next: `tests/scheduling/model/thread.rs`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use stint::scheduler::{DeviceRule, FOREVER, Gate, Rule, Settings};

use super::client::{Client, Doing, Finished};
use super::daemon::{Daemon, Sabotage};
use super::draw::Draw;
use super::engine::{Collective, Costs, Engine, Kind, MS, Sharing, US, Work};
use super::peers::Peer;
use super::program::Program;
use super::truth::Truth;

/// A tenant of a run: its rule, and what its client on each of these devices does.
#[derive(Debug, Clone)]
pub struct Tenant {
    pub rule: Rule,
    pub clients: Vec<(usize, Program)>,
    pub joins_ns: u64,
    pub fate: Fate,
}

/// What happens to a tenant's clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    None,
    /// Killed then.
    Dies(u64),
    /// Stopped from the first instant to the second.
    Stops(u64, u64),
}

/// What goes wrong with the node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trouble {
    /// One doorbell in so many is lost; 0: none.
    pub lost_one_in: u64,
    /// One message in so many comes up to 2 ms late.
    pub late_one_in: u64,
    /// Without a daemon from the first instant to the second.
    pub daemon_dead: Option<(u64, u64)>,
    /// How far back the daemon's clock may jump.
    pub clock_error_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    Step(usize, u64),
    Engine(usize, u64),
    Bell,
    Due(u64),
    Join(usize),
    Die(usize),
    Stop(usize, u64),
    DaemonDies,
    DaemonReturns,
    Look,
}

/// See the module.
pub struct Node {
    pub now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    begun_to_run: bool,
    draw: Draw,
    pub tenants: Vec<Tenant>,
    pub clients: Vec<Client>,
    /// Of each account.
    pub of_account: Vec<Vec<usize>>,
    pub engines: Vec<Engine>,
    engine_turn: Vec<u64>,
    /// Client of each context.
    pub client_of: Vec<Vec<usize>>,
    pub daemon: Daemon,
    pub settings: Settings,
    pub trouble: Trouble,
    ranks: BTreeMap<u32, usize>,
    begun: BTreeMap<Collective, usize>,
    pub truth: Truth,
    /// Instead of the scheduler, another way to share.
    pub peer: Option<Box<dyn Peer>>,
    pub launches: u64,
}

impl Node {
    pub fn new(seed: u64, devices: &[DeviceRule], sharing: Sharing, costs: Costs) -> Node {
        let settings = Settings::default();
        Node {
            now: 0,
            events: BinaryHeap::new(),
            count: 0,
            begun_to_run: false,
            draw: Draw::seeded(seed, 1),
            tenants: Vec::new(),
            clients: Vec::new(),
            of_account: Vec::new(),
            engines: devices.iter().map(|_| Engine::new(sharing, costs)).collect(),
            engine_turn: vec![0; devices.len()],
            client_of: vec![Vec::new(); devices.len()],
            daemon: Daemon::new(settings.clone(), devices.to_vec()),
            settings,
            trouble: Trouble::default(),
            ranks: BTreeMap::new(),
            begun: BTreeMap::new(),
            truth: Truth::default(),
            peer: None,
            launches: 0,
        }
    }

    pub fn add(&mut self, tenant: Tenant) {
        let account = self.tenants.len();
        self.push(tenant.joins_ns, Event::Join(account));
        match tenant.fate {
            Fate::None => {}
            Fate::Dies(at) => self.push(at, Event::Die(account)),
            Fate::Stops(from, to) => self.push(from, Event::Stop(account, to)),
        }
        let high = tenant.rule.priority == stint::config::Priority::High;
        let mut clients = Vec::new();
        for (device, program) in &tenant.clients {
            if let Program::Ranks { communicators, .. } = program {
                for communicator in communicators {
                    *self.ranks.entry(*communicator).or_default() += 1;
                }
            }
            let context = self.engines[*device].add();
            let draw = Draw::seeded(self.draw.between(0, 1 << 60), clients.len() as u64);
            clients.push(self.clients.len());
            self.client_of[*device].push(self.clients.len());
            let mut client = Client::new(account, *device, context, program.clone(), high, draw);
            client.doing = Doing::Dead;
            self.clients.push(client);
        }
        self.of_account.push(clients);
        self.tenants.push(tenant);
    }

    pub fn sabotage(&mut self, sabotage: Sabotage) {
        self.daemon.sabotage = Some(sabotage);
    }

    /// Runs until `end`, looking at the truth every millisecond. Goes on where the last run ended.
    pub fn run(&mut self, end: u64) {
        if !std::mem::replace(&mut self.begun_to_run, true) {
            self.daemon.clock_error_ns = self.trouble.clock_error_ns;
            if let Some((from, to)) = self.trouble.daemon_dead {
                self.push(from, Event::DaemonDies);
                self.push(to, Event::DaemonReturns);
            }
            self.push(0, Event::Look);
        }
        while let Some(Reverse((at, _, event))) = self.events.peek().copied() {
            if at > end {
                break;
            }
            self.events.pop();
            self.now = at;
            self.happen(event);
        }
        self.now = end;
        for device in 0..self.engines.len() {
            self.engines[device].advance(end);
            self.after_engine(device);
        }
    }

    pub(super) fn push(&mut self, at: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at.max(self.now), self.count, event)));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Step(client, turn) => {
                if self.clients[client].turn == turn {
                    self.step(client);
                }
            }
            Event::Engine(device, turn) => {
                if self.engine_turn[device] == turn {
                    self.engines[device].advance(self.now);
                    self.after_engine(device);
                }
            }
            Event::Bell => {
                self.daemon.ringing = false;
                self.decide();
            }
            Event::Due(turn) => {
                if self.daemon.due_turn == turn {
                    self.decide();
                }
            }
            Event::Join(account) => self.join(account),
            Event::Die(account) => self.die(account),
            Event::Stop(account, to) => {
                for client in self.of_account[account].clone() {
                    self.clients[client].stopped = Some(to);
                    self.clients[client].alive_at = self.now;
                }
            }
            Event::DaemonDies => self.daemon_dies(),
            Event::DaemonReturns => {
                let living = |account: usize| {
                    let alive = self.of_account[account]
                        .iter()
                        .any(|client| self.clients[*client].doing != Doing::Dead);
                    let tenant = &self.tenants[account];
                    alive.then(|| {
                        (
                            tenant.rule.clone(),
                            tenant.clients.iter().map(|(device, _)| *device).collect(),
                        )
                    })
                };
                let accounts: Vec<_> = (0..self.tenants.len()).map(living).collect();
                self.daemon.restart(&accounts, self.now);
                self.decide();
            }
            Event::Look => {
                self.push(self.now + MS, Event::Look);
                if let Some(mut peer) = self.peer.take() {
                    for client in peer.tick(self) {
                        self.wake(client, 3 * US, 50 * US);
                    }
                    self.peer = Some(peer);
                }
                for device in 0..self.engines.len() {
                    self.engines[device].advance(self.now);
                    self.after_engine(device);
                }
                let mut truth = std::mem::take(&mut self.truth);
                truth.look(self);
                self.truth = truth;
            }
        }
    }

    fn join(&mut self, account: usize) {
        let tenant = &self.tenants[account];
        let devices: Vec<usize> = tenant.clients.iter().map(|(device, _)| *device).collect();
        if self.daemon.alive {
            let rule = tenant.rule.clone();
            self.daemon.admit(account, &rule, &devices, self.now);
        }
        for client in self.of_account[account].clone() {
            let joining = &mut self.clients[client];
            joining.doing = Doing::Running;
            joining.word.window_ns = self.settings.window_ns;
            if let Program::Ranks { communicators, .. } = &joining.program {
                joining.begun = communicators
                    .iter()
                    .map(|communicator| (*communicator, 0))
                    .collect();
            }
            let after = self.draw.between(0, 500 * US);
            self.step_in(client, after);
        }
        self.ring();
    }

    fn die(&mut self, account: usize) {
        for client in self.of_account[account].clone() {
            let (device, context) = (self.clients[client].device, self.clients[client].context);
            self.clients[client].doing = Doing::Dead;
            self.clients[client].turn += 1;
            self.clients[client].waiting_since = None;
            self.clients[client].demand_until = 0;
            self.engines[device].kill(context, self.now);
            self.after_engine(device);
        }
        if self.daemon.alive {
            self.daemon.remove(account);
        }
        self.ring();
    }

    fn daemon_dies(&mut self) {
        self.daemon.alive = false;
        self.daemon.heartbeat = self.now;
        let stale = self.now + self.settings.stale_ns;
        for client in 0..self.clients.len() {
            if self.clients[client].doing == Doing::Gate {
                let turn = self.clients[client].turn;
                self.push(stale + 1, Event::Step(client, turn));
            }
        }
    }

    /// Gates open by themselves.
    pub(super) fn stale(&self) -> bool {
        !self.daemon.alive && self.now > self.daemon.heartbeat + self.settings.stale_ns
    }

    pub(super) fn step_in(&mut self, client: usize, after: u64) {
        self.clients[client].turn += 1;
        self.clients[client].due = Some(self.now + after);
        let turn = self.clients[client].turn;
        self.push(self.now + after, Event::Step(client, turn));
    }

    pub(super) fn wake(&mut self, client: usize, from: u64, to: u64) {
        let late = self.trouble.late_one_in > 0 && self.draw.one_in(self.trouble.late_one_in);
        let after = if late { 2 * MS } else { self.draw.latency(from, to) };
        if self.clients[client].due.is_none_or(|due| due > self.now + after) {
            self.step_in(client, after);
        }
    }

    /// A doorbell.
    pub fn ring(&mut self) {
        let lost = self.trouble.lost_one_in > 0 && self.draw.one_in(self.trouble.lost_one_in);
        if self.daemon.alive && !self.daemon.ringing && !lost && self.peer.is_none() {
            let late = self.trouble.late_one_in > 0 && self.draw.one_in(self.trouble.late_one_in);
            let after = if late {
                2 * MS
            } else {
                self.draw.latency(3 * US, 50 * US)
            };
            self.daemon.ringing = true;
            self.push(self.now + after, Event::Bell);
        }
    }

    fn decide(&mut self) {
        if !self.daemon.alive || self.peer.is_some() {
            return;
        }
        let decision = self.daemon.decide(&mut self.clients, self.now);
        for client in &mut self.clients {
            client.goals.clear();
        }
        for cut in &decision.cuts {
            if let Some(client) = self.find(cut.account, cut.device) {
                self.clients[client].goals.push((cut.communicator, cut.begun));
            }
        }
        for change in &decision.changes {
            let Some(client) = self.find(change.account, change.device) else {
                continue;
            };
            self.clients[client].word = change.word;
            if self.clients[client].doing == Doing::Gate {
                self.wake(client, 3 * US, 50 * US);
            }
        }
        if self.daemon.sabotage == Some(Sabotage::BlindValve) {
            for client in 0..self.clients.len() {
                let long = self.clients[client]
                    .waiting_since
                    .is_some_and(|since| self.now > since + 12 * MS);
                if self.clients[client].doing == Doing::Gate && long {
                    self.clients[client].word.gate = Gate::Open;
                    self.clients[client].word.lease_ns = FOREVER;
                    self.step_in(client, 3 * US);
                }
            }
        }
        self.daemon.due_turn += 1;
        if let Some(due) = decision.due_ns {
            self.push(due, Event::Due(self.daemon.due_turn));
        }
    }

    fn find(&self, id: stint::scheduler::AccountId, device: usize) -> Option<usize> {
        let account = self.daemon.ids.iter().position(|known| *known == Some(id))?;
        let mut clients = self.of_account[account].iter().copied();
        clients.find(|client| self.clients[*client].device == device)
    }

    /// One of high priority announces work on the device; `lately`: it was seen long enough ago for every gate to know.
    pub fn demand(&self, client: usize) -> bool {
        let device = self.clients[client].device;
        let others = self.client_of[device].iter().map(|other| &self.clients[*other]);
        !self.clients[client].high && others.into_iter().any(|other| other.demand_until > self.now)
    }

    /// Tells clients what ended on a device, and other devices what began.
    pub(super) fn after_engine(&mut self, device: usize) {
        let mut ready = Vec::new();
        loop {
            let began = std::mem::take(&mut self.engines[device].began);
            for (_, collective) in began {
                let ranks = self.ranks.get(&collective.0).copied().unwrap_or(1);
                let begun = self.begun.entry(collective).or_default();
                *begun += 1;
                if *begun == ranks {
                    self.begun.remove(&collective);
                    ready.push(collective);
                }
            }
            let ended = std::mem::take(&mut self.engines[device].ended);
            if ended.is_empty() && self.engines[device].began.is_empty() {
                break;
            }
            for (context, work) in ended {
                self.ended(device, context, work);
            }
        }
        self.engine_turn[device] += 1;
        if let Some(at) = self.engines[device].next() {
            self.push(at, Event::Engine(device, self.engine_turn[device]));
        }
        for collective in ready {
            for other in 0..self.engines.len() {
                self.engines[other].make_ready(collective, self.now);
                self.after_engine(other);
            }
        }
    }

    fn ended(&mut self, device: usize, context: usize, work: Work) {
        let index = self.client_of[device][context];
        let empty = self.engines[device].contexts[context].queue.is_empty();
        let client = &mut self.clients[index];
        client.pieces -= 1;
        let used_ns = if work.kind == Kind::Copy {
            0
        } else {
            client.draw.around(work.length_ns, 0.01)
        };
        let Finished {
            predicted_ns,
            used_ns: used,
        } = client.unseen;
        client.unseen = Finished {
            predicted_ns: predicted_ns + work.predicted_ns,
            used_ns: used + used_ns,
        };
        match client.doing {
            Doing::Gate | Doing::Window => self.wake(index, US, 5 * US),
            Doing::Sync if empty => self.wake(index, 4 * US, 20 * US),
            _ => {}
        }
    }
}
