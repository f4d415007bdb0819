//! Accounts at work on several devices at once. Their ranks wait for one another inside collectives, so all their gates open and
//! close together, and they close at a cut that every rank can reach. Read next: `src/scheduler/cut.rs`.

use super::cut::{Begun, Cut, behind};
use super::device::Device;
use super::lane::Side;
use super::timer::Timer;
use super::{AccountId, Gate, Settings};

/// What a gang is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stage {
    /// Closed, or not at work.
    #[default]
    Closed,
    /// Its devices are being emptied for it.
    Claiming,
    Open,
    /// Closed to new work; ranks that are behind run on to the cut.
    Closing {
        since_ns: u64,
    },
    /// It could not be closed: open beside the others until then.
    Beside {
        until_ns: u64,
    },
}

/// A seat that did nothing for so long does not belong to its account's gang.
const RECENT_NS: u64 = 1_000_000_000;

/// A seat of a gang: device and place.
pub(super) type Rank = (usize, usize);

/// See the module.
#[derive(Debug, Clone, Default)]
pub(super) struct Gang {
    pub stage: Stage,
    pub begun: Begun,
    /// The ranks gated together.
    ranks: Vec<Rank>,
}

impl Gang {
    /// Whether it is one: at work on more than one device.
    pub fn is_one(&self) -> bool {
        self.ranks.len() > 1
    }

    pub fn ranks(&self) -> &[Rank] {
        &self.ranks
    }

    /// Notes which of the account's seats are at work, and lets each of the gang's want what any of them wants. Who belongs
    /// to it changes only while it is closed.
    pub fn form(
        &mut self,
        all: &[Rank],
        together: bool,
        devices: &mut [Device],
        settings: &Settings,
        now: u64,
    ) {
        let recent = |at: u64| now.saturating_sub(at) < RECENT_NS;
        let mut at_work = Vec::new();
        let mut any = false;
        for (at, place) in all {
            let Some(seat) = devices[*at].seat(*place) else {
                continue;
            };
            let present = seat.present(settings, now);
            any |= present;
            if present || seat.present_at_ns.is_some_and(recent) {
                at_work.push((*at, *place));
            }
        }
        if at_work.len() < 2 || !together {
            at_work.clear();
        }
        let joined = at_work.iter().any(|rank| !self.ranks.contains(rank));
        match self.stage {
            Stage::Closed | Stage::Claiming if at_work != self.ranks => {
                self.give_up_claims(devices);
                self.gather(at_work, devices, now);
            }
            Stage::Closed | Stage::Claiming => {}
            _ if joined => {
                at_work.extend(&self.ranks);
                at_work.sort_unstable();
                at_work.dedup();
                self.gather(at_work, devices, now);
            }
            Stage::Open if self.is_one() && !together => {
                self.shut(devices);
                self.stage = Stage::Closing { since_ns: now };
            }
            _ => {}
        }
        for (at, place) in &self.ranks {
            if let Some(seat) = devices[*at].seat_mut(*place) {
                seat.gang_wants = any;
            }
        }
    }

    /// These ranks are the gang from now on; it begins by being stopped together.
    fn gather(&mut self, ranks: Vec<Rank>, devices: &mut [Device], now: u64) {
        for (at, place) in &self.ranks {
            if let Some(seat) = devices[*at].seat_mut(*place) {
                (seat.ganged, seat.gang_wants) = (false, false);
            }
        }
        let mut still = true;
        for (at, place) in &ranks {
            if let Some(seat) = devices[*at].seat_mut(*place) {
                seat.ganged = true;
                still &= seat.word.gate == Gate::Closed && seat.seen.drained();
            }
        }
        self.ranks = ranks;
        self.shut(devices);
        self.stage = match self.stage {
            Stage::Closing { since_ns } => Stage::Closing { since_ns },
            _ if still => Stage::Closed,
            _ => Stage::Closing { since_ns: now },
        };
        if self.stage == Stage::Closed {
            self.release(devices);
        }
    }

    fn give_up_claims(&mut self, devices: &mut [Device]) {
        if self.stage == Stage::Claiming {
            for (at, _) in &self.ranks {
                devices[*at].claim = None;
            }
        }
    }

    fn shut(&self, devices: &mut [Device]) {
        for (at, place) in &self.ranks {
            if let Some(seat) = devices[*at].seat_mut(*place) {
                seat.close();
            }
        }
    }

    fn release(&self, devices: &mut [Device]) {
        for (at, place) in &self.ranks {
            devices[*at].rest.forget(*place);
        }
    }
}

/// A gang, who it is, and where.
pub(super) struct Member<'a> {
    pub account: AccountId,
    pub gang: &'a mut Gang,
}

impl Member<'_> {
    /// One step. New cuts are added to `cuts`.
    pub fn step(
        &mut self,
        devices: &mut [Device],
        settings: &Settings,
        now: u64,
        timer: &mut Timer,
        cuts: &mut Vec<Cut>,
    ) {
        match self.gang.stage {
            Stage::Closed => self.claim(devices, settings, now),
            Stage::Claiming => {}
            Stage::Open => self.keep(devices, settings, now),
            Stage::Closing { since_ns } => self.close(devices, settings, now, timer, since_ns, cuts),
            Stage::Beside { until_ns } => {
                if now >= until_ns {
                    self.begin_to_close(devices, now);
                }
            }
        }
        if self.gang.stage == Stage::Claiming {
            self.enter(devices, settings, now);
        }
        if self.gang.stage != Stage::Closed || self.waits(devices, settings, now) {
            timer.after(settings.look_ns, now);
        }
    }

    /// Whether any rank waits at its gate and all may be let in.
    fn waits(&self, devices: &[Device], settings: &Settings, now: u64) -> bool {
        let mut seats = self
            .gang
            .ranks
            .iter()
            .filter_map(|(device, place)| devices[*device].seat(*place));
        let mut waiting = false;
        let all_may = seats.all(|seat| {
            waiting |= seat.eligible(settings, now);
            !seat.throttled() && !seat.paused
        });
        all_may && waiting
    }

    /// Asks for all its devices where it comes first on each of them.
    fn claim(&mut self, devices: &mut [Device], settings: &Settings, now: u64) {
        if !self.waits(devices, settings, now) {
            return;
        }
        let first = self.gang.ranks.iter().all(|(at, place)| {
            let device = &devices[*at];
            device.claim.is_none() && device.comes_first(*place, settings, now)
        });
        if first {
            for (at, _) in &self.gang.ranks {
                devices[*at].claim = Some(self.account);
            }
            self.gang.stage = Stage::Claiming;
        }
    }

    /// Opens all its gates once all its devices are free, or gives them up.
    fn enter(&mut self, devices: &mut [Device], settings: &Settings, now: u64) {
        let free = self.gang.ranks.iter().all(|(at, place)| {
            let device = &devices[*at];
            let first = device.seat(*place).is_some_and(|seat| seat.rank == 0);
            let high_away = if first {
                device.high_drained(settings, now)
            } else {
                device.high_wants() == 0
            };
            device.rest.lease.is_none() && high_away
        });
        let waits = self.waits(devices, settings, now)
            && !self
                .gang
                .ranks
                .iter()
                .any(|(at, place)| devices[*at].outranked(*place, settings, now));
        if waits && !free && self.reserve(devices, settings, now) {
            return;
        }
        let waits = waits && free;
        for (at, place) in &self.gang.ranks {
            if devices[*at].claim == Some(self.account) {
                devices[*at].claim = None;
            }
            if waits {
                devices[*at].grant(Side::Rest, *place, false, settings, now);
            }
        }
        self.gang.stage = if waits { Stage::Open } else { Stage::Closed };
    }

    /// Keeps others from its devices, but lends those that are free while another one still runs a long kernel. False: somebody
    /// else asked for one of them meanwhile.
    fn reserve(&self, devices: &mut [Device], settings: &Settings, now: u64) -> bool {
        let left = |devices: &[Device], at: usize| devices[at].drain_ns(now);
        let longest = self
            .gang
            .ranks
            .iter()
            .map(|(at, _)| left(devices, *at))
            .max()
            .unwrap_or(0);
        for (at, _) in &self.gang.ranks {
            let near = longest <= settings.lease_ns || left(devices, *at) > settings.lease_ns;
            let device = &mut devices[*at];
            if device.claim.is_some_and(|account| account != self.account) {
                return false;
            }
            device.claim = near.then_some(self.account);
        }
        true
    }

    /// Goes on until somebody comes before it on one of its devices.
    fn keep(&mut self, devices: &mut [Device], settings: &Settings, now: u64) {
        let mut over = false;
        let mut idle = true;
        for (at, place) in &self.gang.ranks {
            devices[*at].prolong(Side::Rest, *place, settings, now);
            let contended = devices[*at].anyone_else(*place, settings, now);
            if let Some(lease) = &mut devices[*at].rest.lease {
                lease.contend(contended);
            }
            let device = &devices[*at];
            let Some(seat) = device.seat(*place) else {
                continue;
            };
            over |= seat.throttled() || seat.paused || device.challenged(*place, settings, now);
            idle &= !seat.wants;
        }
        let stopped = idle
            && self
                .gang
                .ranks
                .iter()
                .any(|(at, place)| devices[*at].anyone_else(*place, settings, now));
        if over || stopped {
            self.begin_to_close(devices, now);
        }
    }

    fn begin_to_close(&mut self, devices: &mut [Device], now: u64) {
        self.gang.shut(devices);
        self.gang.stage = Stage::Closing { since_ns: now };
    }

    /// Lets ranks that are behind run on to the cut, and leaves the devices when everything in flight has run out.
    #[allow(clippy::too_many_arguments, reason = "what one step is given")]
    fn close(
        &mut self,
        devices: &mut [Device],
        settings: &Settings,
        now: u64,
        timer: &mut Timer,
        since_ns: u64,
        cuts: &mut Vec<Cut>,
    ) {
        // Counters say something only when nobody is between looking at its gate and the driver.
        let running_on = |gate| gate == Gate::RunOn;
        let fenced = self.gang.ranks.iter().all(|(at, place)| {
            devices[*at]
                .seat(*place)
                .is_none_or(|seat| running_on(seat.word.gate) || !seat.seen.launching)
        });
        if !fenced {
            timer.after(settings.signal_ns, now);
        } else {
            let members: Vec<usize> = self.gang.ranks.iter().map(|(at, _)| *at).collect();
            let behind = behind(&self.gang.begun, &members);
            for ((at, place), goals) in self.gang.ranks.iter().zip(behind) {
                let Some(seat) = devices[*at].seat_mut(*place) else {
                    continue;
                };
                match (goals.is_empty(), seat.word.gate) {
                    (false, Gate::Closed) => seat.run_on(),
                    (true, Gate::RunOn) => seat.close(),
                    _ => {}
                }
                cuts.extend(goals.into_iter().map(|(communicator, begun)| Cut {
                    account: self.account,
                    device: *at,
                    communicator,
                    begun,
                }));
            }
        }
        // A rank that does not go on though nothing is in flight anywhere has nothing to go on to.
        let late = now.saturating_sub(since_ns) > settings.stuck_ns;
        let gone = self.gang.ranks.iter().all(|(at, place)| {
            devices[*at].seat(*place).is_none_or(|seat| {
                let over = seat.seen.drained() || !seat.working(settings, now);
                over && (seat.word.gate == Gate::Closed || late)
            })
        });
        if gone {
            timer.after(1, now);
            self.gang.shut(devices);
            self.gang.release(devices);
            self.gang.stage = Stage::Closed;
        } else if self.gang.ranks.iter().any(|(at, place)| {
            let seat = devices[*at].seat(*place);
            seat.is_some_and(|seat| seat.stuck(settings.stuck_ns, since_ns, now))
        }) {
            self.gang.release(devices);
            for (at, place) in &self.gang.ranks {
                if let Some(seat) = devices[*at].seat_mut(*place) {
                    seat.open(super::FOREVER, false);
                }
            }
            self.gang.stage = Stage::Beside {
                until_ns: now + settings.stuck_ns,
            };
        }
    }
}
