//! What a client does: launches, copies, waiting for the device, host work in between. Read next: `tests/scheduling/model/node.rs`.

use super::draw::Draw;

/// One step of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A kernel, or a graph as one piece of work, of about so many nanoseconds.
    Launch(u64),
    Copy(u64),
    /// A collective of a communicator, this long once all ranks are there.
    Collective(u32, u64),
    /// Until all its work is done.
    Sync,
    /// Host work.
    Host(u64),
    /// A request that arrived then is begun, or done.
    Begin(u64),
    Done,
}

/// How requests come.
#[derive(Debug, Clone, Copy)]
pub enum Arrivals {
    Periodic,
    Poisson,
    /// So many at once.
    Bursts(u64),
}

/// See the module.
#[derive(Debug, Clone)]
pub enum Program {
    /// Launches these lengths in turn for ever; every so many launches (0: never) it waits, and works on the host for so long.
    Endless {
        lengths: Vec<u64>,
        sync_every: u64,
        host_ns: (u64, u64),
    },
    /// Requests: perhaps a copy, then kernels, then waiting for them.
    Requests {
        kernels: u64,
        length_ns: u64,
        copy_ns: u64,
        every_ns: u64,
        arrivals: Arrivals,
    },
    /// Steps of a gang's rank: compute, then one collective of each communicator it is in. Waits for the device every so many.
    Ranks {
        compute_ns: u64,
        communicators: Vec<u32>,
        collective_ns: u64,
        sync_every: u64,
    },
}

/// Where a client is in its program.
#[derive(Debug, Default)]
pub struct Place {
    count: u64,
    phase: u64,
    next_arrival: Option<u64>,
    arrived: std::collections::VecDeque<u64>,
}

impl Program {
    /// The longest kernel, about.
    pub fn longest_ns(&self) -> u64 {
        match self {
            Program::Endless { lengths, .. } => lengths.iter().copied().max().unwrap_or(0),
            Program::Requests { length_ns, .. } => *length_ns,
            Program::Ranks {
                compute_ns,
                collective_ns,
                ..
            } => *compute_ns.max(collective_ns),
        }
    }

    /// Whether it has work for the device at every moment, and enough of it to keep the device busy.
    pub fn is_backlog(&self) -> bool {
        match self {
            Program::Endless {
                lengths,
                sync_every: 0,
                ..
            } => lengths.iter().all(|length| *length >= 20_000),
            _ => false,
        }
    }

    pub fn next(&self, place: &mut Place, draw: &mut Draw, now: u64) -> Step {
        match self {
            Program::Endless {
                lengths,
                sync_every,
                host_ns,
            } => {
                place.phase += 1;
                if *sync_every > 0 && place.count > 0 && place.count.is_multiple_of(*sync_every) {
                    match place.phase {
                        1 => return Step::Sync,
                        2 if host_ns.1 > 0 => return Step::Host(draw.between(host_ns.0, host_ns.1)),
                        _ => {}
                    }
                }
                place.phase = 0;
                let length = lengths[(place.count % lengths.len() as u64) as usize];
                place.count += 1;
                Step::Launch(draw.around(length, 0.1))
            }
            Program::Requests {
                kernels,
                length_ns,
                copy_ns,
                every_ns,
                arrivals,
            } => {
                place.arrive(*every_ns, *arrivals, draw, now);
                place.phase += 1;
                match place.phase {
                    1 => match place.arrived.pop_front() {
                        Some(at) => Step::Begin(at),
                        None => {
                            place.phase = 0;
                            Step::Host(place.next_arrival.unwrap_or(now) - now)
                        }
                    },
                    2 if *copy_ns > 0 => Step::Copy(*copy_ns),
                    2 => Step::Host(0),
                    phase if phase < 3 + kernels => Step::Launch(draw.around(*length_ns, 0.01)),
                    phase if phase == 3 + kernels => Step::Sync,
                    _ => {
                        place.phase = 0;
                        Step::Done
                    }
                }
            }
            Program::Ranks {
                compute_ns,
                communicators,
                collective_ns,
                sync_every,
            } => {
                let phase = place.phase as usize;
                place.phase += 1;
                if phase == 0 {
                    return Step::Launch(draw.around(*compute_ns, 0.1));
                }
                if let Some(communicator) = communicators.get(phase - 1) {
                    return Step::Collective(*communicator, *collective_ns);
                }
                place.phase = 0;
                place.count += 1;
                if *sync_every > 0 && place.count.is_multiple_of(*sync_every) {
                    return Step::Sync;
                }
                Step::Host(0)
            }
        }
    }
}

impl Place {
    fn arrive(&mut self, every: u64, arrivals: Arrivals, draw: &mut Draw, now: u64) {
        let mut next = self.next_arrival.unwrap_or_else(|| now + draw.between(0, every));
        while next <= now {
            let (many, gap) = match arrivals {
                Arrivals::Periodic => (1, every),
                Arrivals::Poisson => (1, draw.gap(every)),
                Arrivals::Bursts(many) => (many, draw.gap(every * many)),
            };
            self.arrived.extend((0..many).map(|_| next));
            next += gap;
        }
        self.next_arrival = Some(next);
    }
}
