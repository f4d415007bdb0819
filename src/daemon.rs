//! The node's daemon.

pub mod client_list;
pub mod run_dir;
