//! Real clients, which nobody here wrote, unchanged, on the stand-in: bare they exceed the cap, under Stint they are
//! refused exactly at it, read the cap where they ask for free memory, and below it behave byte for byte the same.
//!
//! `venv` makes the throw-away Python environments, `made` compiles the clients that are source here, `rows` is the table of
//! clients, `nvml` those that only look.

mod made;
mod nvml;
mod rows;
mod venv;

use std::{path::PathBuf, process::Command};

/// A client: what to run before its own words (`below`, or `grow STEP COUNT`).
#[derive(Clone, Debug)]
struct Client {
    words: Vec<PathBuf>,
    /// Variables it needs, as its users set them.
    variables: Vec<(&'static str, PathBuf)>,
}

impl Client {
    fn program(path: PathBuf) -> Client {
        Client {
            words: vec![path],
            variables: Vec::new(),
        }
    }

    /// `command`, which already says how to start something, with this client and `words`.
    fn on(&self, mut command: Command, words: &[&str]) -> Command {
        command
            .args(&self.words[1..])
            .args(words)
            .envs(self.variables.iter().cloned());
        command
    }
}

/// A file of `tests/clients/programs`.
fn source(name: &str) -> PathBuf {
    crate::harness::root().join("tests/clients/programs").join(name)
}
