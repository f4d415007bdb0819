//! Who holds how many SMs of a device, and how fast that makes everything on it.
//!
//! Next file of the walk: `model/group.rs`.

use super::device::{Device, FULL, Form, Run, Terms};
use super::op::Sharing;

/// However much others disturb, this part of the speed is left, in 1/1000.
const FLOOR: u64 = 10;

/// `rate` less `lost`/`whole` of it, never below the floor.
fn slowed(rate: u64, lost: u64, whole: u64) -> u64 {
    let lost = lost.min(whole - whole * FLOOR / 1000);
    (rate as u128 * (whole - lost) as u128 / whole as u128).max(1) as u64
}

impl Device {
    /// Hands out the SMs and sets all speeds. Parties of a group are not set going here.
    pub fn hand_out(&mut self, terms: impl Fn(usize) -> Terms) {
        self.active.clear();
        for run in &mut self.runs {
            (run.held, run.speed, run.rate) = (0, 0, 0);
        }
        let mut free = self.config.sms;
        // What has begun as a whole goes on as a whole; the rest: more urgent and earlier ones first,
        // later ones get what is left over.
        for begun in [true, false] {
            for i in 0..self.runs.len() {
                if matches!(self.runs[i].form, Form::Whole { begun: true }) != begun {
                    continue;
                }
                if !self.give(i, &mut free, &terms) {
                    break;
                }
            }
        }
        self.disturb(self.config.sms - free);
        for run in &mut self.runs {
            run.rate = match run.form {
                Form::Party(_) => 0,
                _ => run.speed,
            };
        }
    }

    /// Gives one kernel what it can have; false if those behind it must wait.
    fn give(&mut self, run: usize, free: &mut u32, terms: &impl Fn(usize) -> Terms) -> bool {
        let total = self.config.sms;
        let run: &mut Run = &mut self.runs[run];
        let mine = self
            .active
            .iter_mut()
            .find(|(client, _)| *client == run.owner.client);
        let held = mine.as_ref().map_or(0, |(_, held)| *held);
        let cap = match self.config.sharing {
            Sharing::Sliced { .. } if self.resident != Some(run.owner) => return true,
            Sharing::Sliced { .. } => total,
            Sharing::Together { .. } => {
                let share = terms(run.owner.client).share;
                (total as u64 * share as u64 / 100).max(1) as u32
            }
        };
        let most = (*free).min(cap.saturating_sub(held));
        if let Form::Whole { begun } = &mut run.form {
            if most < run.sms.min(cap) {
                return false;
            }
            *begun = true;
        }
        let want = run.sms.min(most);
        if want == 0 {
            return true;
        }
        run.held = want;
        run.speed = FULL * want as u64 / run.sms as u64;
        *free -= want;
        match mine {
            Some((_, held)) => *held += want,
            None => self.active.push((run.owner.client, want)),
        }
        true
    }

    /// What neighbours cost: kernels side by side with others, and memory bandwidth.
    fn disturb(&mut self, held: u32) {
        let total = self.config.sms as u64;
        let contention = self.config.contention.min(1000) as u64;
        let active = &self.active;
        let others = |client: usize| {
            let mine = active.iter().find(|(owner, _)| *owner == client);
            held as u64 - mine.map_or(0, |(_, held)| *held as u64)
        };
        let copies: Vec<(usize, u64)> = self
            .engines
            .iter()
            .filter_map(|e| {
                e.busy
                    .as_ref()
                    .map(|busy| (busy.lane.client, busy.traffic as u64))
            })
            .collect();
        // In 1/1000 of the memory's bandwidth.
        let traffic = |client: usize| {
            let foreign = copies.iter().filter(|(owner, _)| *owner != client);
            foreign.map(|(_, traffic)| traffic).sum::<u64>()
        };
        for run in self.runs.iter_mut().filter(|r| r.held > 0) {
            if let Sharing::Together { interference } = self.config.sharing {
                let lost = interference as u64 * others(run.owner.client);
                run.speed = slowed(run.speed, lost, 1000 * total);
            }
            match contention * traffic(run.owner.client).min(1000) {
                0 => {}
                lost => run.speed = slowed(run.speed, lost, 1_000_000),
            }
        }
        for busy in self.engines.iter_mut().filter_map(|e| e.busy.as_mut()) {
            let client = busy.lane.client;
            let pressure = (traffic(client) + 1000 * others(client) / total).min(1000);
            let lost = contention * pressure * busy.traffic as u64;
            busy.rate = match lost {
                0 => FULL,
                lost => slowed(FULL, lost, 1_000_000_000),
            };
        }
    }
}
