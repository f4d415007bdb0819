//! `stint why`: the rule in force for an account, where it comes from, and what was refused last.

use std::time::SystemTime;

use super::core::Core;
use crate::admission::identity::Place;
use crate::admission::process;
use crate::config::MemoryRule;
use crate::config::units::Memory;
use crate::events::timestamp;
use crate::exit::Failure;
use crate::protocol::why::{Account, Device, Holding, Origin, Process, Rule, SCHEMA, Standing, Why};
use crate::state::{Key, Setting, Subject};

impl Core {
    /// Answers `why`.
    pub fn why(&mut self, subject: &str) -> Result<Why, Failure> {
        self.reap();
        self.answer_bells();
        self.read_ledgers();
        let (process, accounts) = match subject.parse::<u32>() {
            Ok(pid) => self.why_process(pid)?,
            Err(_) => (None, self.accounts_of(&self.known_target(subject)?)),
        };
        let mut told: Vec<Account> = accounts
            .iter()
            .filter_map(|account| self.places.get(account))
            .map(|place| self.why_account(place, Some(&place.account)))
            .collect();
        if told.is_empty() && process.is_none() {
            told.push(self.why_account(&self.example_of(subject), None));
        }
        Ok(Why {
            schema: SCHEMA.into(),
            subject: subject.into(),
            mode: self.config.node.mode,
            process,
            accounts: told,
        })
    }

    fn why_process(&self, pid: u32) -> Result<(Option<Process>, Vec<String>), Failure> {
        let bare = |state| Process {
            pid,
            state,
            user: None,
            command: None,
            since: None,
            devices: Vec::new(),
            reason: None,
            message: None,
        };
        let Some(subject) = self.state.subject(pid) else {
            if process::stat(pid).is_none() {
                return Err(Failure::failed(format!(
                    "there is no process {pid}, and none of that number was turned away lately"
                )));
            }
            let command = Some(process::command(pid));
            return Ok((
                Some(Process {
                    command,
                    ..bare(Standing::None)
                }),
                Vec::new(),
            ));
        };
        let (process, account) = match subject {
            Subject::Client {
                account,
                user,
                command,
                since,
                devices,
            } => {
                let held = |(index, bytes)| Holding {
                    index,
                    used_bytes: Some(bytes),
                };
                let process = Process {
                    user: Some(user),
                    command: Some(command),
                    since: Some(timestamp(since)),
                    devices: devices.into_iter().map(held).collect(),
                    ..bare(Standing::Client)
                };
                (process, Some(account))
            }
            Subject::Stranger {
                user,
                command,
                since,
                devices,
            } => {
                let held = |(index, used_bytes)| Holding { index, used_bytes };
                let process = Process {
                    user,
                    command,
                    since: Some(timestamp(since)),
                    devices: devices.into_iter().map(held).collect(),
                    ..bare(Standing::Unattached)
                };
                (process, None)
            }
            Subject::Denied(denial) => {
                let process = Process {
                    user: Some(denial.user),
                    since: Some(timestamp(denial.at)),
                    reason: Some(denial.reason.into()),
                    message: Some(denial.message),
                    ..bare(Standing::Denied)
                };
                (process, None)
            }
        };
        Ok((Some(process), account.into_iter().collect()))
    }

    fn why_account(&self, place: &Place, open: Option<&String>) -> Account {
        let granted = match open.and_then(|account| self.grants.get(account)) {
            Some(granted) => granted.clone(),
            None => self.grants_of(place),
        };
        let used = open.map(|account| self.ledgers.read(account)).unwrap_or_default();
        let on = |(index, granted): (usize, &crate::state::Granted)| Device {
            index: self.inventory.devices[index].index,
            cap_bytes: granted.cap_bytes,
            guaranteed_bytes: granted.guaranteed_bytes,
            drained: self
                .state
                .drains
                .device(&self.inventory.devices[index].uuid)
                .is_some(),
            used_bytes: used.get(index).map(|reading| reading.used_bytes),
        };
        Account {
            tenant: place.tenant.clone(),
            account: open.cloned(),
            rule: self.rule_of(place),
            devices: granted.iter().enumerate().map(on).collect(),
            last_refusal: open.and_then(|account| self.state.last_refusal(account)),
            not_in_force: self.later_for(place),
        }
    }

    fn rule_of(&self, place: &Place) -> Rule {
        let MemoryRule { guaranteed, cap } = self.memory_rule(place);
        let words = |memory: Memory| memory.to_string();
        let bare = Rule {
            memory: words(cap),
            guaranteed: guaranteed.map(words),
            from: Origin::Nothing,
            at: None,
            by: None,
            until: None,
            part_of: place.carved_from.clone(),
            lowered_to: self
                .overrides
                .lowering(&place.account)
                .map(|setting| setting.text.clone()),
        };
        let set = |target: &str| -> Option<&Setting> {
            let mut of = self.overrides.of(target).filter(|(key, _)| key.is_memory());
            of.next().map(|(_, setting)| setting)
        };
        let set_for_tenant = || set(&place.tenant).filter(|_| !place.asked);
        let around = self.set_over(place).map(|(_, setting)| setting);
        let binds = |setting: &&Setting| {
            let most = setting.text.parse::<Memory>();
            most.is_ok_and(|most| place.memory.cap.surely_exceeds(most))
        };
        if let (None, Some(setting)) = (set(&place.account), around.filter(binds)) {
            return Rule {
                memory: setting.text.clone(),
                from: Origin::Set,
                by: Some(setting.by.clone()),
                until: setting.until.map(timestamp),
                ..bare
            };
        }
        if let Some(setting) = set(&place.account).or_else(set_for_tenant) {
            return Rule {
                from: Origin::Set,
                by: Some(setting.by.clone()),
                until: setting.until.map(timestamp),
                ..bare
            };
        }
        if place.asked {
            return Rule {
                from: Origin::Launch,
                ..bare
            };
        }
        let tenant = self.config.tenant(&place.tenant, SystemTime::now());
        let own = tenant.and_then(|tenant| tenant.memory_at.as_ref());
        let (from, at) = match (own, &self.config.defaults_memory_at) {
            (Some(at), _) => (Origin::Tenant, Some(at)),
            (None, Some(at)) => (Origin::Defaults, Some(at)),
            (None, None) => (Origin::Nothing, None),
        };
        Rule {
            from,
            at: at.map(ToString::to_string),
            ..bare
        }
    }

    /// Keys said for `place` that have no effect yet.
    fn later_for(&self, place: &Place) -> Vec<String> {
        let mine = self
            .config
            .not_in_force
            .iter()
            .filter(|key| key.tenant() == Some(&place.tenant));
        let own: Vec<&str> = mine.map(|key| key.key).collect();
        let written = self.config.not_in_force.iter().filter(|key| match key.tenant() {
            Some(tenant) => tenant == place.tenant,
            None => key.stanza == "defaults" && !own.contains(&key.key),
        });
        let mut later: Vec<String> = written.map(ToString::to_string).collect();
        let targets = [&place.account, &place.tenant];
        for target in targets
            .into_iter()
            .take(if place.account == place.tenant { 1 } else { 2 })
        {
            let set = self.overrides.of(target).filter(|(key, _)| !key.in_force());
            later.extend(set.map(|(key, setting): (Key, &Setting)| {
                format!(
                    "`{}={}` set for {target} by {} is understood and not in force yet",
                    key.as_str(),
                    setting.text,
                    setting.by
                )
            }));
        }
        later
    }
}
