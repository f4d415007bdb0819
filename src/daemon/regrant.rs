//! What every open account is to have now, by the quota file, by `set`, and by what launches took; and its way into force:
//! caps are lowered first, then raised, so that all together never have more than before or after.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::core::Core;
use crate::admission::identity::Place;
use crate::config::MemoryRule;
use crate::config::units::{Bytes, Memory};
use crate::state::Granted;

impl Core {
    /// The memory rule of `place`, before it is cut to a device: what is set for its account, else what a launch asked
    /// for, else what is set for its tenant, else the quota file's.
    pub fn memory_rule(&self, place: &Place) -> MemoryRule {
        let file = self.file_rule(place);
        let of_tenant = || {
            self.overrides
                .memory(&place.tenant, file)
                .filter(|_| !place.asked)
        };
        self.overrides
            .memory(&place.account, file)
            .or_else(of_tenant)
            .unwrap_or(file)
    }

    /// The rule without anything set.
    fn file_rule(&self, place: &Place) -> MemoryRule {
        if place.asked {
            return place.memory;
        }
        self.config.rules_of(&place.tenant, SystemTime::now()).memory
    }

    /// What `place` is granted on each device, parts of it included. A cap never reaches into what the node keeps back.
    pub fn grants_of(&self, place: &Place) -> Vec<Granted> {
        let rule = self.memory_rule(place);
        let own_cap = self.overrides.own_cap(&place.account);
        // What is carved from an account is bound with it.
        let set_over = self
            .set_over(place)
            .filter(|_| place.carved_from.is_none())
            .and_then(|(_, setting)| setting.text.parse().ok());
        let tenant = self.config.tenant(&place.tenant, SystemTime::now());
        let on = |(device, of): (usize, &crate::device::Device)| {
            let total = Bytes(of.total_bytes);
            let bytes = |memory: Memory| memory.on_device(total).unwrap_or(total).0;
            // On a device its tenant may not use there is nothing to be had.
            let usable = match tenant {
                Some(tenant) if !tenant.may_use(of.index, &of.uuid) => 0,
                _ => self.state.usable(device),
            };
            let most = [own_cap, set_over].into_iter().flatten().map(bytes);
            let cap_bytes = most.fold(bytes(rule.cap).min(usable), u64::min);
            let guaranteed_bytes = rule.guaranteed.map_or(0, bytes).min(cap_bytes);
            Granted {
                cap_bytes,
                guaranteed_bytes,
            }
        };
        let granted = self.inventory.devices.iter().enumerate().map(on).collect();
        self.without_closed(&place.account, granted)
    }

    /// What every open account is to have now.
    pub fn wanted(&self) -> BTreeMap<String, Vec<Granted>> {
        let mut wanted = BTreeMap::new();
        for place in self.places.values().filter(|place| place.carved_from.is_none()) {
            self.share_out(place, self.grants_of(place), &mut wanted);
        }
        wanted
    }

    /// Of `left`, parts of `whole` have what they asked for as far as it goes; the whole has the rest. A part may have
    /// parts itself.
    fn share_out(&self, whole: &Place, mut left: Vec<Granted>, wanted: &mut BTreeMap<String, Vec<Granted>>) {
        let is_part = |part: &&Place| part.carved_from.as_ref() == Some(&whole.account);
        for part in self.places.values().filter(is_part) {
            let taken = self.grants_of(part);
            let taken: Vec<Granted> = left
                .iter()
                .zip(&taken)
                .map(|(left, part)| take(left, part))
                .collect();
            left = left
                .iter()
                .zip(&taken)
                .map(|(left, taken)| less(left, taken))
                .collect();
            self.share_out(part, taken, wanted);
        }
        wanted.insert(whole.account.clone(), left);
    }

    /// Puts [`Core::wanted`] into force; the names of the accounts that changed.
    pub fn regrant(&mut self) -> Vec<String> {
        self.put_recycling();
        let mut changed = self.wanted();
        changed.retain(|account, wanted| self.grants.get(account).is_some_and(|now| now != wanted));
        for (account, wanted) in &changed {
            let now = self.grants.get(account).cloned().unwrap_or_default();
            let lower: Vec<Granted> = now
                .iter()
                .zip(wanted)
                .map(|(now, wanted)| lower_of(now, wanted))
                .collect();
            if lower != now {
                self.put_into_force(account, lower);
            }
        }
        for (account, wanted) in &changed {
            if self.grants.get(account) != Some(wanted) {
                self.put_into_force(account, wanted.clone());
            }
        }
        changed.into_keys().collect()
    }
}

/// What a part that is to have `part` takes of `left`.
fn take(left: &Granted, part: &Granted) -> Granted {
    let cap_bytes = part.cap_bytes.min(left.cap_bytes);
    Granted {
        cap_bytes,
        guaranteed_bytes: left.guaranteed_bytes.min(cap_bytes),
    }
}

fn less(left: &Granted, taken: &Granted) -> Granted {
    Granted {
        cap_bytes: left.cap_bytes - taken.cap_bytes,
        guaranteed_bytes: left.guaranteed_bytes - taken.guaranteed_bytes,
    }
}

fn lower_of(a: &Granted, b: &Granted) -> Granted {
    Granted {
        cap_bytes: a.cap_bytes.min(b.cap_bytes),
        guaranteed_bytes: a.guaranteed_bytes.min(b.guaranteed_bytes),
    }
}
