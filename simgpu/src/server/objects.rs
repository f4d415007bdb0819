//! Descriptors that a process shares with the others under an id nobody can guess; gone with it.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Objects of one process.
const MAX_PER_CLIENT: usize = 1024;

#[derive(Default)]
pub(super) struct Objects {
    table: HashMap<u64, (usize, OwnedFd)>,
    keys: RandomState,
    count: u64,
}

impl Objects {
    /// The new object's id, not 0; `None` when the client has too many.
    pub fn add(&mut self, client: usize, fd: OwnedFd) -> Option<u64> {
        if self.table.values().filter(|(owner, _)| *owner == client).count() >= MAX_PER_CLIENT {
            return None;
        }
        loop {
            self.count += 1;
            let mut hasher = self.keys.build_hasher();
            hasher.write_u64(self.count);
            let id = hasher.finish();
            if id != 0 && !self.table.contains_key(&id) {
                self.table.insert(id, (client, fd));
                return Some(id);
            }
        }
    }

    pub fn get(&self, id: u64) -> Option<BorrowedFd<'_>> {
        self.table.get(&id).map(|(_, fd)| fd.as_fd())
    }

    /// False unless the client owns such an object.
    pub fn remove(&mut self, client: usize, id: u64) -> bool {
        self.table.get(&id).is_some_and(|(owner, _)| *owner == client) && self.table.remove(&id).is_some()
    }

    pub fn release(&mut self, client: usize) {
        self.table.retain(|_, (owner, _)| *owner != client);
    }
}
