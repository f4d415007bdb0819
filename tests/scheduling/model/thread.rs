//! The threads of a node: a step of a program, the gate before work is handed over, the driver's call, the return from waiting.
//! Read next: `tests/scheduling/model/about.rs`.

use stint::scheduler::Gate;

use super::client::{Doing, Held};
use super::engine::{Kind, MS, US, Work};
use super::node::{Event, Node};
use super::program::Step;

impl Node {
    /// The thread goes on until it has to wait.
    pub(super) fn step(&mut self, index: usize) {
        self.clients[index].due = None;
        if let Some(until) = self.clients[index].stopped {
            if until > self.now {
                self.step_in(index, until - self.now);
                return;
            }
            self.clients[index].stopped = None;
        }
        let now = self.now;
        self.clients[index].alive_at = now;
        if self.clients[index].doing == Doing::Launching {
            self.call(index);
        }
        if self.clients[index].doing == Doing::Sync {
            self.return_from_sync(index);
        }
        loop {
            let client = &mut self.clients[index];
            client.doing = match client.doing {
                Doing::Gate | Doing::Window => client.doing,
                _ => Doing::Running,
            };
            let step = match client.pending.take() {
                Some(step) => step,
                None => client.program.next(&mut client.place, &mut client.draw, now),
            };
            match step {
                Step::Host(ns) => {
                    client.doing = Doing::Host;
                    return self.step_in(index, ns);
                }
                Step::Begin(at) => client.request_from = at,
                Step::Done => {
                    let latency = now - client.request_from;
                    client.latencies.push(latency);
                }
                Step::Sync => {
                    if self.engines[client.device].contexts[client.context]
                        .queue
                        .is_empty()
                    {
                        self.return_from_sync(index);
                        continue;
                    }
                    client.doing = Doing::Sync;
                    client.waiting_since = None;
                    return;
                }
                Step::Launch(_) | Step::Copy(_) | Step::Collective(..) => {
                    client.pending = Some(step);
                    if !self.pass(index, step) {
                        return;
                    }
                    let after = self.clients[index].draw.between(2 * US, 5 * US);
                    self.clients[index].doing = Doing::Launching;
                    return self.step_in(index, after);
                }
            }
        }
    }

    /// Whether the gate lets the thread on; if not, it waits.
    fn pass(&mut self, index: usize, step: Step) -> bool {
        let (now, stale, demand) = (self.now, self.stale(), self.demand(index));
        let client = &mut self.clients[index];
        client.reap(now);
        let predicted = match step {
            Step::Launch(ns) | Step::Collective(_, ns) => ns,
            _ => 0,
        };
        let verdict = match &mut self.peer {
            Some(peer) => peer.may(client, demand, now),
            None => client.may(predicted, demand),
        };
        let verdict = if stale && verdict == Err(Held::Gate) {
            Ok(())
        } else {
            verdict
        };
        match verdict {
            Ok(()) => {
                self.raise_demand(index, predicted);
                let client = &mut self.clients[index];
                self.truth.passed(client, now);
                client.waiting_since = None;
                true
            }
            Err(held) => {
                let client = &mut self.clients[index];
                let was = client.doing;
                client.doing = if held == Held::Gate {
                    Doing::Gate
                } else {
                    Doing::Window
                };
                if held == Held::Gate {
                    client.waiting_since.get_or_insert(now);
                }
                let (device, demands) = (client.device, std::mem::take(&mut client.demand_until) > now);
                if held == Held::Window {
                    self.raise_demand(index, predicted);
                } else if demands {
                    // Others need not yield to one that may not work.
                    self.end_demand(device);
                }
                let client = &mut self.clients[index];
                // Doorbells may be lost: one that waits on rings again.
                let again = now >= client.rang_at + 10 * MS;
                let rings = was != Doing::Gate || client.in_flight_ns() == 0 || again;
                if held == Held::Gate && !self.daemon.alive {
                    let at = self.daemon.heartbeat + self.settings.stale_ns + 1;
                    let turn = self.clients[index].turn;
                    self.push(at, Event::Step(index, turn));
                } else if held == Held::Gate && rings {
                    self.clients[index].rang_at = now;
                    let turn = self.clients[index].turn;
                    self.push(now + 10 * MS, Event::Step(index, turn));
                    self.ring();
                }
                false
            }
        }
    }

    /// The driver's call of a launch the gate let through.
    fn call(&mut self, index: usize) {
        let client = &mut self.clients[index];
        let (length, kind) = match client.pending.take() {
            Some(Step::Launch(ns)) => (ns, Kind::Kernel),
            Some(Step::Copy(ns)) => (ns, Kind::Copy),
            Some(Step::Collective(communicator, ns)) => {
                (ns, Kind::Collective((communicator, client.begin(communicator))))
            }
            _ => return,
        };
        let predicted_ns = if kind == Kind::Copy {
            0
        } else {
            client.draw.around(length, 0.03)
        };
        client.submitted_ns += predicted_ns;
        client.pieces += 1;
        client.moved_at = self.now;
        client.doing = Doing::Running;
        let work = Work {
            left_ns: length,
            length_ns: length,
            predicted_ns,
            kind,
        };
        client.last_work = Some(work);
        let (device, context, closed) = (client.device, client.context, client.word.gate == Gate::Closed);
        self.launches += 1;
        self.engines[device].submit(context, work, self.now);
        let mut truth = std::mem::take(&mut self.truth);
        truth.submitted(self, index);
        self.truth = truth;
        self.after_engine(device);
        if closed {
            self.ring();
        }
    }

    fn raise_demand(&mut self, index: usize, predicted: u64) {
        let client = &mut self.clients[index];
        if !client.high {
            return;
        }
        let before = client.demand_until > self.now;
        client.demand_until = self.now + 20 * MS + 2 * (client.in_flight_ns() + predicted);
        if !before {
            self.ring();
        }
    }

    /// Those that yielded look again.
    fn end_demand(&mut self, device: usize) {
        for other in self.client_of[device].clone() {
            let yields = self.clients[other].word.yields || self.peer.is_some();
            if self.clients[other].doing == Doing::Gate && yields {
                self.wake(other, 3 * US, 50 * US);
            }
        }
    }

    fn return_from_sync(&mut self, index: usize) {
        let now = self.now;
        let client = &mut self.clients[index];
        client.reap(now);
        client.doing = Doing::Running;
        let contended = client.word.wanted;
        let (high, device) = (client.high, client.device);
        if high {
            client.demand_until = 0;
            self.end_demand(device);
        }
        if high || contended {
            self.ring();
        }
    }
}
