//! What an earlier daemon left, put together account by account: from the record (`record.rs`) and from the descriptors that were
//! kept (`store.rs`). `adopt.rs` makes it ours.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use ledger::SlotIndex;

use super::core::Core;
use super::record::Key;
use super::remember::{AccountEntry, ClientEntry};
use super::store::Left;
use crate::enforce::keepsake::Part;
use crate::enforce::{Held, Uuid};

/// What is known of one account.
#[derive(Default)]
pub struct Inheritance {
    pub name: String,
    pub entry: Option<AccountEntry>,
    pub kept: BTreeMap<Uuid, [Option<OwnedFd>; 2]>,
    pub clients: BTreeMap<SlotIndex, ClientEntry>,
}

impl Inheritance {
    /// A device of `node` whose objects ought to be there and are not.
    pub fn missing(&self, node: &[Uuid]) -> Option<Uuid> {
        let expected = self.entry.as_ref().map_or(node, |entry| &entry.devices);
        let is_whole = |uuid: &Uuid| matches!(self.kept.get(uuid), Some([Some(_), Some(_)]));
        expected
            .iter()
            .find(|uuid| node.contains(uuid) && !is_whole(uuid))
            .copied()
    }
}

impl Core {
    /// Puts together what belongs together, by the accounts' numbers.
    pub fn inherited(&self, left: Vec<Left>) -> BTreeMap<u32, Inheritance> {
        let mut all: BTreeMap<u32, Inheritance> = BTreeMap::new();
        let accounts: Vec<(u32, AccountEntry)> = self.record.all(|key| match key {
            Key::Account(number) => Some(number),
            _ => None,
        });
        for (number, entry) in accounts {
            let one = all.entry(number).or_default();
            one.name = entry.place.account.clone();
            one.entry = Some(entry);
        }
        for (keepsake, fd) in left {
            let one = all.entry(keepsake.number).or_default();
            if one.entry.is_none() {
                one.name = keepsake.account;
            }
            one.kept.entry(keepsake.device).or_default()[keepsake.part as usize] = Some(fd);
        }
        let clients: Vec<((u32, SlotIndex), ClientEntry)> = self.record.all(|key| match key {
            Key::Client(number, slot) => Some((number, slot)),
            _ => None,
        });
        for ((number, slot), entry) in clients {
            all.entry(number).or_default().clients.insert(slot, entry);
        }
        all
    }
}

/// Those of which both descriptors were kept.
pub fn pairs(devices: BTreeMap<Uuid, [Option<OwnedFd>; 2]>) -> BTreeMap<Uuid, Held> {
    let mut held = BTreeMap::new();
    for (uuid, mut both) in devices {
        if let (Some(policy), Some(account)) = (
            both[Part::Policy as usize].take(),
            both[Part::Account as usize].take(),
        ) {
            held.insert(uuid, Held { policy, account });
        }
    }
    held
}
