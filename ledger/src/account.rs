//! The account object: what the clients of one account hold on one device; and the two who work on it.
//!
//! [`Client`] is a process that charges memory, [`Daemon`] is the one that hands out slots, changes the cap and recovers
//! what the dead held. The observer, who only reads, has a `View<Account>` and the methods of [`Account`].
//!
//! Read next: `slot.rs`, then `operation.rs`, which does the work.

use crate::doorbell::Doorbell;
use crate::layout::{Header, MAX_GRANULES, Object, bytes_of, granules_covering, shareable};
#[cfg(not(loom))]
use crate::mapping::Mapping;
use crate::operation::{Hook, Operation, Outcome, Table, used_in};
use crate::policy::{Mode, Policy};
use crate::recovery::{Ended, Recovery};
use crate::ring::{Cursor, Drained, Event};
use crate::slot::{CLASSES, Cells, Class, Owner, SLOTS, Slot, SlotIndex};
use crate::sync::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Disturbances the daemon accepts in one operation before it puts it off; about a millisecond.
const DAEMON_RETRIES: u32 = 10_000;

shareable! {
    /// What one account holds on one device. Written by its clients, hence by its tenant: no value here is to be trusted
    /// beyond the account itself.
    #[repr(align(4096))]
    pub struct Account {
        header: Header,
        word: AtomicU64,
        word_line: [AtomicU64; 7],
        doorbell: Doorbell,
        /// Granules used at most so far.
        peak: AtomicU64,
        peak_line: [AtomicU64; 7],
        /// One bit per slot that may be in use, so that a reader touches no page of an unused one.
        occupied: [AtomicU64; SLOTS / 64],
        reserved: [AtomicU64; 464],
        slots: [Slot; SLOTS],
    }
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Account>() == 4096 * (1 + SLOTS));

impl Object for Account {
    const MAGIC: u64 = u64::from_le_bytes(*b"STNTACCT");
    const VERSION: u32 = 1;
    fn header(&self) -> &Header {
        &self.header
    }
}

impl Account {
    /// Bytes charged by all clients together.
    #[must_use]
    pub fn used(&self) -> u64 {
        bytes_of(used_in(self.word.load(Acquire)))
    }

    /// The most bytes that were charged at once since the account was made, to within operations whose process was killed
    /// between charging and noting it.
    #[must_use]
    pub fn peak(&self) -> u64 {
        bytes_of(self.peak.load(Relaxed).min(MAX_GRANULES))
    }

    /// A slot's page.
    #[must_use]
    pub fn slot(&self, slot: SlotIndex) -> &Slot {
        &self.slots[slot.get()]
    }

    /// The slots that may be in use, lowest first; at most 1023. A slot listed may be vacant: see [`Slot::owner`].
    pub fn occupied(&self) -> impl Iterator<Item = SlotIndex> + '_ {
        (1..SLOTS as u32)
            .filter_map(SlotIndex::client)
            .filter(|slot| self.occupied[slot.get() / 64].load(Acquire) >> (slot.get() % 64) & 1 == 1)
    }

    fn mark(&self, slot: SlotIndex, occupied: bool) {
        let bit = 1 << (slot.get() % 64);
        let word = &self.occupied[slot.get() / 64];
        if occupied {
            word.fetch_or(bit, AcqRel)
        } else {
            word.fetch_and(!bit, AcqRel)
        };
    }
}

#[derive(Clone, Copy)]
struct Pair<'a> {
    policy: &'a Policy,
    account: &'a Account,
}

impl Table for Pair<'_> {
    #[inline]
    fn word(&self) -> &AtomicU64 {
        &self.account.word
    }
    #[inline]
    fn limit(&self) -> &AtomicU64 {
        &self.policy.limit
    }
    #[inline]
    fn cells(&self, slot: SlotIndex) -> &Cells {
        &self.account.slot(slot).cells
    }
}

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

/// The account's words kept changing; what was begun is to be asked for again later. Nothing is lost meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contended;

/// What a recovery gave back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Bytes the dead client held.
    pub released: u64,
    /// The slot held values no client of ours writes: `used` may be wrong until the account is made anew.
    pub corrupt: bool,
}

/// The daemon's side of an account. Cheap to make; at most one at a time per account, in one process.
///
/// Nothing here loops longer than about a millisecond, whatever the tenant writes meanwhile.
pub struct Daemon<'a> {
    pair: Pair<'a>,
}

impl<'a> Daemon<'a> {
    /// Works on the account that `policy` and `account` make up.
    #[cfg(not(loom))]
    #[must_use]
    pub fn new(policy: &'a Mapping<Policy>, account: &'a Mapping<Account>) -> Self {
        Daemon {
            pair: Pair { policy, account },
        }
    }

    /// Puts a cap into force and returns the bytes used at that instant. From then on no reservation is granted above it;
    /// what is used already stays and only falls. To be called once for a new account, whose cap is 0 until then.
    ///
    /// # Errors
    /// [`Contended`]: the new cap is stored, but a reservation prepared under the old one may still be granted.
    pub fn set_cap(&mut self, cap_bytes: u64, mode: Mode) -> Result<u64, Contended> {
        self.set_cap_with(cap_bytes, mode, &mut ())
    }

    /// [`Daemon::set_cap`] with a hook before each step.
    ///
    /// # Errors
    /// As [`Daemon::set_cap`].
    #[doc(hidden)]
    pub fn set_cap_with<H: Hook>(
        &mut self,
        cap_bytes: u64,
        mode: Mode,
        hook: &mut H,
    ) -> Result<u64, Contended> {
        self.pair.policy.store_cap(cap_bytes, mode);
        // A predecessor may have died in the middle of the same thing.
        if Recovery::new(SlotIndex::DAEMON, DAEMON_RETRIES).run(&self.pair, hook) == Ended::Contended {
            return Err(Contended);
        }
        // A change of nothing still replaces the word, and with it every decision made by the old cap.
        match Operation::new(SlotIndex::DAEMON, 0, DAEMON_RETRIES).run(&self.pair, hook) {
            Outcome::Applied { used } => Ok(bytes_of(used)),
            _ => Err(Contended),
        }
    }

    /// Stores what a context is expected to cost, in bytes; 0 when contexts are not charged.
    pub fn set_context_bytes(&mut self, bytes: u64) {
        self.pair.policy.store_context_bytes(bytes);
    }

    /// Prepares `slot` for `owner` and returns where its events begin. What a former owner left is recovered first.
    ///
    /// # Errors
    /// [`Contended`]: the slot still holds a former owner's charge.
    pub fn claim(&mut self, slot: SlotIndex, owner: &Owner) -> Result<Cursor, Contended> {
        self.recover(slot)?;
        let page = self.pair.account.slot(slot);
        page.start_time.store(owner.start_time, Relaxed);
        page.nonce.store(owner.nonce, Relaxed);
        page.launches.store(0, Relaxed);
        for class in &page.classes {
            class.store(0, Relaxed);
        }
        let cursor = page.ring.reset();
        self.pair.account.mark(slot, true);
        page.cells.owner.store(u64::from(owner.pid), Release);
        Ok(cursor)
    }

    /// Gives back what the owner of `slot` held and makes it vacant. The owner must be dead, or have executed another
    /// program: a live one would go on with an operation that was settled behind its back. Drain its events before.
    ///
    /// # Errors
    /// [`Contended`]: the slot still holds its charge.
    pub fn recover(&mut self, slot: SlotIndex) -> Result<Recovered, Contended> {
        self.recover_with(slot, &mut ())
    }

    /// [`Daemon::recover`] with a hook before each step.
    ///
    /// # Errors
    /// As [`Daemon::recover`].
    #[doc(hidden)]
    pub fn recover_with<H: Hook>(&mut self, slot: SlotIndex, hook: &mut H) -> Result<Recovered, Contended> {
        match Recovery::new(slot, DAEMON_RETRIES).run(&self.pair, hook) {
            Ended::Vacant { released, corrupt } => {
                self.pair.account.mark(slot, false);
                Ok(Recovered {
                    released: bytes_of(released),
                    corrupt,
                })
            }
            Ended::Contended => Err(Contended),
        }
    }

    /// The bell the account's clients ring: wait for it by `doorbell::wait`.
    #[must_use]
    pub fn doorbell(&self) -> &'a Doorbell {
        &self.pair.account.doorbell
    }

    /// Where the events of `slot` begin, as the shared words have it: for a daemon that starts again.
    #[must_use]
    pub fn cursor(&self, slot: SlotIndex) -> Cursor {
        self.pair.account.slot(slot).ring.cursor()
    }

    /// Hands over the events of `slot` since `cursor`, at most `ring::CAPACITY` of them.
    pub fn drain(&mut self, slot: SlotIndex, cursor: &mut Cursor, each: impl FnMut(Event)) -> Drained {
        self.pair.account.slot(slot).ring.drain(cursor, each)
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
}
