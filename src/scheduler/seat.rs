//! An account on one device: what it may, what it used, where it stands among the others. Read next: `src/scheduler/device.rs`.

use crate::config::Priority;

use super::bucket::Bucket;
use super::{AccountId, Gate, Reading, Rule, Settings, Word};

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Seat {
    pub account: AccountId,
    pub name: String,
    /// As asked for, and as granted beside the others, parts of the device.
    pub asked: f64,
    pub share: f64,
    pub priority: Priority,
    pub guard_ns: Option<u64>,
    pub starve: bool,
    /// Gated together with its account's other seats.
    pub ganged: bool,
    pub paused: bool,
    pub bucket: Option<Bucket>,
    pub seen: Reading,
    known: bool,
    /// GPU time charged, ever and since the last decision.
    pub charged_ns: i64,
    fresh_ns: f64,
    /// Virtual time: what was charged by the share. Least goes first.
    pub virtual_ns: f64,
    /// What it misses of its share while it wanted the device.
    pub missing_ns: f64,
    /// Whose turn it is first: 0 those that miss of their share, then by priority. Equal ranks go by virtual time.
    pub rank: u8,
    /// It wants the device: waits, has work in flight, or its demand is up.
    pub wants: bool,
    /// Too long for the latency guard of one of high priority: let in for its share alone.
    pub guarded: bool,
    /// It was active before.
    met: bool,
    /// It wants the device and is not held back by a rule of its own.
    pub active: bool,
    /// When it last wanted it itself; a gang's other seats wish for it too.
    pub present_at_ns: Option<u64>,
    pub gang_wants: bool,
    /// What its gate obeys, and what of it was handed out.
    pub word: Word,
    pub told: Word,
    /// What was handed over when the present epoch began.
    opened_ns: u64,
    last_pass_ns: u64,
}

impl Seat {
    pub fn new(account: AccountId, rule: &Rule, settings: &Settings, now: u64) -> Seat {
        let mut seat = Seat {
            account,
            name: String::new(),
            asked: 0.0,
            share: 0.0,
            priority: rule.priority,
            guard_ns: None,
            starve: false,
            ganged: false,
            paused: false,
            bucket: None,
            seen: Reading::default(),
            known: false,
            charged_ns: 0,
            fresh_ns: 0.0,
            virtual_ns: 0.0,
            missing_ns: 0.0,
            rank: 0,
            wants: false,
            guarded: false,
            met: false,
            active: false,
            present_at_ns: None,
            gang_wants: false,
            word: Word::default(),
            told: Word::default(),
            opened_ns: 0,
            last_pass_ns: 0,
        };
        seat.follow(rule, settings, now);
        seat
    }

    /// Takes over a changed rule; debts and virtual time stay.
    pub fn follow(&mut self, rule: &Rule, settings: &Settings, now: u64) {
        self.name.clone_from(&rule.name);
        // More than its limit it cannot use.
        let limit = rule.limit.map_or(1.0, |limit| limit.as_f64());
        self.asked = rule.share.as_f64().min(limit);
        self.priority = rule.priority;
        self.guard_ns = rule.latency_guard_ns;
        self.starve = rule.starve;
        self.paused = rule.paused;
        let old = self.bucket.take();
        self.bucket = rule.limit.map(|limit| {
            let mut bucket = old.unwrap_or_else(|| Bucket::new(limit.as_f64(), settings.bucket_ns, now));
            bucket.set_rate(limit.as_f64());
            bucket
        });
    }

    /// What the client's words say now. The first look only says from where to count.
    pub fn read(&mut self, reading: Reading) {
        let charged = reading.charged_ns();
        if self.known {
            self.fresh_ns += (charged - self.charged_ns) as f64;
        } else {
            self.known = true;
            self.word.epoch = reading.epoch;
            self.told.epoch = reading.epoch;
            self.word.passes = reading.passes;
            self.told.passes = reading.passes;
        }
        self.charged_ns = charged;
        self.seen = reading;
    }

    /// Charges what came since the last decision and returns it.
    pub fn charge(&mut self, now: u64) -> f64 {
        let fresh = std::mem::take(&mut self.fresh_ns);
        self.virtual_ns += fresh / self.share;
        self.missing_ns -= fresh;
        if let Some(bucket) = &mut self.bucket {
            bucket.take(fresh, now);
        }
        fresh
    }

    /// Charges time it held the device without using it. A limit is about use, so the bucket keeps it.
    pub fn charge_held(&mut self, held_ns: f64) {
        self.virtual_ns += held_ns / self.share;
        self.missing_ns -= held_ns;
    }

    /// Its part of what the device did since the last decision, if it wanted any. One that a latency guard keeps from an idle
    /// device is owed its part of the time.
    pub fn entitle(&mut self, done_ns: f64, elapsed_ns: u64) {
        let whole = if self.guarded {
            done_ns.max(elapsed_ns as f64)
        } else {
            done_ns
        };
        if self.active {
            self.missing_ns += whole * self.share;
        }
        if self.throttled() {
            self.missing_ns = 0.0;
        }
        // More than its share counts for as long as the work may still turn out shorter than predicted.
        let ahead = self.seen.in_flight_ns() as f64;
        self.missing_ns = self.missing_ns.clamp(-ahead, self.share * 1e9);
    }

    /// Whether it waits, works or announces work.
    pub fn present(&self, settings: &Settings, now: u64) -> bool {
        let waits = self.seen.waiting_since_ns.is_some() && !self.silent(settings, now);
        waits || self.working(settings, now) || self.demands(now)
    }

    /// Notes whether it wants the device; true where it has just become active.
    pub fn look(&mut self, settings: &Settings, now: u64) -> bool {
        let before = self.active;
        let present = self.present(settings, now);
        self.wants = present || self.gang_wants;
        if present {
            self.present_at_ns = Some(now);
        }
        self.active = self.wants && !self.throttled() && !self.paused;
        self.active && !before
    }

    /// On return from idle or from its limit: what it did not use then is not owed to it, but for one lease.
    /// A newcomer begins where the others are.
    pub fn clamp(&mut self, level_ns: f64, settings: &Settings) {
        let credit = if self.met {
            settings.lease_ns as f64 / self.share
        } else {
            0.0
        };
        self.met = true;
        self.virtual_ns = self.virtual_ns.max(level_ns - credit);
    }

    /// By its priority alone.
    pub fn usual_rank(&self) -> u8 {
        3 - self.priority as u8
    }

    /// Its kernels are longer than an account of high priority bears.
    pub fn too_long(&self, guard_ns: Option<u64>) -> bool {
        self.priority != Priority::High && guard_ns.is_some_and(|guard| self.seen.longest_ns > guard)
    }

    /// A demand of high priority is up.
    pub fn demands(&self, now: u64) -> bool {
        self.priority == Priority::High && self.seen.demand_until_ns > now
    }

    /// One of high priority whose gate stands open, so that it never waits for the daemon.
    pub fn stands_open(&self) -> bool {
        self.priority == Priority::High && !self.ganged
    }

    /// A thread waits at its gate but shows no sign of life: stopped.
    pub fn silent(&self, settings: &Settings, now: u64) -> bool {
        self.quiet_ns(now) > settings.silent_ns
    }

    /// A thread hands work over, or some is in flight that is likely not finished: nobody looks after work while its
    /// program is busy elsewhere or stopped.
    pub fn working(&self, settings: &Settings, now: u64) -> bool {
        let (quiet, in_flight) = (self.quiet_ns(now), self.seen.in_flight_ns());
        let likely = if self.seen.syncing {
            settings.stuck_ns + 4 * in_flight
        } else {
            2 * settings.lease_ns + 2 * in_flight
        };
        (in_flight > 0 || self.seen.launching) && quiet <= likely
    }

    /// How long ago it last did anything.
    pub fn quiet_ns(&self, now: u64) -> u64 {
        let seen = &self.seen;
        let alive = seen.alive_at_ns.max(seen.moved_at_ns);
        now.saturating_sub(alive.max(seen.waiting_since_ns.unwrap_or(0)))
    }

    /// Waits to be let in, and may be.
    pub fn eligible(&self, settings: &Settings, now: u64) -> bool {
        let waits = self.seen.waiting_since_ns.is_some() && !self.silent(settings, now);
        waits && !self.paused && !self.throttled()
    }

    /// Its limit is used up.
    pub fn throttled(&self) -> bool {
        self.bucket.is_some_and(|bucket| bucket.dry())
    }

    /// Work in flight that has not moved for `least_ns` and four times as long as predicted.
    pub fn stuck(&self, least_ns: u64, since_ns: u64, now: u64) -> bool {
        let seen = &self.seen;
        let still = now.saturating_sub(seen.moved_at_ns.max(since_ns));
        let predicted = seen.longest_ns.max(seen.in_flight_ns());
        seen.in_flight_ns() > 0 && still > least_ns.max(4 * predicted)
    }

    /// Lets one thread through a closed gate whose own work in flight may be waiting for it.
    pub fn let_through(&mut self, settings: &Settings, now: u64) {
        let since = self.seen.waiting_since_ns.unwrap_or(now).max(self.last_pass_ns);
        if self.word.gate == Gate::Closed && self.stuck(settings.spin_ns, since, now) {
            self.word.passes = self.word.passes.wrapping_add(1);
            self.last_pass_ns = now;
        }
    }

    /// GPU time handed over under the present epoch.
    fn handed_ns(&self) -> u64 {
        self.seen.submitted_ns.saturating_sub(self.opened_ns)
    }

    /// The gate has closed by itself: what it was allowed is handed over.
    pub fn exhausted(&self) -> bool {
        self.handed_ns() >= self.word.lease_ns
    }

    /// Opens the gate under a new epoch, for `left_ns` of GPU time.
    pub fn open(&mut self, left_ns: u64, yields: bool) {
        self.word.epoch = self.word.epoch.wrapping_add(1);
        self.word.gate = Gate::Open;
        self.word.yields = yields;
        self.opened_ns = self.seen.submitted_ns;
        self.word.lease_ns = self.limited(left_ns);
    }

    /// Keeps the gate open for `left_ns` more; small changes are not worth a write.
    pub fn extend(&mut self, left_ns: u64, settings: &Settings) {
        let lease_ns = self.handed_ns().saturating_add(self.limited(left_ns));
        let change = self.word.lease_ns.abs_diff(lease_ns);
        if change > settings.lease_ns / 32 || self.exhausted() {
            self.word.lease_ns = lease_ns;
        }
    }

    fn limited(&self, left_ns: u64) -> u64 {
        self.bucket.map_or(left_ns, |bucket| left_ns.min(bucket.run_ns()))
    }

    /// Lets a closed rank run on to the cut.
    pub fn run_on(&mut self) {
        self.word.epoch = self.word.epoch.wrapping_add(1);
        self.word.gate = Gate::RunOn;
    }

    /// Closes the gate, if it is not closed yet.
    pub fn close(&mut self) {
        if self.word.gate != Gate::Closed {
            self.word.epoch = self.word.epoch.wrapping_add(1);
            self.word.gate = Gate::Closed;
        }
    }
}
