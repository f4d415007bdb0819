//! From decisions to words in shared memory: the policy and account objects of every account on every device. Clients read
//! them on their next call (`ledger/src/account.rs`). `bell.rs` tells when a client posted something.

mod account;
pub mod bell;
pub mod keepsake;

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::mapping::MapError;
use ledger::wire::ObjectEntry;
use ledger::{Contents, Owner, Recycling, SlotIndex};

use account::Ledger;
pub use account::{Closed, Held, Objects, Posted, Reading, What, inode};
use keepsake::Keepsake;

/// All accounts are asked for what they keep at most this often, for each device.
const PRESS: Duration = Duration::from_secs(1);

/// 16 bytes of a device's UUID, as the driver's `cuDeviceGetUuid` gives them.
pub type Uuid = [u8; 16];

/// What an account is granted on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    pub uuid: Uuid,
    pub cap_bytes: u64,
    /// Expected cost of a context; 0 when it is not known.
    pub context_bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum EnforceError {
    #[error("account {account}: its shared memory cannot be made: {error:?}")]
    Create { account: String, error: MapError },
    #[error("account {account}: all 1023 slots are taken")]
    NoSlot { account: String },
    #[error("account {account}: its words keep changing; asked for again in a moment")]
    Contended { account: String },
    #[error("account {account}: there is no such account")]
    Unknown { account: String },
    #[error("account {account} admits nobody: {why}")]
    Closed { account: String, why: String },
}

/// What ends a client's stay in its slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vacated {
    /// Bytes given back, per device.
    pub released: Vec<u64>,
    /// Some device's slot held values no client of ours writes.
    pub corrupt: bool,
}

/// The ledgers of all accounts.
#[derive(Default)]
pub struct Ledgers {
    accounts: BTreeMap<String, Ledger>,
    mode: Option<ledger::Mode>,
    /// Number of the latest account.
    latest: u32,
    /// When all accounts were last asked for what they keep, by device.
    pressed: BTreeMap<usize, Instant>,
}

impl Ledgers {
    /// `observe`: everything is charged and shown, nothing refused.
    pub fn new(observe: bool) -> Ledgers {
        let mode = if observe {
            ledger::Mode::Observe
        } else {
            ledger::Mode::Enforce
        };
        Ledgers {
            accounts: BTreeMap::new(),
            mode: Some(mode),
            latest: 0,
            pressed: BTreeMap::new(),
        }
    }

    /// From the next [`Ledgers::set_cap`] of each account on: as [`Ledgers::new`].
    pub fn observe(&mut self, observe: bool) {
        self.mode = Ledgers::new(observe).mode;
    }

    /// Makes the objects of an account, one pair per device, in the order of `grants`.
    pub fn open(&mut self, account: &str, grants: &[Grant]) -> Result<(), EnforceError> {
        let number = self.latest.wrapping_add(1);
        let ledger = Ledger::create(number, grants, self.mode()).map_err(|error| EnforceError::Create {
            account: account.into(),
            error,
        })?;
        self.latest = number;
        self.accounts.insert(account.into(), ledger);
        Ok(())
    }

    /// Opens an account with objects that an earlier daemon made, one pair per device, in the order of `grants`; those
    /// missing in `held` are made. Its slots are empty until [`Ledgers::take_over`].
    pub fn adopt(
        &mut self,
        account: &str,
        number: u32,
        grants: &[Grant],
        mut held: BTreeMap<Uuid, Held>,
    ) -> Result<(), EnforceError> {
        let mode = self.mode();
        let ledger =
            Ledger::adopt(number, grants, &mut held, mode).map_err(|error| EnforceError::Create {
                account: account.into(),
                error,
            })?;
        self.add(account, ledger);
        Ok(())
    }

    /// Opens an account without objects, in which nobody new gets a slot.
    pub fn open_closed(&mut self, account: &str, number: u32, closed: Closed) {
        self.add(account, Ledger::closed(number, Some(closed)));
    }

    fn add(&mut self, account: &str, ledger: Ledger) {
        self.latest = self.latest.max(ledger.number);
        self.accounts.insert(account.into(), ledger);
    }

    /// Why nobody new gets a slot of `account`.
    pub fn why_closed(&self, account: &str) -> Option<&str> {
        Some(&self.accounts.get(account)?.closed.as_ref()?.why)
    }

    /// The account's number, by which those who keep its objects know it.
    pub fn number(&self, account: &str) -> Option<u32> {
        self.accounts.get(account).map(|ledger| ledger.number)
    }

    /// The account's objects and their names, for whoever keeps them while no daemon runs.
    pub fn keepsakes(&self, account: &str) -> Vec<(Keepsake, BorrowedFd<'_>)> {
        self.accounts
            .get(account)
            .map(|ledger| ledger.keepsakes(account))
            .unwrap_or_default()
    }

    /// Slots of an adopted account that somebody may be in, and who, both by words that clients can write.
    pub fn in_words(&self, account: &str) -> Vec<(SlotIndex, Option<Owner>)> {
        let Some(ledger) = self.accounts.get(account) else {
            return Vec::new();
        };
        let occupied = ledger.occupied().into_iter();
        occupied.map(|slot| (slot, ledger.owner_in_words(slot))).collect()
    }

    /// Takes over a slot of an adopted account with the client in it.
    pub fn take_over(&mut self, account: &str, slot: SlotIndex, owner: &Owner) -> Result<(), EnforceError> {
        self.account(account)?
            .take_over(slot, owner)
            .map_err(|_| EnforceError::Contended {
                account: account.into(),
            })
    }

    /// Drops the objects of an account nobody uses any more.
    pub fn close(&mut self, account: &str) {
        self.accounts.remove(account);
    }

    pub fn contains(&self, account: &str) -> bool {
        self.accounts.contains_key(account)
    }

    /// Puts a cap into force and returns the bytes used at that instant, which may be more.
    pub fn set_cap(&mut self, account: &str, device: usize, cap_bytes: u64) -> Result<u64, EnforceError> {
        let mode = self.mode();
        self.account(account)?
            .set_cap(device, cap_bytes, mode)
            .map_err(|_| EnforceError::Contended {
                account: account.into(),
            })
    }

    /// Stores what a context on `device` is expected to cost, for every account.
    pub fn set_context_bytes(&mut self, device: usize, bytes: u64) {
        for ledger in self.accounts.values_mut() {
            ledger.set_context_bytes(device, bytes);
        }
    }

    /// Says what becomes of memory that clients of `account` free.
    pub fn set_recycling(&self, account: &str, recycling: Recycling, contents: Contents) {
        if let Some(ledger) = self.accounts.get(account) {
            ledger.set_recycling(recycling, contents);
        }
    }

    /// Wants back what clients of `account`, which was refused something, keep idle on `device`; where the device itself is
    /// full, what those of all accounts keep: of these at most once a second, whoever is refused.
    pub fn press(&mut self, account: &str, device: usize, full: bool, now: Instant) {
        if let Some(ledger) = self.accounts.get(account) {
            ledger.press(device);
        }
        let last = self.pressed.get(&device);
        if !full || last.is_some_and(|last| now.saturating_duration_since(*last) < PRESS) {
            return;
        }
        self.pressed.insert(device, now);
        for (name, ledger) in &self.accounts {
            if name != account {
                ledger.press(device);
            }
        }
    }

    /// A slot for one more client, the same number on every device.
    pub fn free_slot(&mut self, account: &str) -> Result<SlotIndex, EnforceError> {
        let ledger = self.account(account)?;
        if let Some(closed) = &ledger.closed {
            return Err(EnforceError::Closed {
                account: account.into(),
                why: closed.why.clone(),
            });
        }
        ledger.free_slot().ok_or_else(|| EnforceError::NoSlot {
            account: account.into(),
        })
    }

    /// Puts `owner` into a free slot.
    pub fn claim(&mut self, account: &str, slot: SlotIndex, owner: &Owner) -> Result<(), EnforceError> {
        self.account(account)?
            .claim(slot, owner)
            .map_err(|_| EnforceError::Contended {
                account: account.into(),
            })
    }

    /// Gives back what the owner of `slot`, who is dead or has executed another program, held. Its events are handed to
    /// `posted` first.
    pub fn vacate(
        &mut self,
        account: &str,
        slot: SlotIndex,
        posted: &mut Vec<Posted>,
    ) -> Result<Vacated, EnforceError> {
        self.account(account)?
            .vacate(slot, posted)
            .map_err(|_| EnforceError::Contended {
                account: account.into(),
            })
    }

    /// The objects to hand to a client in `slot`, or to an observer, who gets everything read-only; and their descriptors,
    /// in the same order.
    pub fn objects(
        &self,
        account: &str,
        slot: Option<SlotIndex>,
    ) -> Option<(Vec<ObjectEntry>, Vec<BorrowedFd<'_>>)> {
        self.accounts.get(account).map(|ledger| ledger.objects(slot))
    }

    /// Device and inode of the account objects, by which a process that maps them is told.
    pub fn inodes(&self, account: &str) -> Vec<(u64, u64)> {
        self.accounts.get(account).map(Ledger::inodes).unwrap_or_default()
    }

    /// What clients of `account` posted since the last time.
    pub fn drain(&mut self, account: &str, posted: &mut Vec<Posted>) {
        if let Some(ledger) = self.accounts.get_mut(account) {
            ledger.drain(posted);
        }
    }

    /// The accounts whose clients rang since they were drained last.
    pub fn rung(&self) -> Vec<String> {
        self.accounts
            .iter()
            .filter(|(_, ledger)| ledger.rung())
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// What the words of `account` say now, per device.
    pub fn read(&self, account: &str) -> Vec<Reading> {
        self.accounts.get(account).map(Ledger::read).unwrap_or_default()
    }

    /// The objects whose bells are to be listened to.
    pub fn bells(&self) -> Vec<Arc<Objects>> {
        self.accounts.values().flat_map(Ledger::objects_shared).collect()
    }

    fn mode(&self) -> ledger::Mode {
        self.mode.unwrap_or(ledger::Mode::Enforce)
    }

    fn account(&mut self, account: &str) -> Result<&mut Ledger, EnforceError> {
        self.accounts
            .get_mut(account)
            .ok_or_else(|| EnforceError::Unknown {
                account: account.into(),
            })
    }
}

#[cfg(test)]
mod tests;
