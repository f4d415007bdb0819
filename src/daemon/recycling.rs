//! What becomes of memory that programs free, into the policy words of every open account: the shim reads them at its next
//! call (`shim/src/recycler/mod.rs`). `daemon/regrant.rs` calls it where anything may have changed.

use std::time::SystemTime;

use ledger::{Contents, Recycling};

use super::core::Core;
use crate::admission::identity::Place;
use crate::config::{Pool, PoolContents};
use crate::state::Key;

impl Core {
    /// Of every open account.
    pub fn put_recycling(&mut self) {
        for (account, place) in &self.places {
            let (recycling, contents) = self.recycling_of(place);
            self.ledgers.set_recycling(account, recycling, contents);
        }
    }

    /// What holds for `place`: what is set for its account, else for its tenant, else the quota file's.
    fn recycling_of(&self, place: &Place) -> (Recycling, Contents) {
        let rules = self.config.rules_of(&place.tenant, SystemTime::now());
        let set = self
            .overrides
            .text(&place.account, Key::Pool)
            .or_else(|| self.overrides.text(&place.tenant, Key::Pool));
        let pool = set.and_then(Pool::named).unwrap_or(rules.pool);
        let recycling = match pool {
            _ if self.sabotage.pool => Recycling::Off,
            Pool::Preserve => Recycling::Preserve,
            Pool::Elide => Recycling::Elide,
            Pool::Off => Recycling::Off,
        };
        let contents = match rules.pool_contents {
            PoolContents::Keep => Contents::Keep,
            PoolContents::Zero => Contents::Zero,
            PoolContents::Poison => Contents::Poison,
        };
        (recycling, contents)
    }
}
