//! Builds the shim, its twin and `stint` for glibc 2.17, with zig as linker, and refuses what would need more.
//!
//! A preloaded library that the loader cannot use is a line on every program's stderr, so what it needs is checked after
//! each build and not hoped for.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{inner, layout::Layout, python, steps::Steps};

/// Pinned: the linker driver and the toolchain it drives.
const TOOLS: [&str; 2] = ["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// The oldest glibc that runs what is built here.
const GLIBC: (u32, u32) = (2, 17);

/// All that a packed file may need: parts of glibc itself, empty names since 2.34.
const NEEDED: [&str; 5] = [
    "libc.so.6",
    "ld-linux-x86-64.so.2",
    "libpthread.so.0",
    "libdl.so.2",
    "libm.so.6",
];

/// Programs and libraries to be packed.
pub struct Built {
    pub stint: PathBuf,
    pub shim: PathBuf,
    pub nvml_twin: PathBuf,
}

impl Built {
    /// What `cargo xtask build` made.
    pub fn as_it_is(layout: &Layout) -> Built {
        let artefacts = layout.artefacts();
        Built {
            stint: artefacts.join("bin/stint"),
            shim: artefacts.join("lib/libstint.so"),
            nvml_twin: artefacts.join("lib/libstint-nvml.so"),
        }
    }
}

/// Builds all three in a target directory of their own, whose paths are not in the files.
pub fn build(steps: &mut Steps, layout: &Layout) -> Result<Built> {
    let program = match python::tools(steps, layout, "cargo-zigbuild", &TOOLS) {
        Ok(program) => program,
        Err(why) => bail!("zig, the linker for old systems: {why}"),
    };
    let bin = program.parent().context("a program lies in a directory")?;
    let target = layout.target.join("dist/cargo");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(bin.to_path_buf()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(path)?;
    // One call for the two that others load and one for the program: features unify over a call.
    let products: [&[&str]; 2] = [
        &["-p", "stint-shim", "-p", "stint-shim-nvml"],
        &["-p", "stint", "--bin", "stint"],
    ];
    for product in products {
        let mut command = inner::command(&program);
        command
            .current_dir(&layout.root)
            .args(["zigbuild", "--release", "--target"])
            .arg(format!("{TRIPLE}.{}.{}", GLIBC.0, GLIBC.1))
            .args(product)
            .env("PATH", &path)
            .env("CARGO_TARGET_DIR", &target)
            .env("XDG_CACHE_HOME", target.join("cache"))
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env("RUSTFLAGS", without_paths(layout)?);
        inner::run(&mut command)?;
    }
    let made = target.join(TRIPLE).join("release");
    let built = Built {
        stint: made.join("stint"),
        shim: made.join("libstint_shim.so"),
        nvml_twin: made.join("libstint_shim_nvml.so"),
    };
    for file in [&built.stint, &built.shim, &built.nvml_twin] {
        check(file)?;
    }
    Ok(built)
}

/// Where the sources lie on this machine is nobody's business, and would make two builds differ.
fn without_paths(layout: &Layout) -> Result<String> {
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(
        || std::env::home_dir().map(|home| home.join(".cargo")),
        |home| Some(PathBuf::from(home)),
    );
    let cargo_home = cargo_home.context("neither CARGO_HOME nor HOME is set")?;
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    Ok(format!(
        "{} {}",
        remap(&cargo_home, "/cargo"),
        remap(&layout.root, "/stint")
    ))
}

/// Fails unless `file` runs on the oldest glibc.
fn check(file: &Path) -> Result<()> {
    let needs = Needs::of(file)?;
    let foreign: Vec<_> = needs
        .libraries
        .iter()
        .filter(|name| !NEEDED.contains(&name.as_str()))
        .collect();
    ensure!(foreign.is_empty(), "{}: needs {foreign:?}", file.display());
    ensure!(
        needs.glibc.is_some_and(|newest| newest <= GLIBC),
        "{}: needs glibc {:?}, at most {GLIBC:?} is allowed",
        file.display(),
        needs.glibc
    );
    Ok(())
}

/// What a file needs of the system.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs {
    pub libraries: BTreeSet<String>,
    /// The newest symbol version of glibc.
    pub glibc: Option<(u32, u32)>,
}

impl Needs {
    /// As the file's dynamic section says.
    pub fn of(file: &Path) -> Result<Needs> {
        Ok(Needs::read(&inner::quiet(
            inner::command("objdump").arg("-p").arg(file),
        )?))
    }

    fn read(text: &str) -> Needs {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut needs = Needs::default();
        for line in text.lines().map(words) {
            match line.as_slice() {
                [key, name] if key == "NEEDED" => {
                    needs.libraries.insert(name.clone());
                }
                // "0x06969196 0x00 04 GLIBC_2.14", below "required from libc.so.6:"
                [_, _, _, version] => needs.glibc = needs.glibc.max(glibc(version)),
                _ => {}
            }
        }
        needs
    }
}

/// `GLIBC_2.14` or `GLIBC_2.2.5` as its first two numbers.
fn glibc(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix("GLIBC_")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_and_every_library_are_found() {
        let text = "Dynamic Section:\n  NEEDED               libc.so.6\n  NEEDED               libgcc_s.so.1\n\
                    \nVersion References:\n  required from libc.so.6:\n    0x06969194 0x00 05 GLIBC_2.14\n    \
                    0x09691a75 0x00 02 GLIBC_2.2.5\n    0x069691b4 0x00 03 GLIBC_2.34\n    0x0b792650 0x00 07 GCC_3.0\n";
        let needs = Needs::read(text);
        assert_eq!(needs.glibc, Some((2, 34)));
        assert_eq!(
            needs.libraries.into_iter().collect::<Vec<_>>(),
            ["libc.so.6", "libgcc_s.so.1"]
        );
    }
}
