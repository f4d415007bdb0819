//! What clients, the daemon and strangers may rely on. One binary; each file is one subject.
//!
//! Read next: `account.rs` (charges and caps), `sharing.rs` (descriptors, processes, the doorbell), `hostile.rs` (a tenant
//! that writes nonsense), `properties.rs` (random sequences), `wire.rs` (the attach protocol), `fuzzed.rs` (bytes nobody meant).

mod account;
mod fuzzed;
mod hostile;
mod properties;
mod setup;
mod sharing;
mod wire;
