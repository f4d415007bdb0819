//! One device and the accounts that share it: who used what, who comes before whom. The leases are in
//! `src/scheduler/lane.rs`, which is read next.

use crate::config::{Policy, Priority};

use super::lane::{Lane, Side};
use super::seat::Seat;
use super::timer::Timer;
use super::{AccountId, DeviceRule, Settings};

/// See the module. The place of a seat in [`Device::seats`] is its number for as long as it is taken.
#[derive(Debug, Clone)]
pub(super) struct Device {
    pub rule: DeviceRule,
    pub seats: Vec<Option<Seat>>,
    /// Leases among accounts of high priority, and among all others.
    pub high: Lane,
    pub rest: Lane,
    /// An account gated on several devices is about to get this one: nobody else is let in.
    pub claim: Option<AccountId>,
    /// How far virtual time has come, per priority.
    level_ns: [f64; 3],
    /// Of those that want the device and may: the highest priority, and the highest that lets others starve.
    pub top: Option<Priority>,
    starving: Option<Priority>,
    /// The most that one of high priority misses, as time of the whole device.
    missing_ns: f64,
    /// When one of high priority last wanted the device.
    pub high_wanted_at_ns: Option<u64>,
    decided_at_ns: u64,
}

impl Device {
    pub fn new(rule: DeviceRule) -> Device {
        Device {
            rule,
            seats: Vec::new(),
            high: Lane::new(Side::High),
            rest: Lane::new(Side::Rest),
            claim: None,
            level_ns: [0.0; 3],
            top: None,
            starving: None,
            missing_ns: 0.0,
            high_wanted_at_ns: None,
            decided_at_ns: 0,
        }
    }

    pub fn seats(&self) -> impl Iterator<Item = (usize, &Seat)> {
        let seats = self.seats.iter().enumerate();
        seats.filter_map(|(place, seat)| Some((place, seat.as_ref()?)))
    }

    pub fn seat(&self, place: usize) -> Option<&Seat> {
        self.seats.get(place)?.as_ref()
    }

    pub fn seat_mut(&mut self, place: usize) -> Option<&mut Seat> {
        self.seats.get_mut(place)?.as_mut()
    }

    /// Gives `seat` a place; it begins where the others of its priority are.
    pub fn take(&mut self, mut seat: Seat) -> usize {
        seat.virtual_ns = self.level_ns[seat.priority as usize];
        let free = self.seats.iter().position(Option::is_none);
        let place = free.unwrap_or(self.seats.len());
        if free.is_none() {
            self.seats.push(None);
        }
        self.seats[place] = Some(seat);
        self.scale();
        place
    }

    pub fn leave(&mut self, place: usize) {
        self.seats[place] = None;
        self.high.forget(place);
        self.rest.forget(place);
        self.scale();
    }

    /// Shares as asked for, or less where they sum up to more than the whole.
    pub fn scale(&mut self) {
        let sum: f64 = self.seats().map(|(_, seat)| seat.asked).sum();
        for seat in self.seats.iter_mut().flatten() {
            let share = seat.asked / sum.max(1.0);
            if seat.share > 0.0 {
                // What it is ahead by in GPU time stays the same.
                let level = self.level_ns[seat.priority as usize];
                seat.virtual_ns = level + (seat.virtual_ns - level) * seat.share / share;
            }
            seat.share = share;
        }
    }

    /// Charges what was used since the last decision.
    pub fn charge(&mut self, settings: &Settings, now: u64) {
        let elapsed = now.saturating_sub(self.decided_at_ns);
        self.decided_at_ns = self.decided_at_ns.max(now);
        let mut done = 0.0;
        for seat in self.seats.iter_mut().flatten() {
            done += seat.charge(now);
        }
        done += self.charge_held(elapsed, settings);
        for seat in self.seats.iter_mut().flatten() {
            seat.entitle(done, elapsed);
        }
    }

    /// Notes who wants the device. Wishes of other devices' seats are in `gang_wants` already.
    pub fn look(&mut self, settings: &Settings, now: u64) {
        let mut least = [f64::INFINITY; 3];
        let mut woken = Vec::new();
        (self.top, self.starving, self.missing_ns) = (None, None, 0.0);
        for (place, seat) in self.seats.iter_mut().enumerate() {
            let Some(seat) = seat else {
                continue;
            };
            let level = seat.priority as usize;
            if seat.look(settings, now) {
                woken.push(place);
            } else if seat.active {
                least[level] = least[level].min(seat.virtual_ns);
            }
            if seat.wants && seat.priority == Priority::High {
                self.high_wanted_at_ns = Some(now);
            }
            if !seat.active {
                continue;
            }
            self.top = self.top.max(Some(seat.priority));
            if seat.starve {
                self.starving = self.starving.max(Some(seat.priority));
            }
            if seat.stands_open() {
                self.missing_ns = self.missing_ns.max(seat.missing_ns / seat.share);
            }
        }
        for (level, least) in self.level_ns.iter_mut().zip(least) {
            if least.is_finite() {
                *level = level.max(least);
            }
        }
        for place in woken {
            if let Some(seat) = &mut self.seats[place] {
                seat.clamp(self.level_ns[seat.priority as usize], settings);
            }
        }
    }

    /// The rank of every seat, and when a lower one will come before all others.
    pub fn rank(&mut self, settings: &Settings, now: u64, timer: &mut Timer) {
        let lively = self.lively(settings, now);
        let guard = self.guard_ns();
        let first = self.rest.first_place();
        let mut turned = false;
        for place in 0..self.seats.len() {
            let (top, starving, missing) = (self.top, self.starving, self.missing_ns);
            let Some(seat) = &mut self.seats[place] else {
                continue;
            };
            let outranked = top > Some(seat.priority);
            seat.guarded = lively && seat.too_long(guard);
            // One of high priority that would be closed for it may be worse off.
            let may = starving <= Some(seat.priority) && seat.missing_ns / seat.share > missing;
            let misses = seat.missing_ns >= settings.slack_ns as f64;
            let goes_first = first == Some(place) || misses && may && (outranked || seat.guarded);
            seat.rank = if goes_first { 0 } else { seat.usual_rank() };
            turned |= goes_first;
            if (outranked || seat.guarded) && !goes_first && seat.eligible(settings, now) {
                let left = (settings.slack_ns as f64 - seat.missing_ns) / seat.share;
                timer.after((left.max(0.0) as u64).max(settings.look_ns / 4), now);
            }
        }
        // Where lower ones go before others for what they miss, those others do so too.
        for seat in self
            .seats
            .iter_mut()
            .flatten()
            .filter(|seat| turned && !seat.stands_open())
        {
            if seat.missing_ns >= settings.slack_ns as f64 && self.starving <= Some(seat.priority) {
                seat.rank = 0;
            }
        }
    }

    /// One of high priority wanted the device lately.
    pub fn lively(&self, settings: &Settings, now: u64) -> bool {
        self.high_wanted_at_ns
            .is_some_and(|at| now.saturating_sub(at) <= settings.stuck_ns)
    }

    /// The least latency that an account of high priority on this device bears, `None` where none says so.
    pub fn guard_ns(&self) -> Option<u64> {
        let high = self.seats().filter(|(_, seat)| seat.priority == Priority::High);
        high.filter_map(|(_, seat)| seat.guard_ns).min()
    }

    /// Whether an account of high priority is on this device at all.
    pub fn has_high(&self) -> bool {
        self.seats().any(|(_, seat)| seat.priority == Priority::High)
    }

    /// Whether `a` comes before `b`.
    pub fn precedes(&self, a: &Seat, b: &Seat) -> bool {
        let since = |seat: &Seat| seat.seen.waiting_since_ns.unwrap_or(u64::MAX);
        let by_time = since(a).cmp(&since(b));
        let missing = |seat: &Seat| seat.missing_ns / seat.share;
        let among_equals = match self.rule.policy {
            _ if a.rank == 0 => missing(b).total_cmp(&missing(a)).then(by_time),
            Policy::Fair => a.virtual_ns.total_cmp(&b.virtual_ns).then(by_time),
            Policy::Fifo => by_time,
        };
        a.rank.cmp(&b.rank).then(among_equals).is_lt()
    }

    /// Of the seats that wait, may be let in and pass `filter`, the one that comes first.
    pub fn best(
        &self,
        settings: &Settings,
        now: u64,
        filter: impl Fn(usize, &Seat) -> bool,
    ) -> Option<usize> {
        let mut best: Option<(usize, &Seat)> = None;
        let waiting = self
            .seats()
            .filter(|(place, seat)| seat.eligible(settings, now) && filter(*place, seat));
        for (place, seat) in waiting {
            if best.is_none_or(|(_, first)| self.precedes(seat, first)) {
                best = Some((place, seat));
            }
        }
        best.map(|(place, _)| place)
    }

    /// Seats of high priority whose gates stand open and that want the device now.
    pub fn high_wants(&self) -> usize {
        let wanting = |seat: &Seat| seat.stands_open() && seat.active;
        self.seats().filter(|(_, seat)| wanting(seat)).count()
    }
}
