//! Programs in virtual time: they submit requests to the timeline and react to its completions, without a clock.
//!
//! Next file of the walk: `simgpu/src/model/mod.rs`.

use simgpu::model::{DeviceConfig, Home, Kind, Lane, Model, Ns, Op, Sink};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// When a program makes its next request.
#[derive(Clone, Copy)]
pub enum Arrivals {
    /// So long after the one before it was complete.
    Closed { gap: Ns },
    /// At this interval, give or take a tenth, whatever has become of the ones before.
    Open { every: Ns },
}

/// A program: kernels on the whole device, one after the other, again and again.
#[derive(Clone)]
pub struct Program {
    pub kernels: Vec<Ns>,
    pub arrivals: Arrivals,
    /// Requests under way at a time, where arrivals are closed.
    pub ahead: usize,
    /// A slice of its own.
    pub slice: Option<Ns>,
}

/// What became of a program's requests.
#[derive(Default)]
pub struct Outcome {
    latencies: Vec<Ns>,
    seconds: f64,
}

impl Outcome {
    /// Latency in milliseconds that `permille` of the requests did not exceed.
    pub fn latency(&self, permille: usize) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        sorted[(sorted.len() - 1) * permille / 1000] as f64 / 1e6
    }

    pub fn mean(&self) -> f64 {
        self.latencies.iter().sum::<Ns>() as f64 / self.latencies.len() as f64 / 1e6
    }

    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.seconds
    }
}

#[derive(Default)]
struct Completions(Vec<(Lane, u64, Ns)>);

impl Sink for Completions {
    fn completed(&mut self, lane: Lane, seq: u64, at: Ns) {
        self.0.push((lane, seq, at));
    }
    fn recorded(&mut self, _client: usize, _event: u32, _generation: u64, _at: Ns) {}
    fn host(&mut self, _lane: Lane, _cookie: u64, _at: Ns) {}
}

/// One program at work.
struct State {
    seq: u64,
    /// Last operation and arrival of each request under way.
    pending: VecDeque<(u64, Ns)>,
    outcome: Outcome,
}

/// Runs the programs side by side for `seconds` of device time, each a process with one context.
pub fn play(config: DeviceConfig, programs: &[Program], seconds: f64) -> Vec<Outcome> {
    let mut model = Model::new(&[config]);
    let mut done = Completions::default();
    let mut states = Vec::new();
    let mut due = BinaryHeap::new();
    for (i, program) in programs.iter().enumerate() {
        let client = model.add_client(100);
        model.set_slice(client, program.slice, 0, &mut done);
        let at_once = match program.arrivals {
            Arrivals::Closed { .. } => program.ahead,
            Arrivals::Open { .. } => 1,
        };
        due.extend((0..at_once).map(|_| Reverse((1_000 + 777_000 * i as Ns, i))));
        states.push(State {
            seq: 0,
            pending: VecDeque::new(),
            outcome: Outcome {
                seconds,
                ..Outcome::default()
            },
        });
    }
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let end = (seconds * 1e9) as Ns;
    while let Some(at) = due
        .peek()
        .map(|Reverse((at, _))| *at)
        .into_iter()
        .chain([model.next()])
        .min()
        && at <= end
    {
        model.advance(at, &mut done);
        for (lane, seq, at) in done.0.drain(..) {
            let state = &mut states[lane.client];
            if state.pending.front().is_none_or(|(last, _)| *last != seq) {
                continue;
            }
            if let Some((_, arrival)) = state.pending.pop_front() {
                state.outcome.latencies.push(at - arrival);
            }
            if let Arrivals::Closed { gap } = programs[lane.client].arrivals {
                due.push(Reverse((at + gap, lane.client)));
            }
        }
        while let Some(&Reverse((when, i))) = due.peek()
            && when <= at
        {
            due.pop();
            let (program, state) = (&programs[i], &mut states[i]);
            for &ns in &program.kernels {
                state.seq += 1;
                let kind = Kind::Kernel { ns, sms: u32::MAX };
                let op = Op { seq: state.seq, kind };
                let lane = Lane { client: i, stream: 0 };
                let home = Home {
                    device: 0,
                    context: 0,
                    priority: 0,
                };
                model
                    .submit(lane, home, when, op, &mut done)
                    .expect("follows the protocol");
            }
            state.pending.push_back((state.seq, when));
            if let Arrivals::Open { every } = program.arrivals {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let scatter = every / 5 * (random % 1024) / 1024;
                due.push(Reverse((when + every - every / 10 + scatter, i)));
            }
        }
    }
    states.into_iter().map(|state| state.outcome).collect()
}

/// `count` kernels between `shortest` and `longest` that take `total` together, short ones more often.
pub fn kernels(count: usize, shortest: Ns, longest: Ns, total: Ns) -> Vec<Ns> {
    let weight = |i: usize| {
        // Every length once, in an order without pattern.
        let x = (i * 619 % count) as f64 / (count - 1).max(1) as f64;
        shortest as f64 + (longest - shortest) as f64 * x.powi(3)
    };
    let sum: f64 = (0..count).map(weight).sum();
    (0..count)
        .map(|i| (weight(i) * total as f64 / sum) as Ns)
        .collect()
}
