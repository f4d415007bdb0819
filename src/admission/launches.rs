//! The launches of a node: processes that head a tenant's, so that who descends from them belongs where they do
//! (`identity.rs` asks).

use std::collections::BTreeMap;

use super::identity::{Peer, Place};
use super::process::Identity;

/// Launches one user may have at once. Each may have an account of its own, which costs the daemon descriptors on every device.
pub const MOST_OF_A_USER: usize = 128;

/// One launch.
#[derive(Debug)]
struct Launch {
    /// Whom its head is billed to.
    user: u32,
    place: Place,
}

/// The launches whose head still lives.
#[derive(Debug, Default)]
pub struct Launches(BTreeMap<Identity, Launch>);

impl Launches {
    pub fn add(&mut self, head: Identity, user: u32, place: Place) {
        self.0.insert(head, Launch { user, place });
    }

    pub fn remove(&mut self, head: Identity) -> Option<Place> {
        self.0.remove(&head).map(|launch| launch.place)
    }

    /// Whether a launch's head is that process.
    pub fn contains(&self, head: &Identity) -> bool {
        self.0.contains_key(head)
    }

    /// Launches that place their clients in `account`.
    pub fn count(&self, account: &str) -> usize {
        let places = self.0.values().map(|launch| &launch.place);
        places.filter(|place| place.account == account).count()
    }

    /// Launches of one user.
    pub fn count_of_user(&self, user: u32) -> usize {
        self.0.values().filter(|launch| launch.user == user).count()
    }

    /// Whether this process heads a launch and lives.
    pub fn lives(&self, head: Identity) -> bool {
        self.0.contains_key(&head)
    }

    /// The head of the nearest launch a process descends from.
    pub fn head_of(&self, peer: &Peer) -> Option<Identity> {
        peer.chain.iter().copied().find(|ancestor| self.lives(*ancestor))
    }

    /// The nearest launch a process descends from.
    pub fn of(&self, peer: &Peer) -> Option<&Place> {
        self.0.get(&self.head_of(peer)?).map(|launch| &launch.place)
    }
}
