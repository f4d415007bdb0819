//! The node daemon, its children and the command line of Stint.
//!
//! The walk of one command: `cli.rs` parses it, the verb's own file runs it. The walk of one daemon: `daemon.rs` wires
//! `config`, `admission`, `state`, `enforce` and `device` together, and is the only file that knows them all.
#![deny(unsafe_code)]

pub mod admission;
pub mod artefacts;
pub mod cli;
pub mod completions;
pub mod config;
pub mod config_check;
pub mod daemon;
pub mod demo;
pub mod device;
pub mod doctor;
pub mod drain;
pub mod enforce;
pub mod event_lines;
pub mod events;
pub mod exit;
pub mod history;
pub mod host;
pub mod keeper;
pub mod load;
pub mod man;
pub mod output;
pub mod place;
pub mod protocol;
pub mod reap;
pub mod recommend;
pub mod reload;
pub mod run;
pub mod scheduler;
pub mod set;
pub mod sim;
pub mod state;
pub mod status;
pub mod top;
pub mod why;

/// For tests that need root.
#[cfg(test)]
#[path = "../tests/harness/skip.rs"]
mod skip;

/// For the tests named `fuzzed`.
#[cfg(test)]
#[path = "../tests/fuzz/engine.rs"]
mod fuzzing;
