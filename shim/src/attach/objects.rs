//! Maps the objects of a reply: for each device the policy, read-only, and the account. The descriptors are closed here.
//!
//! Next: `books.rs`.

use ledger::wire::{ObjectEntry, ObjectKind};
use ledger::{Account, Mapping, Policy, SlotIndex, View};
use rustix::fd::OwnedFd;

/// What a process was given for one device.
pub struct Admitted {
    /// The device's UUID.
    pub device: [u8; 16],
    pub policy: View<Policy>,
    pub account: Mapping<Account>,
    pub slot: SlotIndex,
}

/// Pairs policies and accounts by device. `None` when one lacks the other or cannot be mapped.
pub fn map(objects: Vec<(ObjectEntry, OwnedFd)>) -> Option<Vec<Admitted>> {
    let mut policies = Vec::new();
    let mut accounts = Vec::new();
    for (entry, descriptor) in objects {
        match entry.kind {
            Some(ObjectKind::Policy) => policies.push((entry.device, View::<Policy>::open(descriptor).ok()?)),
            Some(ObjectKind::Account) => {
                let slot = SlotIndex::client(u32::from(entry.slot))?;
                accounts.push((entry.device, Mapping::<Account>::open(descriptor).ok()?, slot));
            }
            // Of a later protocol: closed and left.
            Some(ObjectKind::Board | ObjectKind::Demand) | None => {}
        }
    }
    if policies.len() != accounts.len() {
        return None;
    }
    accounts
        .into_iter()
        .map(|(device, account, slot)| {
            let at = policies.iter().position(|(other, _)| *other == device)?;
            let (_, policy) = policies.swap_remove(at);
            Some(Admitted {
                device,
                policy,
                account,
                slot,
            })
        })
        .collect()
}
