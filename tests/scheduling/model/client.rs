//! One client: a thread with a program, its context on a device, and the gate it passes before it hands work over. The gate obeys
//! the policy words as `docs/decisions/0011-the-gate-reads-words.md` says. Read next: `tests/scheduling/model/program.rs`.

use stint::scheduler::{Gate, Reading, Word};

use super::draw::Draw;
use super::engine::Work;
use super::program::{Place, Program, Step};

/// What the thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    Running,
    /// On the host until then.
    Host,
    /// Past the gate, about to call the driver.
    Launching,
    /// Before a closed gate.
    Gate,
    /// For room in its window.
    Window,
    Sync,
    Dead,
}

/// Why a thread may not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    Gate,
    Window,
}

/// What of its work the client knows to be finished.
#[derive(Debug, Clone, Copy, Default)]
pub struct Finished {
    pub predicted_ns: u64,
    pub used_ns: u64,
}

/// See the module.
pub struct Client {
    pub account: usize,
    pub device: usize,
    pub context: usize,
    pub program: Program,
    pub place: Place,
    pub draw: Draw,
    pub high: bool,
    pub doing: Doing,
    pub pending: Option<Step>,
    /// Cancels events of an earlier state.
    pub turn: u64,
    /// The words the daemon wrote, and the newest epoch acted on.
    pub word: Word,
    epoch: u32,
    epoch_from_ns: u64,
    passes: u32,
    /// How far it may run on after its gate was closed.
    pub goals: Vec<(u32, u64)>,
    pub begun: Vec<(u32, u64)>,
    /// Words it writes.
    pub submitted_ns: u64,
    /// Pieces of work in flight.
    pub pieces: u64,
    pub finished: Finished,
    /// Finished, but no thread has looked yet.
    pub unseen: Finished,
    pub waiting_since: Option<u64>,
    pub moved_at: u64,
    pub alive_at: u64,
    pub demand_until: u64,
    /// Stopped until then.
    pub stopped: Option<u64>,
    /// When its thread goes on by itself.
    pub due: Option<u64>,
    /// When it rang last.
    pub rang_at: u64,
    pub request_from: u64,
    pub latencies: Vec<u64>,
    pub last_work: Option<Work>,
}

impl Client {
    pub fn new(
        account: usize,
        device: usize,
        context: usize,
        program: Program,
        high: bool,
        draw: Draw,
    ) -> Client {
        Client {
            account,
            device,
            context,
            program,
            place: Place::default(),
            draw,
            high,
            doing: Doing::Running,
            pending: None,
            turn: 0,
            word: Word::default(),
            epoch: 0,
            epoch_from_ns: 0,
            passes: 0,
            goals: Vec::new(),
            begun: Vec::new(),
            submitted_ns: 0,
            pieces: 0,
            finished: Finished::default(),
            unseen: Finished::default(),
            waiting_since: None,
            moved_at: 0,
            alive_at: 0,
            demand_until: 0,
            stopped: None,
            due: None,
            rang_at: 0,
            request_from: 0,
            latencies: Vec::new(),
            last_work: None,
        }
    }

    pub fn in_flight_ns(&self) -> u64 {
        self.submitted_ns - self.finished.predicted_ns
    }

    /// A thread looks at the marks.
    pub fn reap(&mut self, now: u64) {
        let unseen = std::mem::take(&mut self.unseen);
        if unseen.predicted_ns > 0 {
            self.finished.predicted_ns += unseen.predicted_ns;
            self.finished.used_ns += unseen.used_ns;
            self.moved_at = now;
        }
    }

    /// Whether work of `predicted_ns` may be handed over. `demand`: one of high priority has work on this device.
    pub fn may(&mut self, predicted_ns: u64, demand: bool) -> Result<(), Held> {
        if self.word.epoch != self.epoch {
            self.epoch = self.word.epoch;
            self.epoch_from_ns = self.submitted_ns;
        }
        let in_flight = self.in_flight_ns();
        if in_flight > 0 && in_flight + predicted_ns > self.word.window_ns {
            return Err(Held::Window);
        }
        let open = match self.word.gate {
            Gate::Open => {
                let handed = self.submitted_ns - self.epoch_from_ns;
                handed < self.word.lease_ns && !(self.word.yields && demand)
            }
            Gate::RunOn => self
                .goals
                .iter()
                .any(|(communicator, goal)| self.begun(*communicator) < *goal),
            Gate::Closed => false,
        };
        if open {
            return Ok(());
        }
        if self.word.passes != self.passes {
            self.passes = self.passes.wrapping_add(1);
            return Ok(());
        }
        Err(Held::Gate)
    }

    pub fn begun(&self, communicator: u32) -> u64 {
        let found = self.begun.iter().find(|(known, _)| *known == communicator);
        found.map_or(0, |(_, begun)| *begun)
    }

    pub fn begin(&mut self, communicator: u32) -> u64 {
        match self.begun.iter_mut().find(|(known, _)| *known == communicator) {
            Some((_, begun)) => {
                *begun += 1;
                *begun
            }
            None => {
                self.begun.push((communicator, 1));
                1
            }
        }
    }

    /// The words as the daemon reads them.
    pub fn reading(&self, now: u64) -> Reading {
        let at_gate = matches!(self.doing, Doing::Gate | Doing::Window) && self.stopped.is_none();
        Reading {
            waiting_since_ns: self.waiting_since,
            submitted_ns: self.submitted_ns,
            finished_ns: self.finished.predicted_ns,
            used_ns: self.finished.used_ns,
            moved_at_ns: self.moved_at,
            alive_at_ns: if at_gate { now } else { self.alive_at },
            launching: self.doing == Doing::Launching,
            syncing: self.doing == Doing::Sync,
            longest_ns: self.program.longest_ns(),
            demand_until_ns: self.demand_until,
            epoch: self.epoch,
            passes: self.passes,
        }
    }
}
