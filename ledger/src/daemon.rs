//! The daemon's side of an account: slots, the cap, the recovery of what the dead held, events.
//!
//! Read next: `recovery.rs`, how a dead client's slot is emptied, then `ring.rs`, the events.

use crate::account::{Account, Pair};
use crate::doorbell::Doorbell;
use crate::layout::bytes_of;
#[cfg(not(loom))]
use crate::mapping::Mapping;
use crate::operation::{Hook, Operation, Outcome, Table, used_in};
use crate::policy::{Contents, Mode, Policy, Recycling};
use crate::recovery::{Ended, Recovery};
use crate::ring::{Cursor, Drained, Event};
use crate::slot::{Owner, SlotIndex};
use crate::sync::{Ordering::Relaxed, Ordering::Release};

/// Disturbances the daemon accepts in one operation before it puts it off; about a millisecond.
const DAEMON_RETRIES: u32 = 10_000;

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

    /// Writes off what is charged although no client has a slot, and returns it: 0, unless a client wrote into the account
    /// what no client of ours writes. Only for an account without clients.
    pub fn write_off(&mut self) -> u64 {
        let word = self.pair.word();
        let used = used_in(word.load(Relaxed));
        if used > 0 {
            word.store(0, Release);
        }
        bytes_of(used)
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

    /// Says what becomes of memory that clients free, from their next call on.
    pub fn set_recycling(&mut self, recycling: Recycling, contents: Contents) {
        self.pair.policy.store_recycling(recycling, contents);
    }

    /// Wants back what clients keep idle; each gives it at its next call.
    pub fn press(&mut self) {
        self.pair.policy.add_pressure();
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

    /// The memory operations work on, for tests that take single steps.
    #[doc(hidden)]
    #[must_use]
    pub fn table(&self) -> impl Table + 'a {
        self.pair
    }
}
