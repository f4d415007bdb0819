//! The shared objects of one account: a policy and an account object per device, one set of slots.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use ledger::account::Contended;
use ledger::doorbell::{Doorbell, Seen};
use ledger::mapping::{MapError, create, reopen_read_only};
use ledger::ring::{Cursor, Event};
use ledger::slot::{Class, SlotSet};
use ledger::wire::{ObjectEntry, ObjectKind};
use ledger::{Account, Contents, Daemon, Mapping, Mode, Owner, Policy, Recycling, SlotIndex};

use super::keepsake::{Keepsake, Part};
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
    /// Ours alone, for the daemon after us.
    policy_own: OwnedFd,
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
        let pair = Pair::of(grant.uuid, Objects { policy, account }, policy_fd, account_fd)?;
        let mut daemon = pair.daemon();
        daemon.set_context_bytes(grant.context_bytes);
        // Nobody else has the objects yet, so nobody can contend.
        let _ = daemon.set_cap(grant.cap_bytes, mode);
        Ok(pair)
    }

    /// Takes over a pair that an earlier daemon made. Its caps and charges stay as they are.
    fn adopt(grant: &Grant, held: Held) -> Result<Pair, MapError> {
        let policy = Mapping::<Policy>::open(&held.policy)?;
        let account = Mapping::<Account>::open(&held.account)?;
        let pair = Pair::of(grant.uuid, Objects { policy, account }, held.policy, held.account)?;
        pair.daemon().set_context_bytes(grant.context_bytes);
        Ok(pair)
    }

    fn of(uuid: Uuid, objects: Objects, policy_own: OwnedFd, account_fd: OwnedFd) -> Result<Pair, MapError> {
        let heard = objects.doorbell().seen();
        Ok(Pair {
            uuid,
            objects: Arc::new(objects),
            policy_fd: reopen_read_only(&policy_own).map_err(MapError::System)?,
            policy_own,
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

/// Device and inode of an object, by which a process that maps it is told.
pub fn inode(object: &OwnedFd) -> Option<(u64, u64)> {
    let file = rustix::fs::fstat(object).ok()?;
    Some((file.st_dev, file.st_ino))
}

/// The two descriptors of a pair, as an earlier daemon left them.
#[derive(Debug)]
pub struct Held {
    pub policy: OwnedFd,
    pub account: OwnedFd,
}

pub struct Ledger {
    /// By which the account is known to those who keep its objects.
    pub number: u32,
    /// None where an earlier daemon's objects could not be taken over.
    pairs: Vec<Pair>,
    taken: SlotSet,
    /// Slots given out, which `taken` cannot list.
    in_use: Vec<SlotIndex>,
    /// Where nobody new may have a slot, because clients live whose charges only their former daemon could read.
    pub closed: Option<Closed>,
}

/// Why an account admits nobody new.
#[derive(Debug, Clone)]
pub struct Closed {
    pub why: String,
    /// Device and inode of account objects that were kept and are not understood.
    pub inodes: Vec<(u64, u64)>,
}

impl Ledger {
    pub fn create(number: u32, grants: &[Grant], mode: Mode) -> Result<Ledger, MapError> {
        Ledger::adopt(number, grants, &mut BTreeMap::new(), mode)
    }

    /// An account with the objects in `held`, made where they are missing there. Slots are empty until they are seated.
    pub fn adopt(
        number: u32,
        grants: &[Grant],
        held: &mut BTreeMap<Uuid, Held>,
        mode: Mode,
    ) -> Result<Ledger, MapError> {
        let pair = |grant: &Grant| match held.remove(&grant.uuid) {
            Some(held) => Pair::adopt(grant, held),
            None => Pair::create(grant, mode),
        };
        Ok(Ledger {
            pairs: grants.iter().map(pair).collect::<Result<_, _>>()?,
            ..Ledger::closed(number, None)
        })
    }

    /// An account without objects.
    pub fn closed(number: u32, why: Option<Closed>) -> Ledger {
        Ledger {
            number,
            pairs: Vec::new(),
            taken: SlotSet::new(),
            in_use: Vec::new(),
            closed: why,
        }
    }

    /// The lowest free slot; `None`: every slot is taken.
    pub fn free_slot(&self) -> Option<SlotIndex> {
        self.taken.clone().take()
    }

    /// Slots that somebody may be in, by words that clients can write.
    pub fn occupied(&self) -> BTreeSet<SlotIndex> {
        self.pairs
            .iter()
            .flat_map(|pair| pair.objects.account.occupied())
            .collect()
    }

    /// Who is in `slot`, by words that clients can write.
    pub fn owner_in_words(&self, slot: SlotIndex) -> Option<Owner> {
        self.pairs
            .iter()
            .find_map(|pair| pair.objects.account.slot(slot).owner())
    }

    /// Takes over a slot with the client in it, whose words stay as they are. On a device that came since, the slot is
    /// claimed for `owner`.
    pub fn take_over(&mut self, slot: SlotIndex, owner: &Owner) -> Result<(), Contended> {
        for pair in &mut self.pairs {
            let page = pair.objects.account.slot(slot);
            let cursor = if page.owner().is_some() || page.charge() > 0 {
                pair.daemon().cursor(slot)
            } else {
                pair.daemon().claim(slot, owner)?
            };
            pair.cursors.insert(slot, cursor);
            pair.dropped
                .insert(slot, pair.objects.account.slot(slot).dropped_events());
        }
        self.occupy(slot);
        Ok(())
    }

    fn occupy(&mut self, slot: SlotIndex) {
        if self.taken.insert(slot) {
            self.in_use.push(slot);
        }
    }

    /// The objects and their names, for whoever keeps them while no daemon runs.
    pub fn keepsakes(&self, account: &str) -> Vec<(Keepsake, BorrowedFd<'_>)> {
        let keepsake = |pair: &Pair, part| Keepsake {
            number: self.number,
            device: pair.uuid,
            part,
            account: account.into(),
        };
        let mut all = Vec::with_capacity(2 * self.pairs.len());
        for pair in &self.pairs {
            all.push((keepsake(pair, Part::Policy), pair.policy_own.as_fd()));
            all.push((keepsake(pair, Part::Account), pair.account_fd.as_fd()));
        }
        all
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

    pub fn set_recycling(&self, recycling: Recycling, contents: Contents) {
        for pair in &self.pairs {
            pair.daemon().set_recycling(recycling, contents);
        }
    }

    pub fn press(&self, device: usize) {
        if let Some(pair) = self.pairs.get(device) {
            pair.daemon().press();
        }
    }

    /// Puts `owner` into a free slot.
    pub fn claim(&mut self, slot: SlotIndex, owner: &Owner) -> Result<(), Contended> {
        for pair in &mut self.pairs {
            // Nobody has been told of the slot: what was claimed before an error is claimed anew next time.
            let cursor = pair.daemon().claim(slot, owner)?;
            pair.cursors.insert(slot, cursor);
            pair.dropped.insert(slot, 0);
        }
        self.occupy(slot);
        Ok(())
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
        if self.in_use.is_empty() {
            // What is charged still was written by nobody of ours, and would be missing for ever.
            for pair in &mut self.pairs {
                vacated.corrupt |= pair.daemon().write_off() > 0;
            }
        }
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
        let closed = self
            .closed
            .iter()
            .flat_map(|closed| closed.inodes.iter().copied());
        self.pairs
            .iter()
            .filter_map(|pair| inode(&pair.account_fd))
            .chain(closed)
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
