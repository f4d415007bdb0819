//! The built files under `target/stint`, brought up to date once per run of the tests.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use super::{root, target};

/// The two symbol profiles of the stand-in's driver.
#[allow(dead_code, reason = "the older profile is for tests of older clients")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    V12_9,
    V13,
}

impl Profile {
    /// The profile's name in paths and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Profile::V12_9 => "12.9",
            Profile::V13 => "13",
        }
    }
}

/// `target/stint`. Inside `cargo xtask test` it is there already; else it is built now.
pub fn directory() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(built) = std::env::var_os("STINT_TEST_ARTEFACTS") {
            return PathBuf::from(built);
        }
        xtask(&["build"]);
        target().join("stint")
    })
}

/// Runs `cargo xtask` with `words`, which must succeed.
#[track_caller]
pub fn xtask(words: &[&str]) {
    let mut command = Command::new(env!("CARGO"));
    let outcome = super::outcome::run(
        command
            .arg("xtask")
            .args(words)
            .current_dir(root())
            .env("CARGO_TARGET_DIR", target()),
    );
    assert_eq!(outcome.code, 0, "cargo xtask {words:?}\n{}", outcome.stderr);
}

/// `libstint.so`.
pub fn shim() -> PathBuf {
    directory().join("lib/libstint.so")
}

/// The NVML twin.
pub fn nvml_twin() -> PathBuf {
    directory().join("lib/libstint-nvml.so")
}

/// What `LD_PRELOAD` is to name, as `stint run` does it.
pub fn preload() -> std::ffi::OsString {
    let library = |name| directory().join("preload/$LIB").join(name);
    std::env::join_paths(["libstint.so", "libstint-nvml.so"].map(library)).expect("paths without colons")
}

/// The directory with `libcuda.so.1`, `libcuda.so` and `libnvidia-ml.so.1` of a profile.
pub fn stand_in(profile: Profile) -> PathBuf {
    directory().join("sim").join(profile.name()).join("lib")
}

/// The directory with the two `libcudart`.
pub fn runtimes() -> PathBuf {
    directory().join("sim/lib")
}
