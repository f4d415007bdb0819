//! The work of one `stint load`: memory held, memory churned, bursts submitted.
//!
//! A *round* is one burst of `--burst` kernels or copies, one churn, and one more request of `--fill`, as far as they were
//! asked for. With `--every` rounds begin at their scheduled times and each of them is done, however late (an open loop);
//! else one follows the other with a little work always queued. Read next: `report.rs`.

use std::collections::VecDeque;
use std::time::Duration;

use super::clock::{self, Clock};
use super::cuda::{Buffer, Context, CudaFailure, Event, HostBuffer, Kernel, Stream};
use super::report::{self, Report};
use super::{Plan, Submit, schedule};

/// Bursts whose events are kept before the oldest is waited for, in an open loop.
const MOST_PENDING: usize = 256;

/// Work kept queued in a closed loop, so that the device does not idle while the host is away.
const QUEUED: Duration = Duration::from_millis(20);

/// `--fill` stops at pieces of this size: the driver's own granularity.
const SMALLEST_PIECE: u64 = 2 << 20;

/// Time between two requests of a `--fill` that has nothing else to do.
const ASK_AGAIN: Duration = Duration::from_millis(10);

/// Launches timed alone to know what one costs on a GPU.
const CALIBRATIONS: usize = 5;

/// Does what `plan` says and tells it in `report`, which is right also when this fails half-way.
pub fn work(context: &Context, plan: &Plan, report: &mut Report) -> Result<(), CudaFailure> {
    let own = clock::own_truth();
    let clock = Clock::start(own.map_or(1, |own| own.time_scale));
    let outcome = Worker::new(context, plan, clock, report).and_then(|mut worker| {
        worker
            .all(plan, own.is_some())
            .inspect_err(|_| worker.bursts_end())
    });
    report.elapsed_seconds = clock.now().as_secs_f64();
    if own.is_some() && report.launches > 0 {
        report.gpu_seconds = clock::own_truth().map(|own| own.busy_ns as f64 / 1e9);
    }
    outcome
}

/// What a burst needs.
enum Stuff {
    Kernel {
        kernel: Kernel,
        grid: u32,
        nanoseconds: u64,
    },
    Copy {
        to: Buffer,
        from: HostBuffer,
    },
}

struct Burst {
    /// Before its first submission, on a stream that has nothing else to do.
    start: Event,
    /// After the last submission on each stream.
    ends: Vec<Event>,
}

struct Worker<'a> {
    context: &'a Context,
    clock: Clock,
    report: &'a mut Report,
    /// Where the beginnings of bursts are marked.
    marks: Stream,
    streams: Vec<Stream>,
    stuff: Option<Stuff>,
    held: Vec<Buffer>,
    /// Size of the next request of `--fill`.
    piece: Option<u64>,
    pending: VecDeque<Burst>,
    spare: Vec<Event>,
    seconds: Vec<f64>,
}

impl<'a> Worker<'a> {
    fn new(
        context: &'a Context,
        plan: &Plan,
        clock: Clock,
        report: &'a mut Report,
    ) -> Result<Worker<'a>, CudaFailure> {
        Ok(Worker {
            context,
            clock,
            report,
            marks: context.stream()?,
            streams: (0..plan.streams)
                .map(|_| context.stream())
                .collect::<Result<_, _>>()?,
            stuff: None,
            held: Vec::new(),
            piece: plan.fill,
            pending: VecDeque::new(),
            spare: Vec::new(),
            seconds: Vec::new(),
        })
    }

    fn all(&mut self, plan: &Plan, stand_in: bool) -> Result<(), CudaFailure> {
        if let Some(bytes) = plan.memory {
            let buffer = self.allocate(bytes)?;
            self.held.push(buffer);
        }
        self.stuff = match &plan.submit {
            None => None,
            Some(Submit::Kernel { spin, grid }) => Some(Stuff::Kernel {
                kernel: self.context.kernel(&spin.ptx, &spin.entry)?,
                grid: *grid,
                nanoseconds: spin.nanoseconds,
            }),
            Some(Submit::Copy { bytes }) => Some(Stuff::Copy {
                to: self.allocate(*bytes)?,
                from: self.context.allocate_host(*bytes)?,
            }),
        };
        self.fill()?;
        let (free, total) = self.context.memory()?;
        (self.report.memory_free_bytes, self.report.memory_total_bytes) = (Some(free), Some(total));
        let cost = if stand_in { None } else { self.calibrate()? };
        self.rounds(plan)?;
        self.streams.iter().try_for_each(Stream::synchronize)?;
        self.bursts_end();
        if let Some(cost) = cost {
            self.report.gpu_seconds = Some(cost * self.report.launches as f64);
        }
        Ok(())
    }

    fn rounds(&mut self, plan: &Plan) -> Result<(), CudaFailure> {
        let start = self.clock.now();
        let end = start + plan.length;
        if let Some((kind, every, seed)) = plan.every {
            self.report.bursts = self.stuff.as_ref().map(|_| 0);
            for at in schedule::arrivals(kind, every, plan.length, seed) {
                self.clock.sleep_until(start + at);
                self.round(plan, MOST_PENDING)?;
            }
        } else if plan.submit.is_some() || plan.churn.is_some() {
            let depth = depth(plan);
            while self.clock.now() < end {
                self.round(plan, depth)?;
            }
        } else if plan.fill.is_some() {
            while self.clock.now() < end {
                self.round(plan, 1)?;
                self.clock.sleep_until((self.clock.now() + ASK_AGAIN).min(end));
            }
        }
        self.clock.sleep_until(end);
        Ok(())
    }

    fn round(&mut self, plan: &Plan, most_pending: usize) -> Result<(), CudaFailure> {
        self.fill()?;
        if let Some(bytes) = plan.churn {
            self.churn(bytes)?;
        }
        if self.stuff.is_some() {
            while self.pending.len() >= most_pending {
                self.oldest_ends()?;
            }
            self.submit(plan.burst)?;
        }
        Ok(())
    }

    /// One allocation that is needed: a refusal ends the load.
    fn allocate(&mut self, bytes: u64) -> Result<Buffer, CudaFailure> {
        let buffer = self.context.allocate(bytes)?;
        self.report.allocations += 1;
        self.report.allocated_bytes += bytes;
        Ok(buffer)
    }

    /// Allocates and frees, and looks at the free memory before and after, as a profiler does.
    fn churn(&mut self, bytes: u64) -> Result<(), CudaFailure> {
        let (before, _) = self.context.memory()?;
        let buffer = self.allocate(bytes)?;
        let (after, _) = self.context.memory()?;
        drop(buffer);
        let error = (i128::from(before) - i128::from(after) - i128::from(bytes)).unsigned_abs();
        let worst = self.report.snapshot_error_bytes.get_or_insert(0);
        *worst = (*worst).max(u64::try_from(error).unwrap_or(u64::MAX));
        Ok(())
    }

    /// Asks for pieces until the smallest is refused. Asks at least once: that is how a full tenant goes on trying.
    fn fill(&mut self) -> Result<(), CudaFailure> {
        let Some(mut piece) = self.piece else {
            return Ok(());
        };
        loop {
            match self.allocate(piece) {
                Ok(buffer) => self.held.push(buffer),
                Err(failure) if failure.is_out_of_memory() => {
                    self.report.refusals += 1;
                    if piece / 2 < SMALLEST_PIECE {
                        break;
                    }
                    piece = (piece / 2).next_multiple_of(SMALLEST_PIECE);
                }
                Err(failure) => return Err(failure),
            }
        }
        self.piece = Some(piece);
        Ok(())
    }

    fn submit(&mut self, burst: u32) -> Result<(), CudaFailure> {
        let start = self.event()?;
        start.record(&self.marks)?;
        let mut used = 0;
        for number in 0..burst as usize {
            let stream = &self.streams[number % self.streams.len()];
            used = used.max(number % self.streams.len() + 1);
            match &self.stuff {
                Some(Stuff::Kernel {
                    kernel,
                    grid,
                    nanoseconds,
                }) => {
                    stream.launch(kernel, *grid, *nanoseconds)?;
                    self.report.launches += 1;
                }
                Some(Stuff::Copy { to, from }) => {
                    stream.copy(to, from)?;
                    self.report.copies += 1;
                }
                None => {}
            }
        }
        let mut ends = Vec::with_capacity(used);
        for index in 0..used {
            let end = self.event()?;
            end.record(&self.streams[index])?;
            ends.push(end);
        }
        self.pending.push_back(Burst { start, ends });
        Ok(())
    }

    fn event(&mut self) -> Result<Event, CudaFailure> {
        self.spare.pop().map_or_else(|| self.context.event(), Ok)
    }

    /// Waits for the oldest burst and, in an open loop, keeps its time.
    fn oldest_ends(&mut self) -> Result<(), CudaFailure> {
        let Some(Burst { start, ends }) = self.pending.pop_front() else {
            return Ok(());
        };
        for end in &ends {
            end.synchronize()?;
        }
        if let Some(bursts) = &mut self.report.bursts {
            start.synchronize()?;
            let mut longest = 0.0_f64;
            for end in &ends {
                longest = longest.max(end.since(&start)?);
            }
            self.seconds.push(longest);
            *bursts += 1;
        }
        self.spare.extend(ends.into_iter().chain([start]));
        Ok(())
    }

    /// Ends all bursts as far as the driver still answers, and tells their times.
    fn bursts_end(&mut self) {
        while !self.pending.is_empty() && self.oldest_ends().is_ok() {}
        self.report.burst_p50_seconds = report::percentile(&mut self.seconds, 0.50);
        self.report.burst_p99_seconds = report::percentile(&mut self.seconds, 0.99);
    }

    /// Seconds one kernel takes when nothing else runs: the shortest of a few, since others only make it longer.
    fn calibrate(&mut self) -> Result<Option<f64>, CudaFailure> {
        let Some(Stuff::Kernel {
            kernel,
            grid,
            nanoseconds,
        }) = &self.stuff
        else {
            return Ok(None);
        };
        let (before, after) = (self.context.event()?, self.context.event()?);
        let stream = &self.streams[0];
        let mut shortest: Option<f64> = None;
        for _ in 0..CALIBRATIONS {
            before.record(stream)?;
            stream.launch(kernel, *grid, *nanoseconds)?;
            after.record(stream)?;
            after.synchronize()?;
            let seconds = after.since(&before)?;
            shortest = Some(shortest.map_or(seconds, |shortest| shortest.min(seconds)));
        }
        Ok(shortest)
    }
}

/// Bursts kept queued in a closed loop.
fn depth(plan: &Plan) -> usize {
    let Some(Submit::Kernel { spin, .. }) = &plan.submit else {
        return 2;
    };
    let burst = u128::from(spin.nanoseconds) * u128::from(plan.burst);
    usize::try_from(QUEUED.as_nanos() / burst.max(1))
        .unwrap_or(2)
        .clamp(2, 64)
}
