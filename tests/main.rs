//! The integration tests, one binary: `tidy` (rules of the house), `oracle` (the driver table against NVIDIA's headers),
//! `scenarios` (programs, tenants and the daemon together), `scheduling` (the scheduler in virtual time),
//! `conformance` (what any driver must do), `clients` (real third-party clients), `instructions` (what one call costs); all of them stand on `harness`.
//!
//! `cargo xtask test` builds the artefacts first and lists at the end what was skipped; a bare `cargo test` works too.

mod clients;
mod conformance;
mod harness;
mod instructions;
mod oracle;
mod scenarios;
mod scheduling;
mod tidy;
