//! C programs of `tests/programs`, compiled once per run of the tests.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

use super::{
    artefacts::{self, Profile},
    outcome::run,
    root,
};

/// How a program is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    /// With `-lcuda`, every symbol bound at start.
    Cuda,
    /// With `-lcuda`, symbols bound at their first call.
    CudaLazy,
    /// With nothing: the program opens what it needs.
    Nothing,
    /// The same for one fixed address, as programs were built for long.
    Fixed,
    /// With everything in it: no loader comes into play.
    Static,
    /// A shared object, to be preloaded or opened.
    Shared,
}

impl Link {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Link::Cuda => &["-Wl,-z,now", "-lcuda"],
            Link::CudaLazy => &["-Wl,-z,lazy", "-lcuda"],
            Link::Nothing => &[],
            Link::Fixed => &["-no-pie"],
            Link::Static => &["-static"],
            Link::Shared => &["-shared", "-fPIC"],
        }
    }
}

/// The program `NAME.c` of `tests/programs`.
#[track_caller]
pub fn program(name: &str, link: Link) -> PathBuf {
    static COMPILED: Mutex<BTreeMap<(String, Link), PathBuf>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    compiled
        .entry((name.to_owned(), link))
        .or_insert_with(|| compile(name, link))
        .clone()
}

/// The program `NAME.c` of `tests/programs` linked to the `libcuda.so` in `driver`, which has names that others lack.
#[track_caller]
pub fn program_for(name: &str, link: Link, driver: &Path) -> PathBuf {
    let out = driver.join(format!("{name}-{link:?}").to_lowercase());
    build(name, link, driver, &out);
    out
}

#[track_caller]
fn compile(name: &str, link: Link) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    std::fs::create_dir_all(&directory).expect("a directory for programs can be made");
    let out = directory.join(format!("{name}-{link:?}").to_lowercase());
    let temporary = directory.join(format!(".{name}-{link:?}.{}", std::process::id()));
    build(name, link, &artefacts::stand_in(Profile::V13), &temporary);
    std::fs::rename(&temporary, &out).expect("a compiled program can be put in place");
    out
}

/// Runs the compiler.
#[track_caller]
fn build(name: &str, link: Link, driver: &Path, out: &Path) {
    let mut command = Command::new("gcc");
    command
        .args([
            "-std=gnu11",
            "-O1",
            "-g",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pthread",
            "-o",
        ])
        .arg(out);
    command.arg(root().join("tests/programs").join(name).with_extension("c"));
    command.arg("-L").arg(driver).args(link.arguments()).arg("-ldl");
    run(&mut command).success();
}
