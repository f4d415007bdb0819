//! Form of the source files: a head that leads on, a size that can be read, names that say something, no machine's paths.

use std::{fs, path::Path};

use super::{files, files_with, shown};

/// Longest file, in lines that are neither empty nor comment.
const LONGEST: usize = 400;

/// Longer ones, each with its reason.
const LONGER: &[(&str, &str)] = &[
    ("driver/src/table.rs", "one line per driver function"),
    ("driver/src/nvml_table.rs", "one line per NVML function"),
];

/// Names that say nothing.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "common", "helper", "helpers", "manager", "types"];

/// Files of the root package that may lift `deny(unsafe_code)`, each with its reason.
const UNSAFE_ALLOWED: &[(&str, &str)] = &[
    (
        "src/admission/namespace.rs",
        "asks who made a user namespace: two ioctls that no crate wraps",
    ),
    (
        "src/daemon/notify.rs",
        "takes over descriptors that systemd passed by number",
    ),
    (
        "src/load/cuda.rs",
        "calls the driver by addresses that libloading found",
    ),
    (
        "src/device/mod.rs",
        "for its part context.rs, which calls the driver by addresses that libloading found",
    ),
];

/// Places where a test may sleep: where it waits for a condition that nothing announces.
const POLLING: &[&str] = &["tests/harness/wait.rs"];

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", shown(path)))
}

#[track_caller]
fn none(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

#[test]
fn every_source_file_begins_by_saying_what_it_is() {
    let silent = files_with("rs")
        .iter()
        .filter(|path| !read(path).starts_with("//!"))
        .map(|path| shown(path))
        .collect();
    none("no `//!` head in", silent);
}

#[test]
fn no_source_file_is_too_long_to_read() {
    let too_long = |path: &Path| {
        let text = read(path);
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .count();
        let listed = LONGER.iter().any(|(name, _)| *name == shown(path));
        (lines > LONGEST && !listed).then(|| format!("{}: {lines} lines of code", shown(path)))
    };
    none(
        "split these, or list them in LONGER with a reason",
        files_with("rs")
            .iter()
            .filter_map(|path| too_long(path))
            .collect(),
    );
}

#[test]
fn file_names_say_what_is_inside() {
    let empty = |path: &Path| {
        path.file_stem()
            .is_some_and(|stem| EMPTY_NAMES.contains(&&*stem.to_string_lossy()))
    };
    none(
        "names that say nothing",
        files()
            .iter()
            .filter(|path| empty(path))
            .map(|path| shown(path))
            .collect(),
    );
}

#[test]
fn no_file_names_a_place_of_one_machine() {
    // In two parts each, so that this file does not name them either.
    let places: Vec<String> = ["work", "root", "home"]
        .iter()
        .map(|name| format!("/{name}/"))
        .collect();
    let hosts: Vec<String> = [("crates", "io"), ("pypi", "org"), ("deb.debian", "org")]
        .map(|(name, domain)| format!("{name}.{domain}"))
        .to_vec();
    let mut found = Vec::new();
    for path in files().iter().filter(|path| !path.ends_with("Cargo.lock")) {
        let Ok(text) = fs::read_to_string(path) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            if places
                .iter()
                .chain(&hosts)
                .any(|place| line.contains(place.as_str()))
            {
                found.push(format!("{}:{}: {}", shown(path), number + 1, line.trim()));
            }
        }
    }
    none("paths or hosts of one machine", found);
}

#[test]
fn the_root_package_is_safe_but_for_listed_files() {
    for crate_root in ["src/lib.rs", "src/main.rs"] {
        let text = read(&crate::harness::root().join(crate_root));
        let strict = text.contains("#![deny(unsafe_code)]") || text.contains("#![forbid(unsafe_code)]");
        assert!(strict, "{crate_root} does not deny unsafe code");
    }
    let in_src = |path: &&std::path::PathBuf| shown(path).starts_with("src/");
    let lifts = |path: &&std::path::PathBuf| read(path).contains("allow(unsafe_code");
    let found: Vec<String> = files_with("rs")
        .iter()
        .filter(in_src)
        .filter(lifts)
        .map(|path| shown(path))
        .collect();
    let unlisted = found
        .iter()
        .filter(|path| !UNSAFE_ALLOWED.iter().any(|(listed, _)| listed == path))
        .cloned()
        .collect();
    none("allow unsafe code without a line in UNSAFE_ALLOWED", unlisted);
    let needless = UNSAFE_ALLOWED
        .iter()
        .filter(|(listed, _)| !found.iter().any(|path| path == listed))
        .map(|(listed, _)| (*listed).to_owned())
        .collect();
    none("listed in UNSAFE_ALLOWED without need", needless);
}

#[test]
fn mechanisms_do_not_know_the_stand_ins_kernels() {
    let name = ["sim", "spin"].join("_");
    let mechanism = |path: &str| {
        ["shim/", "ledger/", "driver/"]
            .iter()
            .any(|part| path.starts_with(part))
    };
    // The verbs that submit work name kernels of the stand-in; nothing that measures or limits work may.
    let submits = |path: &str| {
        ["src/load", "src/demo", "src/sim"]
            .iter()
            .any(|part| path.starts_with(part))
    };
    let judged = |path: &str| mechanism(path) || (path.starts_with("src/") && !submits(path));
    none(
        "know a kernel of the stand-in",
        files_with("rs")
            .iter()
            .filter(|path| judged(&shown(path)) && read(path).contains(&name))
            .map(|path| shown(path))
            .collect(),
    );
}

#[test]
fn tests_wait_for_conditions_and_do_not_sleep() {
    let sleep = ["thread", "sleep"].join("::");
    let in_tests = |path: &str| path.starts_with("tests/") && !POLLING.contains(&path);
    none(
        "sleep",
        files_with("rs")
            .iter()
            .filter(|path| in_tests(&shown(path)) && read(path).contains(&sleep))
            .map(|path| shown(path))
            .collect(),
    );
}

#[test]
fn nothing_is_left_to_be_done() {
    let markers: Vec<String> = [
        ("TO", "DO"),
        ("FIX", "ME"),
        ("to", "do!("),
        ("unimple", "mented!("),
        ("#[ign", "ore"),
    ]
    .map(|(a, b)| format!("{a}{b}"))
    .to_vec();
    let marked = |path: &Path| {
        let text = read(path);
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| markers.iter().any(|marker| line.contains(marker.as_str())));
        lines
            .map(|(number, line)| format!("{}:{}: {}", shown(path), number + 1, line.trim()))
            .collect::<Vec<_>>()
    };
    none(
        "unfinished",
        files_with("rs").iter().flat_map(|path| marked(path)).collect(),
    );
}

#[test]
fn upstream_crates_export_nothing() {
    // A `no_mangle` function of an rlib is exported by every cdylib above it.
    let upstream = |path: &str| path.starts_with("driver/") || path.starts_with("ledger/");
    none(
        "export symbols",
        files_with("rs")
            .iter()
            .filter(|path| upstream(&shown(path)) && read(path).contains("unsafe(no_mangle)"))
            .map(|path| shown(path))
            .collect(),
    );
}
