//! One device: which context is resident, who holds how many SMs, and when something happens next.
//!
//! Pure arithmetic on integers. Work is counted in 2⁻³² ns, so splitting an interval never changes what
//! comes out. Next file of the walk: `server/publish.rs`.

use super::op::{DeviceConfig, Lane, NEVER, Ns, Sharing, Window};
use std::collections::VecDeque;

/// Full speed: units of work per nanosecond.
pub(super) const FULL: u64 = 1 << 32;

/// A context of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub client: usize,
    pub context: u16,
}

/// A kernel at the head of its stream.
pub(super) struct Run {
    pub owner: Owner,
    pub lane: Lane,
    pub priority: i8,
    /// SMs it could use.
    pub sms: u32,
    /// Units of work left.
    pub left: u128,
    pub held: u32,
    /// Units per nanosecond, 0 to `FULL`.
    pub rate: u64,
}

impl Run {
    /// Nanoseconds of work left at full speed, rounded up.
    pub fn left_ns(&self) -> Ns {
        self.left.div_ceil(FULL as u128) as Ns
    }

    fn ends_after(&self) -> Ns {
        match self.rate {
            0 => NEVER,
            FULL => self.left_ns(),
            rate => self.left.div_ceil(rate as u128).min(NEVER as u128) as Ns,
        }
    }
}

/// A copy engine: first come, first served.
#[derive(Default)]
pub(super) struct Engine {
    /// The copy under way and its end.
    pub busy: Option<(Lane, Ns)>,
    pub queue: VecDeque<(Lane, Ns)>,
}

impl Engine {
    pub fn push(&mut self, lane: Lane, ns: Ns, now: Ns) {
        match self.busy {
            None => self.busy = Some((lane, now + ns)),
            Some(_) => self.queue.push_back((lane, ns)),
        }
    }

    pub fn start_next(&mut self, now: Ns) {
        self.busy = self.queue.pop_front().map(|(lane, ns)| (lane, now + ns));
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
    last: Option<Owner>,
    pub switching: Option<(Owner, Ns)>,
    /// Contexts with runs, in the order of their turns; the resident one is not among them.
    turns: VecDeque<Owner>,
    slice_start: Ns,
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
    pub fn start(&mut self, owner: Owner, lane: Lane, priority: i8, ns: Ns, sms: u32) {
        let run = Run {
            owner,
            lane,
            priority,
            sms: sms.clamp(1, self.config.sms),
            left: ns as u128 * FULL as u128,
            held: 0,
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

    /// True if anything of the client is here.
    pub fn knows(&self, client: usize) -> bool {
        self.runs.iter().any(|r| r.owner.client == client)
            || self
                .engines
                .iter()
                .any(|e| e.busy.is_some_and(|(lane, _)| lane.client == client))
            || self.resident.is_some_and(|owner| owner.client == client)
    }

    /// Forgets everything of the client, at the device's present.
    pub fn forget(&mut self, client: usize) {
        self.runs.retain(|r| r.owner.client != client);
        self.stalled.retain(|lane| lane.client != client);
        self.turns.retain(|owner| owner.client != client);
        for engine in &mut self.engines {
            engine.queue.retain(|(lane, _)| lane.client != client);
            if engine.busy.is_some_and(|(lane, _)| lane.client == client) {
                engine.start_next(self.now);
            }
        }
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

    /// Decides residency, hands out the SMs, finds the next event. `share(client)` is the most SMs, in
    /// percent, that the process may hold when contexts run together. Returns the context that became
    /// resident, if one did.
    pub fn plan(&mut self, share: impl Fn(usize) -> u32) -> Option<Owner> {
        let entered = match self.config.sharing {
            Sharing::Sliced { slice, switch } => self.take_turns(slice, switch),
            Sharing::Together { .. } => None,
        };
        self.hand_out(share);
        let now = self.now;
        let mut next = self.slice_end;
        for run in &self.runs {
            next = next.min(now.saturating_add(run.ends_after()));
        }
        if let Some((_, end)) = self.switching {
            next = next.min(end);
        }
        for engine in &self.engines {
            next = next.min(engine.busy.map_or(NEVER, |(_, end)| end));
        }
        self.next = next;
        entered
    }

    /// Earlier and more urgent kernels first, later ones get what is left over.
    fn hand_out(&mut self, share: impl Fn(usize) -> u32) {
        let total = self.config.sms;
        let mut free = total;
        self.active.clear();
        for run in &mut self.runs {
            (run.held, run.rate) = (0, 0);
            let mine = self
                .active
                .iter_mut()
                .find(|(client, _)| *client == run.owner.client);
            let mut want = run.sms.min(free);
            match self.config.sharing {
                Sharing::Sliced { .. } if self.resident != Some(run.owner) => continue,
                Sharing::Sliced { .. } => {}
                Sharing::Together { .. } => {
                    let cap = (total as u64 * share(run.owner.client) as u64 / 100).max(1) as u32;
                    want = want.min(cap.saturating_sub(mine.as_ref().map_or(0, |(_, held)| *held)));
                }
            }
            if want == 0 {
                continue;
            }
            run.held = want;
            run.rate = FULL * want as u64 / run.sms as u64;
            free -= want;
            match mine {
                Some((_, held)) => *held += want,
                None => self.active.push((run.owner.client, want)),
            }
        }
        let Sharing::Together { interference } = self.config.sharing else {
            return;
        };
        for run in self.runs.iter_mut().filter(|r| r.held > 0) {
            let mine = self.active.iter().find(|(client, _)| *client == run.owner.client);
            let others = (total - free) - mine.map_or(0, |(_, held)| *held);
            // In 1/1000 of 1/total; never slower than 1 %.
            let whole = 1000 * total as u64;
            let lost = (interference as u64 * others as u64).min(whole - whole / 100);
            run.rate = (run.rate as u128 * (whole - lost) as u128 / whole as u128).max(1) as u64;
        }
    }

    fn take_turns(&mut self, slice: Ns, switch: Ns) -> Option<Owner> {
        // Contexts whose kernels are all done leave their turn; new ones line up.
        let (runs, resident) = (&self.runs, self.resident);
        self.turns
            .retain(|&owner| Some(owner) != resident && runs.iter().any(|r| r.owner == owner));
        for run in &self.runs {
            if Some(run.owner) != self.resident && !self.turns.contains(&run.owner) {
                self.turns.push_back(run.owner);
            }
        }
        if self.switching.is_some() {
            return None;
        }
        let Some(&to) = self.turns.front() else {
            self.slice_end = NEVER;
            return None;
        };
        if let Some(resident) = self.resident
            && self.runs.iter().any(|r| r.owner == resident)
        {
            if self.slice_end == NEVER {
                // Company arrived: the current slice runs out on its own grid.
                let slices = (self.now - self.slice_start).div_ceil(slice.max(1)).max(1);
                self.slice_end = self.slice_start + slices * slice.max(1);
            }
            if self.now < self.slice_end {
                return None;
            }
            self.turns.push_back(resident);
        }
        self.turns.pop_front();
        self.resident = None;
        self.slice_end = NEVER;
        if self.last.is_none() || self.last == Some(to) || switch == 0 {
            self.enter(to);
            return Some(to);
        }
        self.switching = Some((to, self.now + switch));
        // Not lost if it has run dry meanwhile: it enters and gives way.
        None
    }

    /// Makes `owner` resident now.
    pub fn enter(&mut self, owner: Owner) {
        self.turns.retain(|&other| other != owner);
        self.resident = Some(owner);
        self.last = Some(owner);
        self.slice_start = self.now;
        self.slice_end = match self.config.sharing {
            Sharing::Sliced { slice, .. } if !self.turns.is_empty() => self.now + slice.max(1),
            _ => NEVER,
        };
    }

    /// A lower bound of when a context that is not resident gets its turn.
    pub fn turn_bound(&self, work_left_of_resident: Ns) -> Ns {
        let Sharing::Sliced { switch, .. } = self.config.sharing else {
            return self.now;
        };
        if self.slice_end == NEVER {
            return self.now;
        }
        self.slice_end.min(self.now.saturating_add(work_left_of_resident)) + switch
    }
}
