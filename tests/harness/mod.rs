//! What the tests stand on. `artefacts` are the built files, `node` is a private node made of them, `session` a program that is
//! told its steps, `outcome` a finished program and the watchdog over it. `wheels` and `programs` bring third-party
//! headers and compile C, `rootfs` is a system of its own to change and break, `machine` a booted
//! one, `skip` says what could not be tested.

pub mod artefacts;
pub mod chance;
pub mod elf;
pub mod installed;
pub mod machine;
pub mod node;
pub mod outcome;
pub mod programs;
pub mod rootfs;
pub mod session;
pub mod skip;
pub mod wait;
pub mod wheels;

use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Cargo's target directory, for what may stay there from one run to the next.
pub fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("target/tmp has a parent")
        .to_path_buf()
}

/// Whether the long form of cases that have one was asked for.
#[allow(dead_code, reason = "only some sets of tests have a long form")]
pub fn long() -> bool {
    std::env::var_os("STINT_TEST_LONG").is_some()
}
