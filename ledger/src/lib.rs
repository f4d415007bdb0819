//! The ledger: what one account holds on one device, kept in memory that the daemon and the account's clients share.
//!
//! Two objects per account and device. The [`Policy`] is written by the daemon and mapped read-only by clients; the
//! [`Account`] is written by both. A client charges memory by [`Client::reserve`] before it asks the driver for it
//! and gives the charge back by [`Client::release`] after the driver freed it. At no instant does the sum of the charges
//! exceed the cap, whichever process is killed at whichever instruction; the daemon returns what a dead client held by
//! [`Daemon::recover`].
//!
//! Read next: `layout.rs` (what may lie in shared memory), then `account.rs`.
//!
//! The crate is `no_std`, does not allocate, does not panic on anything a tenant can write, and never blocks, but for
//! [`attach`], the conversation a client has with the daemon once.
#![cfg_attr(not(any(test, loom)), no_std)]

pub mod account;
#[cfg(not(loom))]
pub mod attach;
#[cfg(all(test, not(loom)))]
mod checker;
pub mod client;
pub mod daemon;
pub mod doorbell;
pub mod layout;
#[cfg(not(loom))]
pub mod mapping;
#[cfg(all(test, loom))]
mod models;
pub mod operation;
pub mod policy;
pub mod recovery;
pub mod ring;
pub mod slot;
#[cfg(test)]
mod small;
pub mod sync;
pub mod wire;

pub use account::Account;
pub use client::Client;
pub use daemon::Daemon;
pub use layout::{Object, Shareable};
#[cfg(not(loom))]
pub use mapping::{Mapping, View};
pub use policy::{Contents, Mode, Policy, Recycling};
pub use slot::{Owner, SlotIndex};
