//! One device: its kernels, its copy engines, and when something happens next.
//!
//! Pure arithmetic on integers. Work is counted in 2⁻³² ns, so splitting an interval never changes what
//! comes out. Next files of the walk: `model/turns.rs` (whose turn it is), `model/hand_out.rs` (who holds
//! what), then `server/publish.rs`.

use super::op::{DeviceConfig, Lane, NEVER, Ns, Window};
use std::collections::VecDeque;

/// Full speed: units of work per nanosecond.
pub(super) const FULL: u64 = 1 << 32;

/// A context of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub client: usize,
    pub context: u16,
}

/// What the process of a context may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// Most SMs when contexts run together, in percent.
    pub share: u32,
    /// Its own slice, if it is not the device's.
    pub slice: Option<Ns>,
}

/// What is particular about a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    /// All its SMs at once or none.
    Whole {
        begun: bool,
    },
    /// Of the group of this number.
    Party(usize),
    /// Its end breaks the context.
    Breaking,
}

/// A kernel at the head of its stream.
pub(super) struct Run {
    pub owner: Owner,
    pub lane: Lane,
    pub priority: i8,
    pub form: Form,
    /// SMs it could use.
    pub sms: u32,
    /// Units of work left.
    pub left: u128,
    pub held: u32,
    /// Units per nanosecond, 0 to `FULL`, that it could do with what it holds.
    pub speed: u64,
    /// Units per nanosecond that it does: less than `speed` only for a party of a group.
    pub rate: u64,
}

impl Run {
    /// Nanoseconds of work left at full speed, rounded up.
    pub fn left_ns(&self) -> Ns {
        self.left.div_ceil(FULL as u128) as Ns
    }

    pub fn is_over(&self) -> bool {
        self.rate > 0 && self.left == 0
    }
}

/// Nanoseconds until `left` units of work are done, rounded up.
fn ends_after(left: u128, rate: u64) -> Ns {
    match rate {
        0 => NEVER,
        rate => left.div_ceil(rate as u128).min(NEVER as u128) as Ns,
    }
}

/// A copy on an engine.
pub(super) struct Transfer {
    pub lane: Lane,
    /// Units of work left.
    pub left: u128,
    pub rate: u64,
    /// Memory bandwidth it takes, in 1/1000.
    pub traffic: u32,
    pub since: Ns,
}

impl Transfer {
    pub fn left_ns(&self) -> Ns {
        self.left.div_ceil(FULL as u128) as Ns
    }
}

/// A copy that waits: lane, duration at full speed, traffic.
type Waiting = (Lane, Ns, u32);

/// A copy engine: first come, first served.
#[derive(Default)]
pub(super) struct Engine {
    /// The copy under way.
    pub busy: Option<Transfer>,
    pub queue: VecDeque<Waiting>,
}

impl Engine {
    pub fn push(&mut self, lane: Lane, ns: Ns, traffic: u32, now: Ns) {
        self.queue.push_back((lane, ns, traffic));
        if self.busy.is_none() {
            self.start_next(now);
        }
    }

    pub fn start_next(&mut self, now: Ns) {
        self.busy = self.queue.pop_front().map(|(lane, ns, traffic)| Transfer {
            lane,
            left: ns as u128 * FULL as u128,
            rate: FULL,
            traffic: traffic.min(1000),
            since: now,
        });
    }

    /// Takes the copy off, under way or waiting.
    fn forget(&mut self, gone: impl Fn(Lane) -> bool, now: Ns) {
        self.queue.retain(|(lane, ..)| !gone(*lane));
        if self.busy.as_ref().is_some_and(|busy| gone(busy.lane)) {
            self.start_next(now);
        }
    }
}

pub(super) struct Device {
    pub config: DeviceConfig,
    /// Everything up to here is integrated. Stands still while nothing happens.
    pub now: Ns,
    /// When something happens by itself.
    pub next: Ns,
    /// Running kernels, most urgent first, then by arrival.
    pub runs: Vec<Run>,
    /// Heads that found too many kernels of their process running.
    pub stalled: VecDeque<Lane>,
    pub engines: Vec<Engine>,
    pub resident: Option<Owner>,
    /// Resident last: coming back costs no switch.
    pub last: Option<Owner>,
    pub switching: Option<(Owner, Ns)>,
    /// Contexts with runs, in the order of their turns; the resident one is not among them.
    pub turns: VecDeque<Owner>,
    pub slice_start: Ns,
    pub slice_end: Ns,
    /// Processes that make progress, and the SMs they hold.
    pub active: Vec<(usize, u32)>,
    pub busy_ns: u64,
    pub switch_ns: u64,
    pub window: Window,
}

impl Device {
    pub fn new(config: DeviceConfig) -> Device {
        Device {
            now: 0,
            next: NEVER,
            runs: Vec::new(),
            stalled: VecDeque::new(),
            engines: (0..config.copy_engines.max(1))
                .map(|_| Engine::default())
                .collect(),
            resident: None,
            last: None,
            switching: None,
            turns: VecDeque::new(),
            slice_start: 0,
            slice_end: NEVER,
            active: Vec::new(),
            busy_ns: 0,
            switch_ns: 0,
            window: Window::default(),
            config,
        }
    }

    /// Adds a kernel behind those of its priority.
    pub fn start(&mut self, owner: Owner, lane: Lane, priority: i8, form: Form, ns: Ns, sms: u32) {
        let run = Run {
            owner,
            lane,
            priority,
            form,
            sms: sms.clamp(1, self.config.sms),
            left: ns as u128 * FULL as u128,
            held: 0,
            speed: 0,
            rate: 0,
        };
        let at = self
            .runs
            .iter()
            .rposition(|r| r.priority <= priority)
            .map_or(0, |i| i + 1);
        self.runs.insert(at, run);
    }

    pub fn running(&self, client: usize) -> usize {
        self.runs.iter().filter(|r| r.owner.client == client).count()
    }

    pub fn run(&self, lane: Lane) -> Option<&Run> {
        self.runs.iter().find(|r| r.lane == lane)
    }

    pub fn run_mut(&mut self, lane: Lane) -> Option<&mut Run> {
        self.runs.iter_mut().find(|r| r.lane == lane)
    }

    /// True if anything of the client is here.
    pub fn knows(&self, client: usize) -> bool {
        let copies = |e: &Engine| e.busy.as_ref().is_some_and(|busy| busy.lane.client == client);
        self.runs.iter().any(|r| r.owner.client == client)
            || self.engines.iter().any(copies)
            || self.resident.is_some_and(|owner| owner.client == client)
            || self.switching.is_some_and(|(owner, _)| owner.client == client)
    }

    /// Forgets everything of the client, at the device's present.
    pub fn forget(&mut self, client: usize) {
        self.forget_work(|lane| lane.client == client);
        self.turns.retain(|owner| owner.client != client);
        if self.resident.is_some_and(|owner| owner.client == client) {
            self.resident = None;
        }
        if self.switching.is_some_and(|(owner, _)| owner.client == client) {
            self.switching = None;
        }
        if self.last.is_some_and(|owner| owner.client == client) {
            // Nobody any more, but who comes next pays for the switch all the same.
            self.last = Some(Owner {
                client: usize::MAX,
                context: 0,
            });
        }
    }

    /// Takes the kernels and copies of these streams off, at the device's present.
    pub fn forget_work(&mut self, gone: impl Fn(Lane) -> bool) {
        self.runs.retain(|r| !gone(r.lane));
        self.stalled.retain(|lane| !gone(*lane));
        for engine in &mut self.engines {
            engine.forget(&gone, self.now);
        }
    }

    /// Progress of everything during the `ns` up to the device's new present.
    pub fn progress(&mut self, ns: Ns) {
        for run in &mut self.runs {
            run.left = run.left.saturating_sub(run.rate as u128 * ns as u128);
        }
        for busy in self.engines.iter_mut().filter_map(|e| e.busy.as_mut()) {
            busy.left = busy.left.saturating_sub(busy.rate as u128 * ns as u128);
        }
    }

    /// Finds the next event, once everything has its rate.
    pub fn find_next(&mut self) {
        let mut next = self.slice_end;
        for run in &self.runs {
            next = next.min(self.now.saturating_add(ends_after(run.left, run.rate)));
        }
        if let Some((_, end)) = self.switching {
            next = next.min(end);
        }
        for busy in self.engines.iter().filter_map(|e| e.busy.as_ref()) {
            next = next.min(self.now.saturating_add(ends_after(busy.left, busy.rate)));
        }
        self.next = next;
    }
}
