//! Who may hand work to a device, when, and how much of it: guaranteed shares, priorities, limits, leases, gangs. Pure: no file,
//! socket, thread or clock; readings and time come in as arguments, decisions go out as values.
//!
//! One decision: [`Scheduler::read`] takes the words clients wrote, [`Scheduler::decide`] charges what they used, asks each
//! gang (`src/scheduler/gang.rs`) and each device (`src/scheduler/device.rs`, `src/scheduler/lane.rs`), and returns the policy words
//! that changed. `docs/scheduling.md` follows one; `docs/decisions/0011-the-gate-reads-words.md` says what a gate does with
//! them. Read next: `src/scheduler/settings.rs`, `src/scheduler/rule.rs`.

mod bucket;
mod cut;
mod device;
mod gang;
mod lane;
mod open;
mod order;
mod reading;
mod rule;
mod seat;
mod settings;
mod timer;
mod why;
mod word;

pub use cut::{Communicator, Cut};
pub use reading::Reading;
pub use rule::{DeviceRule, Rule};
pub use settings::{FOREVER, MS, Settings, US};
pub use word::{Gate, Word};

use crate::config::DeviceMode;

use device::Device;
use gang::{Gang, Member, Rank};
use seat::Seat;
use timer::Timer;

/// An account, for as long as it is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(pub usize);

/// One policy word that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    pub account: AccountId,
    pub device: usize,
    pub word: Word,
}

/// What a decision changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decision {
    pub changes: Vec<Change>,
    /// How far ranks whose gate says [`Gate::RunOn`] go on. Written before the words.
    pub cuts: Vec<Cut>,
    /// The next decision is due then, also if no doorbell rings.
    pub due_ns: Option<u64>,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Scheduler {
    settings: Settings,
    devices: Vec<Device>,
    accounts: Vec<Option<Account>>,
}

#[derive(Debug, Clone)]
struct Account {
    rule: Rule,
    ranks: Vec<Rank>,
    gang: Gang,
}

impl Scheduler {
    /// A node of such devices, without accounts.
    pub fn new(settings: Settings, devices: &[DeviceRule]) -> Scheduler {
        Scheduler {
            settings,
            devices: devices.iter().map(|rule| Device::new(*rule)).collect(),
            accounts: Vec::new(),
        }
    }

    /// An account that may use `devices` (indices; those the node lacks are left out). Its gates are closed until the next decision.
    pub fn admit(&mut self, rule: Rule, devices: &[usize], now: u64) -> AccountId {
        let free = self.accounts.iter().position(Option::is_none);
        let id = AccountId(free.unwrap_or(self.accounts.len()));
        let mut ranks = Vec::new();
        for at in devices {
            if let Some(device) = self.devices.get_mut(*at) {
                ranks.push((*at, device.take(Seat::new(id, &rule, &self.settings, now))));
            }
        }
        let account = Account {
            rule,
            ranks,
            gang: Gang::default(),
        };
        match self.accounts.get_mut(id.0) {
            Some(place) => *place = Some(account),
            None => self.accounts.push(Some(account)),
        }
        id
    }

    /// The rule of an account is another one from now on; what it owes stays.
    pub fn change(&mut self, id: AccountId, rule: Rule, now: u64) {
        let Some(account) = self.accounts.get_mut(id.0).and_then(Option::as_mut) else {
            return;
        };
        for (at, place) in &account.ranks {
            if let Some(seat) = self.devices[*at].seat_mut(*place) {
                seat.follow(&rule, &self.settings, now);
            }
            self.devices[*at].scale();
        }
        account.rule = rule;
    }

    /// The account's last client has left, or died.
    pub fn remove(&mut self, id: AccountId) {
        let Some(account) = self.accounts.get_mut(id.0).and_then(Option::take) else {
            return;
        };
        for (at, place) in account.ranks {
            self.devices[at].leave(place);
            if self.devices[at].claim == Some(id) {
                self.devices[at].claim = None;
            }
        }
    }

    /// What the words of `id` on `device` say now. Read after the words of the decision before were written.
    pub fn read(&mut self, id: AccountId, device: usize, reading: Reading) {
        if let Some((at, place)) = self.rank(id, device)
            && let Some(seat) = self.devices[at].seat_mut(place)
        {
            seat.read(reading);
        }
    }

    /// How many collectives of a communicator the rank on `device` has begun, counted from its first.
    pub fn read_begun(&mut self, id: AccountId, device: usize, communicator: Communicator, begun: u64) {
        let account = self.accounts.get_mut(id.0).and_then(Option::as_mut);
        let Some(account) = account else {
            return;
        };
        if account.ranks.iter().any(|(at, _)| *at == device) {
            let communicator = account.gang.begun.entry(communicator);
            communicator.or_default().insert(device, begun);
        }
    }

    fn rank(&self, id: AccountId, device: usize) -> Option<Rank> {
        let account = self.accounts.get(id.0)?.as_ref()?;
        account.ranks.iter().copied().find(|(at, _)| *at == device)
    }

    /// Decides at `now`, from what was read before. Time never runs backwards for an account: an earlier `now` counts as no time.
    pub fn decide(&mut self, now: u64) -> Decision {
        let (settings, mut timer) = (&self.settings, Timer::new());
        for device in &mut self.devices {
            device.charge(settings, now);
        }
        for account in self
            .accounts
            .iter_mut()
            .flatten()
            .filter(|account| account.ranks.len() > 1)
        {
            let together = account.rule.together;
            account
                .gang
                .form(&account.ranks, together, &mut self.devices, settings, now);
        }
        for device in &mut self.devices {
            device.look(settings, now);
            device.rank(settings, now, &mut timer);
        }
        let mut decision = Decision::default();
        self.decide_gangs(now, &mut timer, &mut decision.cuts);
        let settings = &self.settings;
        for (at, device) in self.devices.iter_mut().enumerate() {
            device.decide(settings, now, &mut timer);
            device.collect(at, &mut decision.changes);
        }
        decision.due_ns = timer.due_ns();
        decision
    }

    /// Gangs, those that come first before the others.
    fn decide_gangs(&mut self, now: u64, timer: &mut Timer, cuts: &mut Vec<Cut>) {
        let devices = &mut self.devices;
        let mut order: Vec<(u8, f64, usize)> = Vec::new();
        for (index, account) in self.accounts.iter_mut().enumerate() {
            let Some(account) = account.as_mut().filter(|account| account.gang.is_one()) else {
                continue;
            };
            let (mut rank, mut most) = (u8::MAX, f64::NEG_INFINITY);
            for seat in account
                .gang
                .ranks()
                .iter()
                .filter_map(|(at, place)| devices[*at].seat(*place))
            {
                rank = rank.min(seat.rank);
                most = most.max(seat.virtual_ns);
            }
            for (at, place) in account.gang.ranks() {
                if let Some(seat) = devices[*at].seat_mut(*place) {
                    seat.rank = rank;
                }
            }
            order.push((rank, most, index));
        }
        order.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        for (_, _, index) in order {
            let Some(account) = &mut self.accounts[index] else {
                continue;
            };
            let mut member = Member {
                account: AccountId(index),
                gang: &mut account.gang,
            };
            member.step(devices, &self.settings, now, timer, cuts);
        }
    }

    /// GPU time charged to an account on a device since it was admitted, ns.
    pub fn charged_ns(&self, id: AccountId, device: usize) -> i64 {
        let seat = self
            .rank(id, device)
            .and_then(|(at, place)| self.devices[at].seat(place));
        seat.map_or(0, |seat| seat.charged_ns)
    }
}

impl Device {
    /// The words that changed since they were last handed out.
    fn collect(&mut self, at: usize, changes: &mut Vec<Change>) {
        for seat in self.seats.iter_mut().flatten() {
            if seat.word != seat.told {
                seat.told = seat.word;
                changes.push(Change {
                    account: seat.account,
                    device: at,
                    word: seat.word,
                });
            }
        }
    }

    /// The words of this device's seats.
    fn decide(&mut self, settings: &Settings, now: u64, timer: &mut Timer) {
        match self.rule.mode {
            DeviceMode::Share | DeviceMode::Mig => self.lease(settings, now, timer),
            DeviceMode::Mps => self.open_together(settings, now, timer),
            DeviceMode::Exclusive => self.open_one(settings, now),
        }
        let (high, guard) = (self.has_high(), self.guard_ns());
        for seat in self.seats.iter_mut().flatten() {
            let narrow = high && seat.priority != crate::config::Priority::High;
            seat.word.window_ns = if narrow {
                settings.narrow_window(guard, seat.seen.longest_ns)
            } else {
                settings.window_ns
            };
            seat.let_through(settings, now);
            if seat.throttled()
                && seat.wants
                && let Some(bucket) = &seat.bucket
            {
                timer.after(bucket.refill_ns(), now);
            }
        }
    }
}
