//! The daemon's side of the model: it hears doorbells late or not at all, reads the clients' words, lets the scheduler decide and
//! writes the policy words. It can be dead. Read next: `tests/scheduling/model/truth.rs`.

use stint::scheduler::{AccountId, Decision, DeviceRule, Rule, Scheduler, Settings};

use super::client::{Client, Doing};

/// What is done to decisions before they reach the gates, to show that the tests would notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Decisions after the first ten are lost.
    Deaf,
    /// Whoever waited for 12 ms is let in, whatever its virtual time says.
    BlindValve,
    /// Windows are ten times as wide.
    WideWindows,
    /// Half of what was used is not charged.
    ForgetsUse,
    /// Ranks that are behind stay closed.
    NoCut,
}

/// See the module.
pub struct Daemon {
    pub scheduler: Scheduler,
    settings: Settings,
    devices: Vec<DeviceRule>,
    pub alive: bool,
    /// When it last showed that it lives.
    pub heartbeat: u64,
    /// A doorbell rang and was not heard yet.
    pub ringing: bool,
    /// Cancels due times of earlier decisions.
    pub due_turn: u64,
    /// Scheduler's names of the accounts.
    pub ids: Vec<Option<AccountId>>,
    pub decisions: u64,
    pub sabotage: Option<Sabotage>,
    /// How wrong its clock is, at most.
    pub clock_error_ns: u64,
}

impl Daemon {
    pub fn new(settings: Settings, devices: Vec<DeviceRule>) -> Daemon {
        Daemon {
            scheduler: Scheduler::new(settings.clone(), &devices),
            settings,
            devices,
            alive: true,
            heartbeat: 0,
            ringing: false,
            due_turn: 0,
            ids: Vec::new(),
            decisions: 0,
            sabotage: None,
            clock_error_ns: 0,
        }
    }

    /// A new daemon: all it knows is in the clients' words and the rules.
    pub fn restart(&mut self, accounts: &[Option<(Rule, Vec<usize>)>], now: u64) {
        self.scheduler = Scheduler::new(self.settings.clone(), &self.devices);
        self.alive = true;
        self.ids = vec![None; accounts.len()];
        for (index, account) in accounts.iter().enumerate() {
            if let Some((rule, devices)) = account {
                self.ids[index] = Some(self.scheduler.admit(rule.clone(), devices, now));
            }
        }
    }

    pub fn admit(&mut self, account: usize, rule: &Rule, devices: &[usize], now: u64) {
        self.ids.resize(self.ids.len().max(account + 1), None);
        self.ids[account] = Some(self.scheduler.admit(rule.clone(), devices, now));
    }

    pub fn remove(&mut self, account: usize) {
        if let Some(id) = self.ids.get_mut(account).and_then(Option::take) {
            self.scheduler.remove(id);
        }
    }

    pub fn device(&self, device: usize) -> DeviceRule {
        self.devices[device]
    }

    /// Reads all words and decides.
    pub fn decide(&mut self, clients: &mut [Client], now: u64) -> Decision {
        for client in clients.iter_mut().filter(|client| client.doing != Doing::Dead) {
            let Some(id) = self.ids.get(client.account).copied().flatten() else {
                continue;
            };
            let mut reading = client.reading(now);
            if self.sabotage == Some(Sabotage::ForgetsUse) && client.account == 0 {
                reading.used_ns /= 2;
            }
            self.scheduler.read(id, client.device, reading);
            for (communicator, begun) in &client.begun {
                self.scheduler
                    .read_begun(id, client.device, *communicator, *begun);
            }
        }
        let error = if self.clock_error_ns == 0 {
            0
        } else {
            self.decisions * 7919 % self.clock_error_ns
        };
        let mut decision = self.scheduler.decide(now.saturating_sub(error));
        decision.due_ns = decision.due_ns.map(|due| due.max(now + 1_000));
        self.decisions += 1;
        match self.sabotage {
            Some(Sabotage::Deaf) if self.decisions > 10 => decision = Decision::default(),
            Some(Sabotage::WideWindows) => {
                for change in &mut decision.changes {
                    change.word.window_ns *= 10;
                }
            }
            Some(Sabotage::NoCut) => decision.cuts.clear(),
            _ => {}
        }
        decision
    }
}
