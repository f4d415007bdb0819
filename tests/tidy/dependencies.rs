//! Which package may depend on which, and what may be linked into the shim.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

use crate::harness::{outcome::run, root};

/// package → our packages it may use. Nobody uses the root, the shim or the stand-in.
const ARROWS: [(&str, &[&str]); 8] = [
    ("stint-driver", &[]),
    ("stint-ledger", &[]),
    ("stint-cgroup", &[]),
    ("stint-shim", &["stint-driver", "stint-ledger"]),
    ("stint-shim-nvml", &["stint-driver", "stint-ledger"]),
    ("simgpu", &["stint-driver"]),
    ("stint", &["stint-cgroup", "stint-driver", "stint-ledger"]),
    ("xtask", &["stint-driver"]),
];

/// All that may be linked into a program of a tenant, each with its reason.
const IN_THE_SHIM: [(&str, &str); 6] = [
    ("stint-driver", "the table"),
    ("stint-ledger", "the shared record"),
    ("libc", "the system's own types"),
    (
        "rustix",
        "the ledger's mapping: memfds and descriptors over a socket without unsafe code",
    ),
    ("linux-raw-sys", "rustix's constants"),
    ("bitflags", "rustix's flags"),
];

/// What Cargo resolved for this platform.
fn metadata() -> Value {
    let mut command = Command::new(env!("CARGO"));
    command
        .args([
            "metadata",
            "--format-version",
            "1",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .current_dir(root());
    serde_json::from_str(&run(&mut command).success().stdout).expect("cargo metadata prints JSON")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

/// package id → name.
fn names(metadata: &Value) -> BTreeMap<&str, &str> {
    list(metadata, "packages")
        .map(|package| (text(package, "id"), text(package, "name")))
        .collect()
}

/// package id → ids it links (dev- and build-dependencies are not linked).
fn links(metadata: &Value) -> BTreeMap<&str, Vec<&str>> {
    let linked = |dependency: &&Value| list(dependency, "dep_kinds").any(|kind| kind["kind"].is_null());
    list(&metadata["resolve"], "nodes")
        .map(|node| {
            (
                text(node, "id"),
                list(node, "deps")
                    .filter(linked)
                    .map(|dependency| text(dependency, "pkg"))
                    .collect(),
            )
        })
        .collect()
}

#[test]
fn packages_depend_on_each_other_in_one_direction() {
    let metadata = metadata();
    let (names, links) = (names(&metadata), links(&metadata));
    let allowed: BTreeMap<&str, BTreeSet<&str>> = ARROWS
        .iter()
        .map(|(from, to)| (*from, to.iter().copied().collect()))
        .collect();
    let mut wrong = Vec::new();
    for member in list(&metadata, "workspace_members").filter_map(Value::as_str) {
        let name = names[member];
        let Some(allowed_here) = allowed.get(name) else {
            wrong.push(format!("{name} has no line in ARROWS"));
            continue;
        };
        let ours = links[member]
            .iter()
            .map(|id| names[id])
            .filter(|name| allowed.contains_key(name));
        wrong.extend(
            ours.filter(|to| !allowed_here.contains(to))
                .map(|to| format!("{name} must not depend on {to}")),
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The crates that `package` links, with the features it has when it is built alone.
fn linked_into(package: &str) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "tree",
        "-p",
        package,
        "-e",
        "normal",
        "--target",
        "x86_64-unknown-linux-gnu",
        "--prefix",
        "none",
    ]);
    let tree = run(command.current_dir(root())).success().stdout;
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != package).map(str::to_owned).collect()
}

#[test]
fn only_listed_crates_are_linked_into_a_tenants_program() {
    let allowed: BTreeSet<&str> = IN_THE_SHIM.iter().map(|(name, _)| *name).collect();
    for shim in ["stint-shim", "stint-shim-nvml"] {
        let extra: Vec<String> = linked_into(shim)
            .into_iter()
            .filter(|name| !allowed.contains(name.as_str()))
            .collect();
        assert!(
            extra.is_empty(),
            "{shim} links {extra:?}: leave them out, or list them in IN_THE_SHIM with a reason"
        );
    }
}
