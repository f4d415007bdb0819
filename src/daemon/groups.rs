//! Accounts of containers and jobs end with their control group. A group can only be removed when it is empty, so its
//! clients have ended by then, and `reclaim.rs` has given back what they held.

use super::core::Core;
use crate::state::Event;

impl Core {
    /// Groups were removed.
    pub fn groups_gone(&mut self) {
        let gone = self.groups.gone();
        // What ended with them comes first.
        self.reap();
        for directory in gone {
            let here = self
                .places
                .values()
                .filter(|place| place.lives_in.as_ref() == Some(&directory));
            for account in here.map(|place| place.account.clone()).collect::<Vec<_>>() {
                self.group_gone(&account);
            }
        }
    }

    /// Watches over the groups of all accounts that have one; finds what no event told. Called every second.
    pub fn watch_groups(&mut self) {
        let mut gone = Vec::new();
        for place in self.places.values().filter(|place| !place.passing) {
            let Some(directory) = &place.lives_in else {
                continue;
            };
            match self.groups.add(directory) {
                Ok(true) => {}
                Ok(false) => gone.push(place.account.clone()),
                // Looked at again in a second: that is as good as a watch, only slower.
                Err(error) => {
                    tracing::debug!(%error, directory = %directory.display(), "no watch over a control group")
                }
            }
        }
        for account in gone {
            self.group_gone(&account);
        }
    }

    /// The account goes; if a process of it lives on in another group, with that.
    fn group_gone(&mut self, account: &str) {
        let Some(place) = self.places.get_mut(account) else {
            return;
        };
        place.passing = true;
        self.apply(Event::State {
            what: format!("the control group of account {account} has gone"),
        });
        self.settle(account);
    }
}
