//! `stint set`: values above the quota file, live. Who may is decided here by the caller's credentials; what follows for
//! every account is `daemon/regrant.rs`.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use super::callers::Caller;
use super::core::Core;
use super::record;
use crate::admission::admin::Admin;
use crate::admission::identity::{Peer, Place, place_of};
use crate::config::units::{self, Bytes, Memory};
use crate::config::{DEFAULT_TENANT, MemoryRule, Per, nearest};
use crate::events::timestamp;
use crate::exit::Failure;
use crate::protocol::set::{Account, Amounts, Changed, Device, SCHEMA, Set};
use crate::state::{Event, Granted, Key, Overrides, Setting};

/// Longest `--for`.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// What drops a value.
const DROP: &str = "default";

/// A request, checked against everything but who asks.
struct Wish {
    target: String,
    /// `None` drops.
    values: Vec<(Key, Option<String>)>,
    until: Option<SystemTime>,
}

impl Core {
    /// Answers `set`.
    pub fn set(&mut self, admin: &Admin, asked: &Set) -> Result<Changed, Failure> {
        self.reap();
        let Caller {
            billed: peer, acting, ..
        } = self.caller(admin)?;
        let now = SystemTime::now();
        let wish = self.check_wish(asked, now)?;
        let setting = |text: &String| Setting {
            text: text.clone(),
            by: peer.user.clone(),
            at: now,
            until: wish.until,
        };
        let mut next = self.overrides.clone();
        if self.authority.over(&acting) {
            for (key, text) in &wish.values {
                next.set(&wish.target, *key, text.as_ref().map(setting));
                for account in self.accounts_of(&wish.target) {
                    next.overrule(&account, *key);
                }
            }
        } else {
            let account = self.may_lower(&peer, &wish)?;
            for (key, text) in &wish.values {
                next.lower(&account, *key, text.as_ref().map(setting));
            }
        }
        let changed = self.put_overrides(next, &wish)?;
        let dropped = |text: &Option<String>| text.clone().unwrap_or_else(|| DROP.into());
        for (key, text) in &wish.values {
            self.apply(Event::Set {
                target: wish.target.clone(),
                key: key.as_str(),
                text: dropped(text),
                by: peer.user.clone(),
                until: wish.until,
            });
        }
        Ok(changed)
    }

    /// Takes out what is over by now. Called once a second.
    pub fn end_settings(&mut self, now: SystemTime) {
        let ended = self.overrides.expire(now);
        if ended.is_empty() {
            return;
        }
        for ended in ended {
            let concerns_compute = matches!(ended.key, Key::Share | Key::Limit);
            let places = concerns_compute.then(|| self.places_of(&ended.target));
            self.apply(Event::SetEnded {
                target: ended.target,
                key: ended.key.as_str(),
                text: ended.setting.text,
                by: ended.setting.by,
            });
            // Nobody is there to be refused.
            for place in places.into_iter().flatten() {
                if let Err(why) = self.check_compute_of(&self.overrides, &place) {
                    let message = why.message;
                    self.apply(Event::ConfigNote { message });
                }
            }
        }
        self.record_overrides();
        self.regrant();
    }

    fn check_wish(&self, asked: &Set, now: SystemTime) -> Result<Wish, Failure> {
        let target = self.known_target(&asked.target)?;
        if asked.values.is_empty() {
            return Err(Failure::usage("nothing to set: write for example `memory=8GiB`"));
        }
        let mut values = Vec::new();
        for (name, text) in &asked.values {
            let key = Key::named(name).map_err(Failure::usage)?;
            if text == DROP {
                values.push((key, None));
                continue;
            }
            key.check(text)
                .map_err(|why| Failure::usage(format!("{name}: {why}")))?;
            if key.is_memory() {
                self.check_devices(&text.parse().map_err(Failure::usage)?)?;
            }
            values.push((key, Some(text.clone())));
        }
        let keys: Vec<Key> = values.iter().map(|(key, _)| *key).collect();
        if keys.contains(&Key::Memory) && (keys.contains(&Key::Burst) || keys.contains(&Key::Guaranteed)) {
            return Err(Failure::usage(
                "`memory` is cap and guarantee in one: write it, or `memory.burst` and `memory.guaranteed`",
            ));
        }
        let length = asked.period.as_deref().map(units::duration).transpose();
        let length = length.map_err(|error| Failure::usage(format!("--for: {error}")))?;
        if length.is_some_and(|length| length > LONGEST) {
            return Err(Failure::usage("--for: write at most 3650d, or leave it out"));
        }
        Ok(Wish {
            target,
            values,
            until: length.map(|length| now + length),
        })
    }

    /// A tenant or account that is known here; else exit 64 with the nearest.
    pub fn known_target(&self, target: &str) -> Result<String, Failure> {
        let mut known: BTreeSet<String> = self.config.tenants.keys().cloned().collect();
        known.insert(DEFAULT_TENANT.into());
        for (account, place) in &self.places {
            known.extend([account.clone(), place.tenant.clone()]);
        }
        // A user's account may be meant before the user has a program.
        let of_user = target.split_once('/').is_some_and(|(tenant, user)| {
            let per = self.config.rules_of(tenant, SystemTime::now()).per;
            known.contains(tenant) && per == Per::User && self.users.is_known(user)
        });
        if of_user || known.contains(target) || self.overrides.mentions(target) {
            return Ok(target.into());
        }
        let known: Vec<String> = known.into_iter().collect();
        // A user's name alone is what people type.
        let of_user = known
            .iter()
            .find(|account| account.split_once('/').is_some_and(|(_, user)| user == target));
        let meant = of_user.cloned().or_else(|| nearest(target, &known));
        let meant = meant.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        Err(Failure::usage(format!(
            "there is no tenant or account `{target}`{meant} (known: {})",
            known.join(", ")
        )))
    }

    /// Open accounts that `target` names: itself, or all of the tenant.
    pub fn accounts_of(&self, target: &str) -> Vec<String> {
        let of = |(account, place): &(&String, &Place)| *account == target || place.tenant == target;
        self.places
            .iter()
            .filter(of)
            .map(|(account, _)| account.clone())
            .collect()
    }

    /// What `target` names: its open accounts, else the one that is to come.
    fn places_of(&self, target: &str) -> Vec<Place> {
        let open = self.accounts_of(target);
        if open.is_empty() {
            return vec![self.example_of(target)];
        }
        let open = open.iter().filter_map(|account| self.places.get(account));
        open.cloned().collect()
    }

    /// The account that a caller without authority may lower: one it shares with nobody.
    fn may_lower(&mut self, peer: &Peer, wish: &Wish) -> Result<String, Failure> {
        let own = place_of(&self.config, &self.launches, peer, SystemTime::now()).place();
        let own = own.ok_or_else(|| {
            Failure::not_permitted(format!(
                "user {} belongs to no tenant of this node: ask its administrator",
                peer.user
            ))
        })?;
        let Place { tenant, account, .. } = &own;
        if wish.target != *account {
            return Err(Failure::not_permitted(format!(
                "{} is not yours, which is {account}: only root, the daemon's user and group stint may change another",
                wish.target
            )));
        }
        if account == tenant {
            return Err(Failure::not_permitted(format!(
                "account {account} is shared by all of its tenant: only root, the daemon's user and group stint may change it"
            )));
        }
        if let Some((key, _)) = wish.values.iter().find(|(key, _)| *key != Key::Memory) {
            return Err(Failure::not_permitted(format!(
                "you may only lower your own `memory`: `{}` is for root, the daemon's user and group stint",
                key.as_str()
            )));
        }
        for (_, text) in &wish.values {
            let Some(asked) = text.as_ref().and_then(|text| text.parse::<Memory>().ok()) else {
                continue;
            };
            let mut without = self.overrides.clone();
            without.forget_lowering(account);
            let may = self.with_overrides(without, |core| core.grants_of(&own));
            let lowered = MemoryRule::one(asked);
            for (granted, device) in may.iter().zip(&self.inventory.devices) {
                let asked = lowered
                    .cap
                    .on_device(Bytes(device.total_bytes))
                    .unwrap_or_default()
                    .0;
                if asked > granted.cap_bytes {
                    return Err(Failure::not_permitted(format!(
                        "you may only lower what you have: {asked} bytes were asked, account {account} has {} on device {}",
                        granted.cap_bytes, device.index
                    )));
                }
            }
        }
        self.ensure_open(&own)?;
        Ok(own.account)
    }

    /// What `read` says of the node with other overrides.
    fn with_overrides<T>(&mut self, other: Overrides, read: impl FnOnce(&Core) -> T) -> T {
        let kept = std::mem::replace(&mut self.overrides, other);
        let said = read(self);
        self.overrides = kept;
        said
    }

    /// Puts `next` into force, if what it guarantees is there.
    fn put_overrides(&mut self, next: Overrides, wish: &Wish) -> Result<Changed, Failure> {
        let accounts = self.accounts_of(&wish.target);
        let example = accounts.is_empty().then(|| self.example_of(&wish.target));
        let before: Vec<Vec<Granted>> = match &example {
            Some(example) => vec![self.grants_of(example)],
            None => accounts.iter().map(|account| self.granted(account)).collect(),
        };
        if wish
            .values
            .iter()
            .any(|(key, text)| *key == Key::Guaranteed && text.is_some())
        {
            let one = accounts
                .first()
                .and_then(|account| self.places.get(account).cloned());
            if let Some(place) = one.or_else(|| example.clone()) {
                self.check_guarantee(&next, &place)?;
            }
        }
        // Also where one is dropped: what then holds may not fit the other.
        let says_compute = |(key, _): &(Key, Option<String>)| matches!(key, Key::Share | Key::Limit);
        if wish.values.iter().any(says_compute) {
            let open = accounts.iter().filter_map(|account| self.places.get(account));
            for place in open.chain(&example) {
                self.check_compute_of(&next, place)?;
            }
        }
        let wanted = self.with_overrides(next.clone(), Core::wanted);
        self.state.room_for_all(&wanted).map_err(|short| {
            let index = self.inventory.devices[short.device].index;
            Failure::failed(format!(
                "{} bytes of device {index} would be guaranteed, of which there are {}: set `memory.burst` alone, less, or \
                 [node] overcommit = \"allow\"",
                short.asked_bytes, short.left_bytes
            ))
        })?;
        self.record
            .put(record::Key::Overrides, &next)
            .map_err(Failure::failed)?;
        self.overrides = next;
        self.regrant();
        self.read_ledgers();
        let after: Vec<Vec<Granted>> = match &example {
            Some(example) => vec![self.grants_of(example)],
            None => accounts.iter().map(|account| self.granted(account)).collect(),
        };
        let tenant = |account: &String| {
            self.places
                .get(account)
                .map_or(account.clone(), |place| place.tenant.clone())
        };
        let shown: Vec<(String, Option<String>)> = match example {
            Some(place) => vec![(place.tenant, None)],
            None => accounts
                .iter()
                .map(|account| (tenant(account), Some(account.clone())))
                .collect(),
        };
        let accounts = shown
            .into_iter()
            .zip(before.iter().zip(&after))
            .map(|((tenant, account), (before, after))| Account {
                devices: self.devices_of(account.as_deref(), before, after),
                tenant,
                account,
            })
            .collect();
        let later = wish.values.iter().filter(|(key, _)| !key.in_force());
        Ok(Changed {
            schema: SCHEMA.into(),
            target: wish.target.clone(),
            until: wish.until.map(timestamp),
            accounts,
            not_in_force: later.map(|(key, _)| key.as_str().to_string()).collect(),
        })
    }

    /// A guarantee above the cap is a mistake, as in the quota file.
    fn check_guarantee(&mut self, next: &Overrides, place: &Place) -> Result<(), Failure> {
        let rule = self.with_overrides(next.clone(), |core| core.memory_rule(place));
        for device in &self.inventory.devices {
            let total = Bytes(device.total_bytes);
            let bytes = |memory: Memory| memory.on_device(total).unwrap_or(total).0;
            let (guaranteed, cap) = (rule.guaranteed.map_or(0, bytes), bytes(rule.cap));
            if guaranteed > cap {
                return Err(Failure::usage(format!(
                    "`memory.guaranteed`: {guaranteed} bytes are more than the cap of {} on device {}, {cap} bytes: set at most \
                     that, or `memory.burst` too",
                    place.account, device.index
                )));
            }
        }
        Ok(())
    }

    fn granted(&self, account: &str) -> Vec<Granted> {
        self.grants.get(account).cloned().unwrap_or_default()
    }

    /// An account of a tenant that has none open.
    pub fn example_of(&self, target: &str) -> Place {
        let (tenant, _) = target.split_once('/').unwrap_or((target, ""));
        Place {
            tenant: tenant.into(),
            account: target.into(),
            memory: self.config.defaults.memory,
            asked: false,
            carved_from: None,
            passing: false,
            lives_in: None,
        }
    }

    fn devices_of(&self, account: Option<&str>, before: &[Granted], after: &[Granted]) -> Vec<Device> {
        let amounts = |granted: &Granted| Amounts {
            cap_bytes: granted.cap_bytes,
            guaranteed_bytes: granted.guaranteed_bytes,
        };
        let used = account
            .map(|account| self.ledgers.read(account))
            .unwrap_or_default();
        before
            .iter()
            .zip(after)
            .zip(&self.inventory.devices)
            .enumerate()
            .map(|(place, ((before, after), device))| Device {
                index: device.index,
                before: amounts(before),
                after: amounts(after),
                used_bytes: used.get(place).map(|reading| reading.used_bytes),
            })
            .collect()
    }
}
