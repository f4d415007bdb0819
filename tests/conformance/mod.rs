//! What any CUDA driver must do, asked by one program (`tests/programs/conformance.c`) of the stand-in, of the shim above it
//! and, where there is a GPU, of NVIDIA's driver with and without the shim. By hand: `gcc -o conformance
//! tests/programs/conformance.c && ./conformance libcuda.so.1`. What differs on a device goes to `docs/simgpu-fidelity.md`.

use std::process::Command;

use serde_json::Value;

use crate::harness::{
    artefacts::{self, Profile},
    node::{Node, Setup},
    outcome::run,
    programs::{Link, program},
};

/// The name by which programs know the driver.
const DRIVER: &str = "libcuda.so.1";

/// One line of the program.
#[derive(Debug, PartialEq)]
struct Check {
    name: String,
    ok: bool,
    value: i64,
}

/// The program's list, of a run that must at least come to its end.
#[track_caller]
fn list(command: &mut Command) -> Vec<Check> {
    let outcome = run(command);
    let line = |line: &str| {
        let check: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        Check {
            name: check["check"].as_str().expect("a name").to_owned(),
            ok: check["ok"].as_bool().expect("yes or no"),
            value: check["value"].as_i64().unwrap_or(-1),
        }
    };
    let list: Vec<_> = outcome.stdout.lines().map(line).collect();
    assert!(!list.is_empty(), "{outcome:?}");
    list
}

/// Both parts of the program for a driver.
#[track_caller]
fn lists(command: impl Fn() -> Command, driver: &str) -> Vec<Check> {
    let mut all = list(command().arg(driver));
    all.extend(list(command().args([driver, "breaking"])));
    all
}

#[track_caller]
fn all_hold(list: &[Check], least: usize) {
    let broken: Vec<_> = list.iter().filter(|check| !check.ok).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(list.len() >= least, "only {} checks", list.len());
}

/// What the node's server says of the host while the test ran.
fn noise(node: &Node) -> String {
    let truth = node.truth();
    format!(
        "late stamps {}, waits told late by {}",
        truth["late_stamps"], truth["sync_late"]
    )
}

#[test]
fn the_stand_in_conforms_and_the_shim_changes_nothing() {
    let user = program("conformance", Link::Nothing);
    for profile in [Profile::V13, Profile::V12_9] {
        let node = Node::start(Setup::cap("8GiB").profile(profile).option("--costs", "off"));
        let bare = lists(|| node.bare_command(&user), DRIVER);
        println!("{profile:?}: {}", noise(&node));
        all_hold(&bare, 100);
        let preloaded = lists(|| node.capped_command(&user), DRIVER);
        assert_eq!(preloaded, bare, "the shim, preloaded");
        let shim = artefacts::shim().display().to_string();
        let opened = lists(|| node.bare_command(&user), &shim);
        assert_eq!(opened, bare, "the shim, opened by its path");
    }
}

#[test]
fn a_real_driver_conforms_and_the_shim_changes_nothing() {
    if !std::path::Path::new("/dev/nvidiactl").exists() {
        println!("no NVIDIA device here");
        return;
    }
    let user = program("conformance", Link::Nothing);
    let node = Node::unstarted(Setup::default());
    let real = lists(|| Command::new(&user), DRIVER);
    let shimmed = || {
        let mut command = node.stint(&["run", "--driver", "nvidia", "--memory", "8GiB", "--"]);
        command.arg(&user);
        command
    };
    assert_eq!(lists(shimmed, DRIVER), real, "the shim");
    // Where a real driver does not do what the list says, the list is wrong, and so is the stand-in.
    all_hold(&real, 100);
}
