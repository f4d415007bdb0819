//! What `cargo xtask dist` makes can be made again, and runs on old systems.

use std::{path::Path, process::Command, time::Duration};

use super::*;
use crate::harness::{elf, long, outcome::run};

/// The newest symbol version of glibc that a release may need.
const GLIBC: [u32; 2] = [2, 17];

#[test]
fn the_same_files_give_the_same_packages() {
    // Neither who packs, nor when, nor under which umask is part of a package.
    let packed = || {
        let names = ["stint", "stint-sim"].map(|name| format!("{name}_3.0_amd64.deb"));
        names.map(|name| fs::read(target().join("dist/as-built").join(name)).expect("a package can be read"))
    };
    make("3.0");
    let first = packed();
    let mut again = Command::new("sh");
    again.args(["-c", "umask 077 && exec \"$@\"", "sh", env!("CARGO")]);
    again.args(["xtask", "dist", "--as-built", "--version", "3.0"]);
    run(again
        .current_dir(root())
        .env("CARGO_TARGET_DIR", target())
        .env("TZ", "Asia/Tokyo"))
    .success();
    assert!(packed() == first, "two packages of the same files differ");
}

/// The long form alone builds a release: minutes.
#[test]
fn a_release_runs_on_any_glibc_since_2_17() {
    if !long() {
        return;
    }
    let Some(base) = rootfs::base("the release's packages") else {
        return;
    };
    dist();
    let out = target().join("dist/release");
    let sums = fs::read_to_string(out.join("SHA256SUMS")).expect("checksums");
    dist();
    assert_eq!(
        fs::read_to_string(out.join("SHA256SUMS")).ok().as_deref(),
        Some(sums.as_str()),
        "made again, it is the same"
    );
    run(Command::new("sha256sum")
        .args(["--check", "SHA256SUMS"])
        .current_dir(&out))
    .success();

    let system = Overlay::new(base);
    system.bind(&out, PACKAGES);
    system.bind(&program("steps", Link::Cuda), STEPS);
    system
        .sh(&format!("dpkg -i {}", paths(env!("CARGO_PKG_VERSION"))))
        .success();
    let library = |name: &str| format!("/usr/lib/stint/lib/{name}-{}.so", env!("CARGO_PKG_VERSION"));
    for file in [
        "/usr/lib/stint/bin/stint".into(),
        library("libstint"),
        library("libstint-nvml"),
    ] {
        let (newest, dynamic) = (
            newest_glibc(&system.file(&file)),
            elf::dynamic(&system.file(&file)),
        );
        assert!(
            newest.is_some_and(|newest| newest <= GLIBC),
            "{file} needs glibc {newest:?}"
        );
        assert!(!dynamic.contains("libgcc_s"), "{file}: {dynamic}");
    }
    // No service manager starts the daemon here, for which the package made this place.
    system.sh("rm -r /run/stint").success();
    let mut capped = system.command("stint");
    capped.args(["run", "--driver", "sim", "--memory", "1GiB", "--", STEPS]);
    let mut session = begin(Session::start(&mut capped));
    assert_eq!(session.error(&format!("alloc {}", 1 << 30)), OUT_OF_MEMORY);
    assert_eq!(session.error(&format!("alloc {}", 1 << 29)), 0);
    // The archive runs where it is unpacked.
    let archive = format!("stint-{}-x86_64-linux", env!("CARGO_PKG_VERSION"));
    let demo =
        format!("tar -C /opt -xf {PACKAGES}/{archive}.tar.gz && /opt/{archive}/bin/stint demo --seconds 1");
    system.sh(&demo).success();
}

/// `cargo xtask dist`, which compiles everything once more.
#[track_caller]
fn dist() {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["xtask", "dist"])
        .current_dir(root())
        .env("CARGO_TARGET_DIR", target());
    outcome::start(&mut command)
        .finish_within("cargo xtask dist", Duration::from_secs(3600))
        .success();
}

/// The newest symbol version of glibc among the imports of `file`, its first two numbers.
fn newest_glibc(file: &Path) -> Option<[u32; 2]> {
    let numbers = |import: &elf::Export| {
        let mut numbers = import
            .version
            .as_deref()?
            .strip_prefix("GLIBC_")?
            .split('.')
            .map(str::parse);
        Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
    };
    elf::imports(file).iter().filter_map(numbers).max()
}
