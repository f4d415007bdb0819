//! An account as this process charges it: reserve, call, give back. A [`Reservation`] that is not kept gives itself back,
//! so that no failing path has to remember to.
//!
//! Next: `ledger/src/client.rs`, where a reservation is decided.

use driver::table::RowId;
use ledger::client::Refusal;
use ledger::ring::{Event, Kind, Reason};
use ledger::slot::Class;
use ledger::{Client, Mapping, Mode, Policy, SlotIndex};

use crate::attach::Admitted;
use crate::lock::{Lock, Rank};

/// The account of one device. Amounts are bytes.
pub struct Account {
    /// The device's UUID.
    pub device: [u8; 16],
    policy: &'static Policy,
    words: &'static ledger::Account,
    slot: SlotIndex,
    client: Lock<Client<'static>>,
}

/// Bytes charged that are given back unless kept.
#[must_use]
pub struct Reservation<'a> {
    account: &'a Account,
    class: Class,
    bytes: u64,
}

impl Account {
    /// Charges through the slot this process was given. The mappings live as long as the process.
    pub fn new(admitted: Admitted) -> Account {
        let policy = Box::leak(Box::new(admitted.policy));
        let account: &'static Mapping<ledger::Account> = Box::leak(Box::new(admitted.account));
        Account {
            device: admitted.device,
            policy,
            words: account,
            slot: admitted.slot,
            client: Lock::new(Rank::Client, Client::new(policy, account, admitted.slot)),
        }
    }

    /// Charges `bytes`. In observe mode nothing is refused: what no account could hold is not charged.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn try_reserve(&self, bytes: u64, class: Class) -> Result<Reservation<'_>, Refusal> {
        let mut client = self.client.lock();
        let bytes = match client.reserve(bytes) {
            Ok(()) => bytes,
            Err(_) if self.policy.mode() == Mode::Observe => 0,
            Err(refusal) => return Err(refusal),
        };
        client.note(class, signed(bytes));
        Ok(Reservation {
            account: self,
            class,
            bytes,
        })
    }

    /// Gives back `bytes` of what was kept.
    pub fn give_back(&self, bytes: u64, class: Class) {
        let mut client = self.client.lock();
        client.note(class, -signed(bytes));
        // Refused only where somebody wrote nonsense into the account, of which the daemon learns by its own means.
        let _ = client.release(bytes);
    }

    /// Moves `bytes` of the charge from one class to another; changes no charge.
    pub fn reclassify(&self, bytes: u64, from: Class, to: Class) {
        let mut client = self.client.lock();
        client.note(from, -signed(bytes));
        client.note(to, signed(bytes));
    }

    /// Adds to a class that is no part of the charge; negative takes away.
    pub fn note(&self, class: Class, bytes: i64) {
        self.client.lock().note(class, bytes);
    }

    /// Posts an event about a call of `row` and rings the daemon.
    pub fn post(&self, row: RowId, kind: Kind, asked: u64, detail: u64) {
        let mut client = self.client.lock();
        let used = client.account().used();
        let event = self.event(row, kind, asked, used, detail);
        client.post(event);
    }

    /// Posts that `refusal` was the answer to a call of `row` that asked for some bytes, which would have cost others.
    pub fn post_refusal(&self, row: RowId, [asked, cost]: [u64; 2], refusal: Refusal) {
        let (kind, used) = match refusal {
            Refusal::Full { used, .. } => (Kind::Refused(Reason::Cap), used),
            Refusal::Contended => (Kind::Corrupt, 0),
        };
        let event = self.event(row, kind, asked, used, cost);
        self.client.lock().post(event);
    }

    fn event(&self, row: RowId, kind: Kind, asked: u64, used: u64, detail: u64) -> Event {
        Event {
            kind,
            function: row as u32,
            thread: rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(),
            at: monotonic_nanoseconds(),
            asked,
            used,
            cap: self.policy.cap(),
            detail,
        }
    }

    /// What the node expects a context on this device to cost; 0 when contexts are not charged.
    pub fn context_bytes(&self) -> u64 {
        self.policy.context_bytes()
    }

    /// What the daemon grants.
    pub fn policy(&self) -> &'static Policy {
        self.policy
    }

    /// How many processes the account may have.
    pub fn clients(&self) -> u32 {
        self.words.clients()
    }

    /// Whether more is used than is granted: the cap was lowered.
    pub fn is_over(&self) -> bool {
        self.words.used() > self.policy.limit()
    }

    /// Free and total bytes as this tenant is to see them, given the device's own. What this process keeps for its next
    /// request is free to it. Never more than the device has.
    pub fn view(&self, free: u64, total: u64) -> (u64, u64) {
        let idle = self.words.slot(self.slot).class_bytes(Class::Idle);
        let used = self.words.used().saturating_sub(idle);
        self.policy
            .view(free.saturating_add(idle).min(total), total, used)
    }

    /// The counter of this process's launches.
    pub fn launches(&self) -> &'static core::sync::atomic::AtomicU64 {
        self.client.lock().launches()
    }
}

impl Reservation<'_> {
    /// The bytes stay charged; whoever keeps them gives them back by [`Account::give_back`].
    pub fn keep(mut self) -> u64 {
        core::mem::take(&mut self.bytes)
    }

    /// Adds what another reservation of the same account holds.
    pub fn absorb(&mut self, mut other: Reservation<'_>) {
        other.reclassify(self.class);
        self.bytes += other.keep();
    }

    /// Gives back what is held above `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        if self.bytes > bytes {
            self.account.give_back(self.bytes - bytes, self.class);
            self.bytes = bytes;
        }
    }

    /// What the bytes are shown as from now on.
    pub fn reclassify(&mut self, class: Class) {
        if self.class != class {
            self.account.reclassify(self.bytes, self.class, class);
            self.class = class;
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.bytes != 0 {
            self.account.give_back(self.bytes, self.class);
        }
    }
}

/// As a change of a class.
pub fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The monotonic clock, in nanoseconds.
pub fn monotonic_nanoseconds() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}
