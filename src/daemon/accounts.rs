//! Accounts come and go: what each is granted per device, whether the node can guarantee that, and what a part of an
//! account takes from the whole.

use super::core::Core;
use super::step::step;
use crate::admission::identity::Place;
use crate::config::DEFAULT_TENANT;
use crate::exit::Failure;
use crate::state::{Event, Granted, Overcommitted};

impl Core {
    /// Makes sure the account of `place` exists and what it is guaranteed is there. The message says why not.
    pub fn ensure_open(&mut self, place: &Place) -> Result<(), Failure> {
        let account = &place.account;
        if let Some(why) = self.ledgers.why_closed(account) {
            return Err(Failure::failed(format!("account {account} admits nobody: {why}")));
        }
        if self.state.is_active(account) {
            return Ok(());
        }
        let granted = match self.grants.get(account) {
            Some(granted) => granted.clone(),
            None => self.grants_of(place),
        };
        self.state
            .room_for(&granted)
            .map_err(|short| self.overcommitted(place, short))?;
        if self.ledgers.contains(account) {
            return Ok(());
        }
        step("open: objects");
        let grants = self.ledger_grants(&granted);
        self.ledgers.open(account, &grants).map_err(Failure::failed)?;
        // Kept first: what the record names, the next daemon expects to find.
        self.keep(account);
        if let Err(failure) = self.record_account(place) {
            self.ledgers.close(account);
            return Err(failure);
        }
        self.grants.insert(account.clone(), granted.clone());
        self.places.insert(account.clone(), place.clone());
        self.put_recycling();
        self.apply(Event::Opened {
            place: place.clone(),
            granted,
        });
        self.update_bells();
        Ok(())
    }

    fn overcommitted(&self, place: &Place, short: Overcommitted) -> Failure {
        let index = self.inventory.devices[short.device].index;
        Failure::failed(format!(
            "account {} would be guaranteed {} bytes of device {index}, of which {} are left: ask for less, wait, or set \
             [node] overcommit = \"allow\"",
            place.account, short.asked_bytes, short.left_bytes
        ))
    }

    /// Drops an account made for a launch once it has neither clients nor a launch nor anybody who looks at it, and returns what it took from another.
    pub fn settle(&mut self, account: &str) {
        let Some(place) = self.places.get(account) else {
            return;
        };
        let has_parts = self
            .places
            .values()
            .any(|part| part.carved_from.as_deref() == Some(account));
        let closed = self.ledgers.why_closed(account).is_some();
        let remains = !place.passing && !closed;
        let is_seen = self.observers.values().any(|seen| seen == account);
        if remains || has_parts || is_seen {
            return;
        }
        if !self.state.is_active(account) {
            self.close(account);
        } else if closed && !self.seats.values().any(|seat| seat.account == account) {
            self.make_anew(place.clone());
        }
    }

    /// An account that admitted nobody because of what its clients held has none of them any more; launches that live will
    /// bring it others.
    fn make_anew(&mut self, place: Place) {
        let account = &place.account;
        self.places.remove(account);
        self.forget_account(account);
        self.ledgers.close(account);
        self.apply(Event::Closed {
            account: account.clone(),
        });
        match self.ensure_open(&place) {
            Ok(()) => self.count_launches(account),
            Err(Failure { message, .. }) => self.apply(Event::Fault { what: message }),
        }
    }

    /// Drops an account nobody uses.
    pub fn close(&mut self, account: &str) {
        self.chronicle_end_of(account);
        let place = self.places.remove(account);
        self.grants.remove(account);
        self.made_by.remove(account);
        self.forget_account(account);
        self.ledgers.close(account);
        self.apply(Event::Closed {
            account: account.into(),
        });
        self.update_bells();
        let Some(place) = place else { return };
        if let Some(directory) = &place.lives_in
            && !self
                .places
                .values()
                .any(|other| other.lives_in.as_ref() == Some(directory))
        {
            self.groups.remove(directory);
        }
        if place.passing {
            // What was set for it was set for as long as it is.
            let before = self.overrides.clone();
            self.overrides.forget(account);
            if !self.config.tenants.contains_key(&place.tenant) && place.tenant != DEFAULT_TENANT {
                self.overrides.forget(&place.tenant);
            }
            if self.overrides != before {
                self.record_overrides();
            }
        }
        if let Some(whole) = place.carved_from {
            self.regrant();
            self.settle(&whole);
        }
    }

    /// Changes the caps of an open account. Returns the bytes used on each device at that instant.
    pub fn put_into_force(&mut self, account: &str, granted: Vec<Granted>) -> Vec<u64> {
        let mut used = Vec::new();
        for (device, granted) in granted.iter().enumerate() {
            match self.ledgers.set_cap(account, device, granted.cap_bytes) {
                Ok(bytes) => used.push(bytes),
                Err(error) => {
                    // The word is stored and binds whoever reads it next; what is used cannot be told.
                    tracing::warn!(%error);
                    used.push(u64::MAX);
                }
            }
        }
        self.grants.insert(account.into(), granted.clone());
        self.apply(Event::Granted {
            account: account.into(),
            granted,
        });
        used
    }

    /// Takes what `part` gets from the account it is carved from: first the whole is lowered, then the part may be made, so
    /// that both together never have more than the whole had.
    pub fn carve(&mut self, part: &Place, whole: &Place) -> Result<(), Failure> {
        self.ensure_open(whole)?;
        let before = self.grants.get(&whole.account).cloned().unwrap_or_default();
        let asked = self.grants_of(part);
        let mut after = Vec::new();
        let mut taken = Vec::new();
        for (device, (before, asked)) in before.iter().zip(&asked).enumerate() {
            let index = self.inventory.devices[device].index;
            let Some(cap_bytes) = before.cap_bytes.checked_sub(asked.cap_bytes) else {
                let set = [&whole.account, &whole.tenant].map(|target| self.overrides.cap(target));
                let by = set.into_iter().flatten().next();
                let by = by.map_or(String::new(), |setting| format!(", set by {}", setting.by));
                return Err(Failure::not_permitted(format!(
                    "you may only lower what you have: {} bytes were asked, account {} has {} on device {index}{by}",
                    asked.cap_bytes, whole.account, before.cap_bytes
                )));
            };
            let guaranteed_bytes = before.guaranteed_bytes.min(asked.cap_bytes);
            after.push(Granted {
                cap_bytes,
                guaranteed_bytes: before.guaranteed_bytes - guaranteed_bytes,
            });
            taken.push(Granted {
                cap_bytes: asked.cap_bytes,
                guaranteed_bytes,
            });
        }
        let used = self.put_into_force(&whole.account, after.clone());
        let over = used
            .iter()
            .zip(&after)
            .position(|(used, after)| *used > after.cap_bytes);
        if let Some(device) = over {
            let message = format!(
                "account {} uses {} bytes of device {}, of which {} would have to go to this command: ask for less, or end others",
                whole.account, used[device], self.inventory.devices[device].index, taken[device].cap_bytes
            );
            self.put_into_force(&whole.account, before);
            return Err(Failure::failed(message));
        }
        self.grants.insert(part.account.clone(), taken);
        Ok(())
    }

    /// Gives back what [`Core::carve`] took for an account that was not made after all.
    pub fn uncarve(&mut self, part: &Place) {
        self.grants.remove(&part.account);
        self.regrant();
    }

    /// Tells the state how many launches bring clients to an account.
    pub fn count_launches(&mut self, account: &str) {
        let count = self.launches.count(account);
        self.apply(Event::Launches {
            account: account.into(),
            count,
        });
    }
}
