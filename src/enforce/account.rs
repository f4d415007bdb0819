//! The shared objects of one account: a policy and an account object per device, one set of slots.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use ledger::account::Contended;
use ledger::doorbell::{Doorbell, Seen};
use ledger::mapping::{MapError, create, reopen_read_only};
use ledger::ring::{Cursor, Event};
use ledger::slot::{Class, SlotSet};
use ledger::wire::{ObjectEntry, ObjectKind};
use ledger::{Account, Daemon, Mapping, Mode, Owner, Policy, SlotIndex};

use super::{Grant, Uuid, Vacated};

/// The two objects of an account on a device, mapped. Shared with the thread that listens to the bell.
pub struct Objects {
    policy: Mapping<Policy>,
    account: Mapping<Account>,
}

impl Objects {
    /// The bell the account's clients ring.
    pub fn doorbell(&self) -> &Doorbell {
        self.daemon().doorbell()
    }

    fn daemon(&self) -> Daemon<'_> {
        Daemon::new(&self.policy, &self.account)
    }
}

/// The pair on one device, and what is handed to clients of it.
struct Pair {
    uuid: Uuid,
    objects: Arc<Objects>,
    /// Reopened read-only: clients cannot make a writable one of it.
    policy_fd: OwnedFd,
    account_fd: OwnedFd,
    account_read_only: OwnedFd,
    /// How far each slot's events were read.
    cursors: BTreeMap<SlotIndex, Cursor>,
    /// Dropped events of each slot that were reported.
    dropped: BTreeMap<SlotIndex, u64>,
    heard: Seen,
}

impl Pair {
    fn create(grant: &Grant, mode: Mode) -> Result<Pair, MapError> {
        let (policy_fd, policy) = create::<Policy>(c"stint-policy")?;
        let (account_fd, account) = create::<Account>(c"stint-account")?;
        let objects = Objects { policy, account };
        let mut daemon = objects.daemon();
        daemon.set_context_bytes(grant.context_bytes);
        // Nobody else has the objects yet, so nobody can contend.
        let _ = daemon.set_cap(grant.cap_bytes, mode);
        let heard = objects.doorbell().seen();
        Ok(Pair {
            uuid: grant.uuid,
            objects: Arc::new(objects),
            policy_fd: reopen_read_only(&policy_fd).map_err(MapError::System)?,
            account_read_only: reopen_read_only(&account_fd).map_err(MapError::System)?,
            account_fd,
            cursors: BTreeMap::new(),
            dropped: BTreeMap::new(),
            heard,
        })
    }

    fn daemon(&self) -> Daemon<'_> {
        self.objects.daemon()
    }

    fn drain_slot(&mut self, device: usize, slot: SlotIndex, posted: &mut Vec<Posted>) {
        let Some(mut cursor) = self.cursors.get(&slot).copied() else {
            return;
        };
        let drained = self.daemon().drain(slot, &mut cursor, |event| {
            posted.push(Posted {
                device,
                slot,
                what: What::Event(event),
            });
        });
        self.cursors.insert(slot, cursor);
        let dropped = self.objects.account.slot(slot).dropped_events();
        let reported = self.dropped.insert(slot, dropped).unwrap_or(0);
        let lost = dropped.saturating_sub(reported) + u64::from(drained.unreadable);
        if lost > 0 {
            posted.push(Posted {
                device,
                slot,
                what: What::Lost(lost),
            });
        }
    }
}

/// Something a client posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posted {
    /// Place of the device among the account's.
    pub device: usize,
    pub slot: SlotIndex,
    pub what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Event(Event),
    /// So many more happened, of which nothing else is known: the ring was full.
    Lost(u64),
}

/// The words of one account on one device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    pub cap_bytes: u64,
    pub used_bytes: u64,
    pub peak_bytes: u64,
    pub context_bytes: u64,
    pub slab_bytes: u64,
    pub idle_bytes: u64,
    pub host_bytes: u64,
    /// Charge and launches of each slot in use.
    pub slots: BTreeMap<SlotIndex, (u64, u64)>,
}

pub struct Ledger {
    pairs: Vec<Pair>,
    taken: SlotSet,
    /// Slots given out, which `taken` cannot list.
    in_use: Vec<SlotIndex>,
}

impl Ledger {
    pub fn create(grants: &[Grant], mode: Mode) -> Result<Ledger, MapError> {
        let pairs = grants
            .iter()
            .map(|grant| Pair::create(grant, mode))
            .collect::<Result<_, _>>()?;
        Ok(Ledger {
            pairs,
            taken: SlotSet::new(),
            in_use: Vec::new(),
        })
    }

    pub fn set_cap(&mut self, device: usize, cap_bytes: u64, mode: Mode) -> Result<u64, Contended> {
        match self.pairs.get(device) {
            Some(pair) => pair.daemon().set_cap(cap_bytes, mode),
            None => Ok(0),
        }
    }

    pub fn set_context_bytes(&mut self, device: usize, bytes: u64) {
        if let Some(pair) = self.pairs.get(device) {
            pair.daemon().set_context_bytes(bytes);
        }
    }

    /// `None`: every slot is taken.
    pub fn claim(&mut self, owner: &Owner) -> Result<Option<SlotIndex>, Contended> {
        let Some(slot) = self.taken.take() else {
            return Ok(None);
        };
        for pair in &mut self.pairs {
            match pair.daemon().claim(slot, owner) {
                Ok(cursor) => {
                    pair.cursors.insert(slot, cursor);
                    pair.dropped.insert(slot, 0);
                }
                Err(contended) => {
                    // Nobody has been told of the slot: what was claimed on other devices is claimed anew next time.
                    self.taken.remove(slot);
                    return Err(contended);
                }
            }
        }
        self.in_use.push(slot);
        Ok(Some(slot))
    }

    pub fn vacate(&mut self, slot: SlotIndex, posted: &mut Vec<Posted>) -> Result<Vacated, Contended> {
        let mut vacated = Vacated::default();
        let mut contended = None;
        for (device, pair) in self.pairs.iter_mut().enumerate() {
            pair.drain_slot(device, slot, posted);
            match pair.daemon().recover(slot) {
                Ok(recovered) => {
                    vacated.released.push(recovered.released);
                    vacated.corrupt |= recovered.corrupt;
                }
                Err(error) => {
                    vacated.released.push(0);
                    contended = Some(error);
                }
            }
        }
        if let Some(contended) = contended {
            return Err(contended);
        }
        for pair in &mut self.pairs {
            pair.cursors.remove(&slot);
            pair.dropped.remove(&slot);
        }
        self.taken.remove(slot);
        self.in_use.retain(|used| *used != slot);
        Ok(vacated)
    }

    pub fn objects(&self, slot: Option<SlotIndex>) -> (Vec<ObjectEntry>, Vec<BorrowedFd<'_>>) {
        let number = slot.map_or(0, |slot| slot.get() as u16);
        let mut entries = Vec::with_capacity(2 * self.pairs.len());
        let mut fds = Vec::with_capacity(2 * self.pairs.len());
        for pair in &self.pairs {
            entries.push(ObjectEntry::new(
                ObjectKind::Policy,
                0,
                pair.uuid,
                size_of::<Policy>() as u64,
            ));
            fds.push(pair.policy_fd.as_fd());
            entries.push(ObjectEntry::new(
                ObjectKind::Account,
                number,
                pair.uuid,
                size_of::<Account>() as u64,
            ));
            fds.push(if slot.is_some() {
                pair.account_fd.as_fd()
            } else {
                pair.account_read_only.as_fd()
            });
        }
        (entries, fds)
    }

    pub fn inodes(&self) -> Vec<(u64, u64)> {
        let stat = |pair: &Pair| rustix::fs::fstat(&pair.account_fd).ok();
        self.pairs
            .iter()
            .filter_map(stat)
            .map(|file| (file.st_dev, file.st_ino))
            .collect()
    }

    pub fn drain(&mut self, posted: &mut Vec<Posted>) {
        for (device, pair) in self.pairs.iter_mut().enumerate() {
            pair.heard = pair.objects.doorbell().seen();
            for slot in &self.in_use {
                pair.drain_slot(device, *slot, posted);
            }
        }
    }

    pub fn rung(&self) -> bool {
        self.pairs
            .iter()
            .any(|pair| pair.objects.doorbell().seen() != pair.heard)
    }

    pub fn read(&self) -> Vec<Reading> {
        self.pairs.iter().map(|pair| self.read_pair(pair)).collect()
    }

    fn read_pair(&self, pair: &Pair) -> Reading {
        let account = &*pair.objects.account;
        let slot = |slot: &SlotIndex| {
            (
                *slot,
                (account.slot(*slot).charge(), account.slot(*slot).launches()),
            )
        };
        let class = |class: Class| {
            let bytes = self
                .in_use
                .iter()
                .map(|slot| account.slot(*slot).class_bytes(class));
            bytes.fold(0, u64::saturating_add)
        };
        Reading {
            cap_bytes: pair.objects.policy.cap(),
            used_bytes: account.used(),
            peak_bytes: account.peak(),
            context_bytes: class(Class::Context),
            slab_bytes: class(Class::Slab),
            idle_bytes: class(Class::Idle),
            host_bytes: class(Class::Host),
            slots: self.in_use.iter().map(slot).collect(),
        }
    }

    pub fn objects_shared(&self) -> impl Iterator<Item = Arc<Objects>> {
        self.pairs.iter().map(|pair| pair.objects.clone())
    }
}
