//! From decisions to words in shared memory: the policy and account objects of every account on every device. Clients read
//! them on their next call (`ledger/src/account.rs`). `bell.rs` tells when a client posted something.

mod account;
pub mod bell;

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use ledger::mapping::MapError;
use ledger::wire::ObjectEntry;
use ledger::{Owner, SlotIndex};

use account::Ledger;
pub use account::{Objects, Posted, Reading, What};

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
        }
    }

    /// From the next [`Ledgers::set_cap`] of each account on: as [`Ledgers::new`].
    pub fn observe(&mut self, observe: bool) {
        self.mode = Ledgers::new(observe).mode;
    }

    /// Makes the objects of an account, one pair per device, in the order of `grants`.
    pub fn open(&mut self, account: &str, grants: &[Grant]) -> Result<(), EnforceError> {
        let mode = self.mode();
        let ledger = Ledger::create(grants, mode).map_err(|error| EnforceError::Create {
            account: account.into(),
            error,
        })?;
        self.accounts.insert(account.into(), ledger);
        Ok(())
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

    /// Gives `owner` a slot, the same number on every device.
    pub fn claim(&mut self, account: &str, owner: &Owner) -> Result<SlotIndex, EnforceError> {
        match self.account(account)?.claim(owner) {
            Ok(Some(slot)) => Ok(slot),
            Ok(None) => Err(EnforceError::NoSlot {
                account: account.into(),
            }),
            Err(_) => Err(EnforceError::Contended {
                account: account.into(),
            }),
        }
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
