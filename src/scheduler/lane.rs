//! Leases: of those that would use a device at the same moment one has it, and the next one gets it when the first one's
//! work has run out. With two contexts at work the driver would slice them itself, and take 5 to 9 % of the device for it.
//!
//! Accounts gated on several devices get theirs in `src/scheduler/gang.rs`, which is read next.

use super::device::Device;
use super::seat::Seat;
use super::timer::Timer;
use super::{FOREVER, Gate, Settings};

/// Among whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Accounts of high priority: while only one of them wants the device, all their gates stand open.
    High,
    /// All others.
    Rest,
}

/// The right of one seat to hand over work.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    pub place: usize,
    /// When it began, or last was prevented from being used.
    since_ns: u64,
    charged_ns: i64,
    /// GPU time that may be used before others that come first are let in.
    pub total_ns: u64,
    /// The gate is closed, work in flight runs out.
    pub closing_ns: Option<u64>,
    /// How long it kept others waiting, and what of that beyond its use was charged.
    held_ns: u64,
    held_charged_ns: f64,
    /// Somebody waits for it to end.
    contended: bool,
    /// Given to one that misses of its share, before others of higher priority.
    first: bool,
}

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    side: Side,
    pub lease: Option<Lease>,
}

impl Lane {
    pub fn new(side: Side) -> Lane {
        Lane { side, lease: None }
    }

    /// The seat is gone.
    pub fn forget(&mut self, place: usize) {
        if self.holder() == Some(place) {
            self.lease = None;
        }
    }

    pub fn holder(&self) -> Option<usize> {
        self.lease.as_ref().map(|lease| lease.place)
    }

    /// The holder, if it was let in before others of higher priority.
    pub fn first_place(&self) -> Option<usize> {
        let lease = self.lease.as_ref()?;
        (lease.first && lease.closing_ns.is_none()).then_some(lease.place)
    }

    fn has(&self, seat: &Seat) -> bool {
        !seat.ganged && seat.stands_open() == (self.side == Side::High)
    }
}

/// What the surroundings allow a lane.
#[derive(Debug, Clone, Copy)]
struct Allowed {
    /// A new lease may begin.
    grant: bool,
    /// The present one must end.
    end: bool,
    /// A new lease yields to the demand of high priority.
    yields: bool,
}

impl Device {
    /// One step of all leases on this device.
    pub fn lease(&mut self, settings: &Settings, now: u64, timer: &mut Timer) {
        let first = self.best(settings, now, |_, seat| {
            self.rest.has(seat) && seat.rank == 0 && self.top > Some(seat.priority)
        });
        let claimed_first = self.claim.is_some_and(|account| {
            self.seats()
                .any(|(_, seat)| seat.account == account && seat.rank == 0)
        });
        let turn_of_rest = first.is_some() || self.rest.first_place().is_some() || claimed_first;
        if turn_of_rest {
            self.close_high();
        } else if self.high_wants() > 1 {
            let allowed = Allowed {
                grant: true,
                end: false,
                yields: true,
            };
            self.advance(Side::High, allowed, settings, now, timer);
        } else {
            self.open_high(settings);
        }
        let clear = !turn_of_rest || self.high_drained(settings, now);
        if !clear {
            timer.after(settings.look_ns, now);
        }
        let claimed = self.claim.is_some();
        let allowed = Allowed {
            grant: !claimed && clear,
            end: claimed,
            yields: !turn_of_rest,
        };
        self.advance(Side::Rest, allowed, settings, now, timer);
        if turn_of_rest && self.rest.lease.is_none() {
            timer.after(1, now);
        }
    }

    /// Whether nothing of high priority is at work, as far as is known.
    pub fn high_drained(&self, settings: &Settings, now: u64) -> bool {
        let mut high = self.seats().filter(|(_, seat)| seat.stands_open());
        high.all(|(_, seat)| {
            seat.seen.drained() || !seat.working(settings, now) || seat.stuck(settings.stuck_ns, 0, now)
        })
    }

    fn close_high(&mut self) {
        self.high.lease = None;
        for seat in self.seats.iter_mut().flatten().filter(|seat| seat.stands_open()) {
            seat.close();
        }
    }

    /// All of high priority may: at most one of them wants to.
    fn open_high(&mut self, settings: &Settings) {
        self.high.lease = None;
        for seat in self.seats.iter_mut().flatten().filter(|seat| seat.stands_open()) {
            if seat.throttled() || seat.paused {
                seat.close();
            } else if seat.word.gate == Gate::Open {
                seat.extend(FOREVER, settings);
            } else {
                seat.open(FOREVER, false);
            }
        }
    }

    fn lane(&self, side: Side) -> &Lane {
        match side {
            Side::High => &self.high,
            Side::Rest => &self.rest,
        }
    }

    fn lane_mut(&mut self, side: Side) -> &mut Lane {
        match side {
            Side::High => &mut self.high,
            Side::Rest => &mut self.rest,
        }
    }

    /// One step of one lane: ends, hands on or prolongs its lease.
    fn advance(&mut self, side: Side, allowed: Allowed, settings: &Settings, now: u64, timer: &mut Timer) {
        let holder = self.lane(side).holder();
        if holder
            .and_then(|place| self.seat(place))
            .is_some_and(|seat| seat.ganged)
        {
            return;
        }
        // In place of one of high priority, only those that miss of their share.
        let fits = |seat: &Seat| seat.rank == 0 || !seat.guarded && allowed.yields;
        let next = self.best(settings, now, |place, seat| {
            self.lane(side).has(seat) && Some(place) != holder && fits(seat)
        });
        if let Some(place) = holder {
            self.judge(side, place, next, allowed, settings, now, timer);
        }
        if self.lane(side).lease.is_none() && allowed.grant {
            let lane = self.lane(side);
            if let Some(place) = self.best(settings, now, |_, seat| lane.has(seat) && fits(seat)) {
                self.grant(side, place, allowed.yields, settings, now);
            }
        }
        self.close_others(side);
        if let Some(place) = self.lane(side).holder() {
            self.prolong(side, place, settings, now);
            let lane = self.lane(side);
            let wanted = self
                .best(settings, now, |other, seat| lane.has(seat) && other != place)
                .is_some();
            if wanted {
                timer.after(settings.look_ns, now);
            }
            if let Some(seat) = self.seat_mut(place) {
                seat.word.wanted = wanted || !allowed.yields || allowed.end;
            }
        }
    }

    /// Whether the present lease begins to end, ends, or goes on.
    #[allow(clippy::too_many_arguments, reason = "the surroundings of one judgement")]
    fn judge(
        &mut self,
        side: Side,
        place: usize,
        next: Option<usize>,
        allowed: Allowed,
        settings: &Settings,
        now: u64,
        timer: &mut Timer,
    ) {
        let (Some(seat), Some(lease)) = (self.seat(place), self.lane(side).lease.as_ref()) else {
            return;
        };
        let challenger = next.and_then(|next| self.seat(next));
        // Others of higher priority wait for one that was let in before them, and only one at a time is.
        let turn_over = lease.first && lease.used_up(seat, settings);
        let turn_begins = side == Side::Rest && !allowed.yields && !lease.first;
        let forced = allowed.end || seat.throttled() || seat.paused || turn_over || turn_begins;
        let others = |other: usize, seat: &Seat| self.lane(side).has(seat) && other != place;
        let waited_for =
            lease.first && (self.top > Some(seat.priority) || self.best(settings, now, others).is_some());
        let wanted = challenger.is_some() || forced || waited_for;
        let drained = seat.seen.drained();
        // Prevented from using its lease, it shows nothing by being quiet.
        let prevented = seat.word.yields && self.high_wants() > 0;
        let quiet = if prevented {
            0
        } else {
            seat.quiet_ns(now).min(now.saturating_sub(lease.since_ns))
        };
        let waits = seat.seen.waiting_since_ns.is_some();
        let gone = quiet > 2 * settings.lease_ns && (waits || !seat.working(settings, now));
        let stuck = lease
            .closing_ns
            .is_some_and(|since| seat.stuck(settings.stuck_ns, since, now));
        let idle = drained && !waits;
        if wanted && (gone || stuck || drained && lease.closing_ns.is_some() || idle) {
            self.end(side, settings);
            return;
        }
        if wanted {
            timer.after(settings.look_ns, now);
        }
        let ends = forced || challenger.is_some_and(|next| self.outdoes(next, seat, lease, settings));
        let alone = challenger.is_none();
        let lease = self.lane_mut(side).lease.as_mut();
        if let Some(lease) = lease {
            lease.contended = wanted && !prevented;
            if prevented {
                lease.since_ns = now;
            }
            match (ends, lease.closing_ns) {
                (true, None) => {
                    lease.closing_ns = Some(now);
                    if drained {
                        self.end(side, settings);
                    }
                }
                (false, Some(_)) if alone => lease.closing_ns = None,
                _ => {}
            }
        }
    }

    /// Whether `next` has waited long enough for what `seat` holds.
    fn outdoes(&self, next: &Seat, seat: &Seat, lease: &Lease, settings: &Settings) -> bool {
        if next.rank != seat.rank {
            return next.rank < seat.rank;
        }
        let woke = next
            .seen
            .waiting_since_ns
            .is_some_and(|since| since > lease.since_ns);
        let behind = seat.virtual_ns - next.virtual_ns > settings.preempt_ns as f64 / next.share;
        lease.used_up(seat, settings) || self.rule.policy == crate::config::Policy::Fair && woke && behind
    }

    fn end(&mut self, side: Side, settings: &Settings) {
        if let Some(lease) = self.lane_mut(side).lease.take()
            && let Some(seat) = self.seat_mut(lease.place)
        {
            seat.close();
            if lease.first && seat.missing_ns < settings.slack_ns as f64 {
                seat.rank = seat.usual_rank();
            }
        }
    }

    pub(super) fn grant(&mut self, side: Side, place: usize, yields: bool, settings: &Settings, now: u64) {
        let Some(seat) = self.seat_mut(place) else {
            return;
        };
        seat.open(settings.lease_ns, yields);
        let lease = Lease {
            place,
            since_ns: now,
            charged_ns: seat.charged_ns,
            total_ns: settings.lease_ns,
            closing_ns: None,
            held_ns: 0,
            held_charged_ns: 0.0,
            contended: false,
            first: side == Side::Rest && !yields && seat.rank == 0,
        };
        self.lane_mut(side).lease = Some(lease);
    }

    /// Every gate of the lane but the holder's is closed.
    fn close_others(&mut self, side: Side) {
        let lane = self.lane(side).clone();
        let open = lane.lease.as_ref().filter(|lease| lease.closing_ns.is_none());
        let open = open.map(|lease| lease.place);
        for (place, seat) in self.seats.iter_mut().enumerate() {
            if let Some(seat) = seat.as_mut().filter(|seat| lane.has(seat) && Some(place) != open) {
                seat.close();
            }
        }
    }

    /// How much the holder may use before it is another's turn.
    pub(super) fn prolong(&mut self, side: Side, place: usize, settings: &Settings, now: u64) {
        let Some(seat) = self.seat(place) else {
            return;
        };
        let least = match (seat.ganged, self.has_high() && side == Side::Rest) {
            (true, _) => settings.slot_ns,
            (_, true) => settings.background_lease_ns,
            _ => settings.lease_ns,
        };
        let equal = self.best(settings, now, |other, seat_| {
            // A gang that cannot have all its devices yet keeps nobody from one of them.
            let able = seat_.rank == 0 || !seat_.guarded;
            other != place && able && seat_.rank == seat.rank && (seat.ganged || self.lane(side).has(seat_))
        });
        let lead = equal
            .and_then(|other| self.seat(other))
            .map(|other| match self.rule.policy {
                crate::config::Policy::Fair => (other.virtual_ns - seat.virtual_ns) * seat.share,
                crate::config::Policy::Fifo => 0.0,
            });
        let Some(lease) = self.lane(side).lease.as_ref() else {
            return;
        };
        let used = lease.used_ns(seat);
        let least = if lease.first && !seat.ganged {
            settings.lease_ns
        } else {
            least
        };
        let total = match lead {
            _ if lease.first => least,
            Some(lead) => least.max(used.saturating_add(lead.max(0.0) as u64)),
            None => FOREVER,
        };
        let closing = lease.closing_ns.is_some();
        if let Some(lease) = self.lane_mut(side).lease.as_mut() {
            lease.total_ns = total;
        }
        if let Some(seat) = self.seat_mut(place).filter(|_| !closing) {
            // A rank whose gate closed by itself would leave the others in a collective it never begins.
            let left = if seat.ganged {
                FOREVER
            } else {
                total.saturating_sub(used)
            };
            if seat.word.gate == Gate::Closed {
                let yields = seat.word.yields;
                seat.open(left, yields);
            } else {
                seat.extend(left, settings);
            }
        }
    }

    /// Charges what holders kept from others without using it, during the `elapsed_ns` since the last decision.
    pub(super) fn charge_held(&mut self, elapsed_ns: u64, settings: &Settings) -> f64 {
        let mut sum = 0.0;
        for side in [Side::High, Side::Rest] {
            let Some(mut lease) = self.lane_mut(side).lease.take() else {
                continue;
            };
            if let Some(seat) = self.seat_mut(lease.place) {
                let owed = lease.hold(seat, elapsed_ns, settings);
                seat.charge_held(owed);
                sum += owed;
            }
            self.lane_mut(side).lease = Some(lease);
        }
        sum
    }
}

impl Lease {
    pub fn first(&self) -> bool {
        self.first
    }

    /// Whether somebody waits for it to end; only then is holding it without use charged.
    pub fn contend(&mut self, contended: bool) {
        self.contended = contended;
    }

    /// Whether what it was given for is used, or was kept from others as long.
    pub fn used_up(&self, seat: &Seat, settings: &Settings) -> bool {
        let held = if seat.ganged { self.held_ns } else { 0 };
        self.used_ns(seat).max(held) + settings.lease_ns / 32 >= self.total_ns
    }

    /// GPU time charged under this lease.
    pub fn used_ns(&self, seat: &Seat) -> u64 {
        seat.charged_ns.saturating_sub(self.charged_ns).max(0) as u64
    }

    /// What it owes beyond its use for `elapsed_ns` more. A hand-off is nobody's fault.
    fn hold(&mut self, seat: &Seat, elapsed_ns: u64, settings: &Settings) -> f64 {
        if self.contended {
            self.held_ns += elapsed_ns;
        }
        let free = settings.switch_ns + settings.signal_ns + self.used_ns(seat);
        let owed = self.held_ns.saturating_sub(free) as f64;
        let more = (owed - self.held_charged_ns).max(0.0);
        self.held_charged_ns += more;
        more
    }
}
