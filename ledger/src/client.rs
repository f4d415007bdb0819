//! A client: one process that charges memory through its slot of an account.
//!
//! Read next: `slot.rs`, what its page holds, then `operation.rs`, how the charge is made.

use crate::account::{Account, Pair};
use crate::doorbell::Doorbell;
use crate::layout::{MAX_GRANULES, bytes_of, granules_covering};
#[cfg(not(loom))]
use crate::mapping::Mapping;
use crate::operation::{Hook, Operation, Outcome};
use crate::policy::Policy;
use crate::ring::Event;
use crate::slot::{CLASSES, Class, Slot, SlotIndex};
use crate::sync::{AtomicU64, Ordering::Relaxed};

/// Why a reservation was refused. Amounts in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not fit.
    Full {
        /// What was asked for, rounded up to a granule.
        asked: u64,
        /// What the account used when it was refused.
        used: u64,
        /// The limit it was judged by.
        limit: u64,
    },
    /// Others changed the account four thousand million times in the meantime: somebody works against this client.
    Contended,
}

/// Why a release was not done. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseError {
    /// The client does not hold that much.
    Short,
    /// The account does not hold that much: somebody wrote nonsense into it.
    Corrupt,
    /// As [`Refusal::Contended`].
    Contended,
}

/// One process charging memory through its slot.
///
/// One operation at a time: threads of the process take turns under a lock of the caller's (hence `&mut`), and a child made
/// by `fork` never uses its parent's `Client`, for the slot has one owner. The lock need not be held over a driver call.
pub struct Client<'a> {
    pair: Pair<'a>,
    slot: SlotIndex,
}

impl<'a> Client<'a> {
    /// Works in `slot` of `account`, which the daemon assigned to this process.
    #[cfg(not(loom))]
    #[must_use]
    pub fn new(policy: &'a Policy, account: &'a Mapping<Account>, slot: SlotIndex) -> Self {
        Client {
            pair: Pair { policy, account },
            slot,
        }
    }

    /// Charges `bytes`, rounded up to a granule, if the account stays within its cap; 0 is granted and charges nothing.
    /// Give back exactly what was reserved: two halves round up to more than the whole.
    ///
    /// # Errors
    /// [`Refusal::Full`] when it does not fit, also for sizes no account can hold.
    #[inline]
    pub fn reserve(&mut self, bytes: u64) -> Result<(), Refusal> {
        self.reserve_with(bytes, &mut ())
    }

    /// [`Client::reserve`] with a hook before each step.
    ///
    /// # Errors
    /// As [`Client::reserve`].
    #[doc(hidden)]
    #[inline]
    pub fn reserve_with<H: Hook>(&mut self, bytes: u64, hook: &mut H) -> Result<(), Refusal> {
        if bytes == 0 {
            return Ok(());
        }
        let granules = granules_covering(bytes);
        if granules > MAX_GRANULES {
            let (used, limit) = (self.pair.account.used(), self.pair.policy.limit());
            return Err(Refusal::Full {
                asked: bytes_of(granules),
                used,
                limit,
            });
        }
        match Operation::new(self.slot, granules as i64, u32::MAX).run(&self.pair, hook) {
            Outcome::Applied { used } => {
                let peak = &self.pair.account.peak;
                if used > peak.load(Relaxed) {
                    peak.fetch_max(used, Relaxed);
                }
                Ok(())
            }
            Outcome::Refused { used, limit } => Err(Refusal::Full {
                asked: bytes_of(granules),
                used: bytes_of(used),
                limit: bytes_of(limit),
            }),
            Outcome::Short | Outcome::Corrupt | Outcome::Contended => Err(Refusal::Contended),
        }
    }

    /// Gives `bytes`, rounded up to a granule, back; 0 changes nothing.
    ///
    /// # Errors
    /// See [`ReleaseError`]; nothing was given back then.
    #[inline]
    pub fn release(&mut self, bytes: u64) -> Result<(), ReleaseError> {
        self.release_with(bytes, &mut ())
    }

    /// [`Client::release`] with a hook before each step.
    ///
    /// # Errors
    /// As [`Client::release`].
    #[doc(hidden)]
    #[inline]
    pub fn release_with<H: Hook>(&mut self, bytes: u64, hook: &mut H) -> Result<(), ReleaseError> {
        if bytes == 0 {
            return Ok(());
        }
        let granules = granules_covering(bytes);
        if granules > MAX_GRANULES {
            return Err(ReleaseError::Short);
        }
        match Operation::new(self.slot, -(granules as i64), u32::MAX).run(&self.pair, hook) {
            Outcome::Applied { .. } => Ok(()),
            Outcome::Short => Err(ReleaseError::Short),
            Outcome::Refused { .. } | Outcome::Corrupt => Err(ReleaseError::Corrupt),
            Outcome::Contended => Err(ReleaseError::Contended),
        }
    }

    /// Bytes this client holds.
    #[must_use]
    pub fn charge(&self) -> u64 {
        self.page().charge()
    }

    /// Adds `bytes` (negative: takes away) to the counter of `class`; it stops at 0. Says what a charge is for, charges
    /// nothing itself.
    pub fn note(&mut self, class: Class, bytes: i64) {
        let counter = &self.page().classes[class as usize & (CLASSES - 1)];
        counter.store(counter.load(Relaxed).saturating_add_signed(bytes), Relaxed);
    }

    /// Posts `event` and rings; false when the ring was full and the event was only counted.
    pub fn post(&mut self, event: Event) -> bool {
        let posted = self.page().ring.post(event);
        self.doorbell().ring();
        posted
    }

    /// The bell that wakes the daemon; `post` rings it.
    #[must_use]
    pub fn doorbell(&self) -> &'a Doorbell {
        &self.pair.account.doorbell
    }

    /// The launch counter. Any thread may add to it without the lock.
    #[must_use]
    pub fn launches(&self) -> &'a AtomicU64 {
        &self.page().launches
    }

    /// The account.
    #[must_use]
    pub fn account(&self) -> &'a Account {
        self.pair.account
    }

    /// The policy.
    #[must_use]
    pub fn policy(&self) -> &'a Policy {
        self.pair.policy
    }

    /// The slot this client works in.
    #[must_use]
    pub fn slot(&self) -> SlotIndex {
        self.slot
    }

    fn page(&self) -> &'a Slot {
        self.pair.account.slot(self.slot)
    }
}
