//! The scheduler in a node of virtual time, from seeds: `weather` makes a run, `node` plays it, `truth` judges every step by what
//! the devices did. `faults` shows that the judge notices a broken scheduler. Read next: `tests/scheduling/weather.rs`.
#![allow(dead_code, reason = "tests and benches each use a part")]

pub mod about;
pub mod client;
pub mod daemon;
pub mod draw;
pub mod engine;
#[cfg(test)]
mod faults;
pub mod node;
pub mod peers;
pub mod program;
#[cfg(test)]
mod seeds;
pub mod service;
pub mod thread;
pub mod truth;
pub mod weather;
