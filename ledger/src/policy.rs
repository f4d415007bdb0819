//! The policy object: what the daemon grants an account on a device. The daemon writes it, clients map it read-only.
//!
//! Read next: `account.rs`, the other object.

use crate::layout::{Header, MAX_GRANULES, Object, bytes_of, granules_within, shareable};
use crate::sync::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Whether a request above the cap is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// Requests that do not fit are refused.
    Enforce = 0,
    /// Everything is charged and shown, nothing is refused on account of the cap.
    Observe = 1,
}

/// What becomes of memory that a client's program frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Recycling {
    /// It goes back to the driver. What a daemon that knows of nothing else means, too.
    Off = 0,
    /// Kept for the next request of its size; freeing waits for work in flight, as the driver does.
    Preserve = 1,
    /// Kept; freeing waits for nothing.
    Elide = 2,
}

/// What a kept block holds when it is handed out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Contents {
    /// What the same process left in it.
    Keep = 0,
    /// Zeroes.
    Zero = 1,
    /// Bytes of 0xa5, so that a read of what was never written shows.
    Poison = 2,
}

shareable! {
    /// What one account is granted on one device.
    #[repr(align(4096))]
    pub struct Policy {
        header: Header,
        /// Granules above which a reservation is refused: the cap, or [`MAX_GRANULES`] in [`Mode::Observe`].
        pub(crate) limit: AtomicU64,
        /// The cap as shown to the tenant, in bytes.
        cap: AtomicU64,
        /// Expected cost of one context on this device, in bytes; 0 when contexts are not charged.
        context: AtomicU64,
        mode: AtomicU32,
        /// A [`Recycling`]; any other value is [`Recycling::Off`].
        recycling: AtomicU32,
        /// A [`Contents`]; any other value is [`Contents::Zero`].
        contents: AtomicU32,
        /// Changes when what clients keep idle is wanted back.
        pressure: AtomicU32,
    }
}

impl Object for Policy {
    const MAGIC: u64 = u64::from_le_bytes(*b"STNTPLCY");
    const VERSION: u32 = 1;
    fn header(&self) -> &Header {
        &self.header
    }
}

impl Policy {
    /// The account's cap on this device in bytes, as the tenant is shown it.
    #[must_use]
    pub fn cap(&self) -> u64 {
        self.cap.load(Relaxed)
    }

    /// Bytes above which a reservation is refused: the cap rounded down to a granule, or 4 TiB in [`Mode::Observe`].
    #[must_use]
    pub fn limit(&self) -> u64 {
        bytes_of(self.limit.load(Acquire))
    }

    /// Bytes to reserve before a context is made on this device; 0 when contexts are not charged.
    #[must_use]
    pub fn context_bytes(&self) -> u64 {
        self.context.load(Relaxed)
    }

    /// Whether the cap is enforced.
    #[must_use]
    pub fn mode(&self) -> Mode {
        if self.mode.load(Relaxed) == Mode::Observe as u32 {
            Mode::Observe
        } else {
            Mode::Enforce
        }
    }

    /// What becomes of memory that is freed.
    #[must_use]
    #[inline]
    pub fn recycling(&self) -> Recycling {
        match self.recycling.load(Relaxed) {
            1 => Recycling::Preserve,
            2 => Recycling::Elide,
            _ => Recycling::Off,
        }
    }

    /// What a kept block holds when it is handed out again.
    #[must_use]
    #[inline]
    pub fn contents(&self) -> Contents {
        match self.contents.load(Relaxed) {
            0 => Contents::Keep,
            2 => Contents::Poison,
            _ => Contents::Zero,
        }
    }

    /// A number that changes when what clients keep idle is wanted back: at its next call a client that sees another one than
    /// before gives back everything it keeps on this device.
    #[must_use]
    #[inline]
    pub fn pressure(&self) -> u32 {
        self.pressure.load(Relaxed)
    }

    /// Free and total bytes of the device as the tenant is to see them, given the device's own and what the account uses.
    /// Never more than the device has, never below zero.
    #[must_use]
    pub fn view(&self, free: u64, total: u64, used: u64) -> (u64, u64) {
        if self.mode() == Mode::Observe {
            return (free, total);
        }
        let cap = self.cap();
        (free.min(cap.saturating_sub(used)), total.min(cap))
    }

    /// Stores cap and mode. In force only after the account's word has moved once more: see `Daemon::set_cap`.
    pub(crate) fn store_cap(&self, cap_bytes: u64, mode: Mode) {
        self.cap.store(cap_bytes, Relaxed);
        self.mode.store(mode as u32, Relaxed);
        let limit = match mode {
            Mode::Enforce => granules_within(cap_bytes),
            Mode::Observe => MAX_GRANULES,
        };
        self.limit.store(limit, Release);
    }

    pub(crate) fn store_recycling(&self, recycling: Recycling, contents: Contents) {
        self.contents.store(contents as u32, Relaxed);
        self.recycling.store(recycling as u32, Relaxed);
    }

    pub(crate) fn add_pressure(&self) {
        self.pressure.fetch_add(1, Relaxed);
    }

    pub(crate) fn store_context_bytes(&self, bytes: u64) {
        self.context.store(bytes, Relaxed);
    }
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Policy>() == 4096);
