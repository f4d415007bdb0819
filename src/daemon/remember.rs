//! What the next daemon will need, put where it finds it: accounts and clients into the record (`record.rs`), descriptors into
//! the store (`store.rs`). `adopt.rs` is the other side.

use std::time::SystemTime;

use ledger::{Owner, SlotIndex};
use serde::{Deserialize, Serialize};

use super::core::Core;
use super::record::{Key, RecordError};
use super::store::StoreError;
use crate::admission::identity::Place;
use crate::enforce::Uuid;
use crate::exit::Failure;
use crate::state::Event;

/// An account as the record has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountEntry {
    pub place: Place,
    /// The devices it has objects for.
    pub devices: Vec<Uuid>,
}

/// A client as the record has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientEntry {
    pub pid: u32,
    pub start_time: u64,
    pub nonce: u64,
    /// The program it was when it attached; see `admission::process::Stat`.
    pub image: [u64; 3],
    pub user: String,
    /// When it was admitted.
    pub since: SystemTime,
}

impl ClientEntry {
    pub fn new(owner: &Owner, image: [u64; 3], user: &str) -> ClientEntry {
        ClientEntry {
            pid: owner.pid,
            start_time: owner.start_time,
            nonce: owner.nonce,
            image,
            user: user.into(),
            since: SystemTime::now(),
        }
    }

    pub fn owner(&self) -> Owner {
        Owner {
            pid: self.pid,
            start_time: self.start_time,
            nonce: self.nonce,
        }
    }
}

impl Core {
    /// Records an open account.
    pub fn record_account(&mut self, place: &Place) -> Result<(), Failure> {
        let Some(number) = self.ledgers.number(&place.account) else {
            return Ok(());
        };
        let entry = AccountEntry {
            place: place.clone(),
            devices: self.uuids.clone(),
        };
        self.record.put(Key::Account(number), &entry).map_err(|error| {
            self.store.forget(number);
            Failure::failed(error)
        })
    }

    /// Records who is about to be in a slot. The key is what to take back if that comes to nothing.
    pub fn record_client(
        &mut self,
        account: &str,
        slot: SlotIndex,
        owner: &Owner,
        image: [u64; 3],
        user: &str,
    ) -> Result<Key, String> {
        let number = self.ledgers.number(account).ok_or("its account is gone")?;
        let key = Key::Client(number, slot);
        let put = self.record.put(key, &ClientEntry::new(owner, image, user));
        put.map(|()| key).map_err(|error: RecordError| error.to_string())
    }

    /// Records what `set` changed and still holds. What is over and cannot be taken out of the record is over for the next
    /// daemon, too.
    pub fn record_overrides(&mut self) {
        if let Err(error) = self.record.put(Key::Overrides, &self.overrides) {
            tracing::warn!(%error);
        }
    }

    /// An account is about to be dropped.
    pub fn forget_account(&mut self, account: &str) {
        if let Some(number) = self.ledgers.number(account) {
            // In this order: an account without descriptors and clients is nobody's.
            self.store.forget(number);
            self.record.remove(Key::Account(number));
        }
    }

    /// Gives copies of an account's descriptors into keeping.
    pub fn keep(&mut self, account: &str) {
        let Err(error) = self.store.put(&self.ledgers.keepsakes(account)) else {
            return;
        };
        if let StoreError::Full { .. } = error {
            // Told once: each launch may open an account.
            self.note(vec![format!(
                "{error}: accounts beyond would be closed to new clients after a restart until theirs have ended"
            )]);
            return;
        }
        let what = format!(
            "account {account}: its descriptors are not kept ({error}): while that is so, a restart would close it to new clients"
        );
        self.apply(Event::Fault { what });
        if self.store.is_a_keepers() {
            self.replace_keeper();
        }
    }

    /// Starts a new keeper in place of one that has gone, and gives it everything there is to keep. Where that fails it is
    /// told once and tried again at every tick.
    pub fn replace_keeper(&mut self) {
        let was_lost = self.store.is_lost();
        if let Err(error) = self.store.replace() {
            if !was_lost {
                let what = format!(
                    "the keeper has gone and none can be started: {error}: a restart would close accounts in use"
                );
                self.apply(Event::Fault { what });
            }
            return;
        }
        let accounts: Vec<String> = self.places.keys().cloned().collect();
        for account in &accounts {
            if let Err(error) = self.store.put(&self.ledgers.keepsakes(account)) {
                // Tried again at every tick, told once.
                if !was_lost {
                    let what = format!("account {account}: its descriptors are not kept: {error}");
                    self.apply(Event::Fault { what });
                }
                return self.store.give_up_keeper();
            }
        }
        self.listen_to_keeper();
        self.apply(Event::State {
            what: "the keeper had gone; a new one holds the descriptors".into(),
        });
    }
}
