//! A node in virtual time: `weather` makes a run from a seed, `node` plays it, `truth` judges every step by what the devices did.
//! Read next: `tests/scheduling/model/weather.rs`.
#![allow(dead_code, reason = "tests and benches each use a part")]

pub mod about;
pub mod client;
pub mod daemon;
pub mod draw;
pub mod engine;
pub mod node;
pub mod peers;
pub mod program;
pub mod service;
pub mod thread;
pub mod truth;
pub mod weather;
