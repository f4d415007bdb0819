//! The header oracle: every row of the driver table against what NVIDIA's headers of four CUDA releases declare.
//!
//! The shim and the stand-in expand the same table, so an error in it would cancel out between them. Here a C compiler
//! is the judge: for each release one file is generated in which a static assertion per declared function compares its
//! type with the row's, whose C text derives from the Rust types. `release` does that for one release; this file says
//! what must hold over all of them.

mod release;

use std::collections::{BTreeMap, BTreeSet};

use driver::table::{ROWS, SYMBOLS};

use crate::harness::skip::skip;
use release::{Release, Seen};

/// The pinned wheels that hold the headers.
const RELEASES: [Release; 4] = [
    Release {
        requirement: "nvidia-cuda-runtime-cu11==11.8.89",
        include: "nvidia/cuda_runtime/include",
    },
    Release {
        requirement: "nvidia-cuda-runtime-cu12==12.9.79",
        include: "nvidia/cuda_runtime/include",
    },
    Release {
        requirement: "nvidia-cuda-runtime==13.0.88",
        include: "nvidia/cu13/include",
    },
    Release {
        requirement: "nvidia-cuda-runtime==13.5.37",
        include: "nvidia/cu13/include",
    },
];

/// Symbols whose prototype no header declares, each with its reason.
const UNDECLARED: &[(&str, &str)] = &[
    (
        "cuGetProcAddress_v2_ptsz",
        "libcuda exports it and PyTorch's loader looks it up; the prototype is its twin's",
    ),
    (
        "cuWGLGetDevice",
        "declared for Windows only; cuda-bindings look it up everywhere",
    ),
];

/// Symbols whose version no `PFN_` typedef states, each with its reason.
const UNVERSIONED: &[(&str, &str)] = UNDECLARED;

/// What all releases that could be fetched declare; `None` (and a line) when one could not.
fn everything(test: &str) -> Option<Vec<Seen>> {
    let mut seen = Vec::new();
    for release in &RELEASES {
        match release.judge() {
            Ok(judged) => seen.push(judged),
            Err(why) => {
                skip(&format!("{test} ({})", release.requirement), &why);
                return None;
            }
        }
    }
    Some(seen)
}

#[test]
fn every_row_has_the_prototype_that_the_headers_declare() {
    let Some(seen) = everything("header oracle") else {
        return;
    };
    let wrong: Vec<&str> = seen
        .iter()
        .flat_map(|seen| seen.wrong.iter().map(String::as_str))
        .collect();
    assert!(
        wrong.is_empty(),
        "rows that differ from a header:\n{}",
        wrong.join("\n")
    );

    let declared: BTreeSet<&str> = seen
        .iter()
        .flat_map(|seen| seen.declared.iter().map(String::as_str))
        .collect();
    let listed: BTreeMap<&str, &str> = UNDECLARED.iter().copied().collect();
    let missing: Vec<&str> = SYMBOLS
        .iter()
        .map(|symbol| symbol.name)
        .filter(|name| !declared.contains(name) && !listed.contains_key(name))
        .collect();
    assert!(
        missing.is_empty(),
        "symbols that no header declares (give a reason in UNDECLARED): {missing:?}"
    );
    let needless: Vec<&&str> = listed.keys().filter(|name| declared.contains(*name)).collect();
    assert!(
        needless.is_empty(),
        "declared after all, take them out of UNDECLARED: {needless:?}"
    );
}

#[test]
fn every_version_of_a_symbol_is_one_that_the_typedefs_state() {
    let Some(seen) = everything("versions of symbols") else {
        return;
    };
    let stated: BTreeSet<&str> = seen
        .iter()
        .flat_map(|seen| seen.typedefs.iter().map(String::as_str))
        .collect();
    let listed: BTreeSet<&str> = UNVERSIONED.iter().map(|(name, _)| *name).collect();
    let missing: Vec<String> = SYMBOLS
        .iter()
        .filter(|symbol| {
            !listed.contains(symbol.name)
                && !release::typedefs_of(symbol).any(|name| stated.contains(name.as_str()))
        })
        .map(|symbol| format!("{} since {}", symbol.name, symbol.version))
        .collect();
    assert!(
        missing.is_empty(),
        "no header has a typedef for (give a reason in UNVERSIONED): {missing:#?}"
    );
}

#[test]
fn every_function_of_the_headers_has_a_row() {
    let Some(seen) = everything("functions of the headers") else {
        return;
    };
    let known: BTreeSet<&str> = SYMBOLS.iter().map(|symbol| symbol.name).collect();
    let unknown: BTreeSet<&str> = seen
        .iter()
        .flat_map(|seen| seen.functions.iter().map(String::as_str))
        .filter(|name| !known.contains(name))
        .collect();
    assert!(
        unknown.is_empty(),
        "declared by a header, without a row in driver/src/table.rs: {unknown:?}"
    );
}

/// The judge must be able to say no.
#[test]
fn a_wrong_row_is_named() {
    let Some(row) = ROWS.iter().find(|row| row.name == "cuMemAlloc_v2") else {
        panic!("the table has no cuMemAlloc_v2")
    };
    assert_eq!(row.c_arguments(), "CUdeviceptr *, size_t");
    match RELEASES[1].verdict_on("cuMemAlloc_v2", "CUdeviceptr *, unsigned int") {
        Ok(wrong) => assert!(
            wrong.iter().any(|line| line.contains("cuMemAlloc_v2")),
            "{wrong:?}"
        ),
        Err(why) => skip("header oracle's own test", &why),
    }
}

#[test]
fn the_older_profile_exports_what_its_release_declares() {
    let profile: BTreeSet<&str> = include_str!("../../simgpu/symbols/cuda-12.9.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let seen = match RELEASES[1].judge() {
        Ok(seen) => seen,
        Err(why) => return skip("names of the 12.9 profile", &why),
    };
    let typed = |symbol: &driver::table::Symbol| {
        release::typedefs_of(symbol).any(|name| seen.typedefs.contains(&name))
    };
    let undeclared = |name: &str| UNDECLARED.iter().any(|(listed, _)| *listed == name);
    let expected: BTreeSet<&str> = SYMBOLS
        .iter()
        .filter(|symbol| seen.functions.contains(symbol.name) || typed(symbol) || undeclared(symbol.name))
        .map(|symbol| symbol.name)
        .collect();
    let (missing, extra): (Vec<_>, Vec<_>) = (
        expected.difference(&profile).collect(),
        profile.difference(&expected).collect(),
    );
    assert!(
        missing.is_empty() && extra.is_empty(),
        "simgpu/symbols/cuda-12.9.txt lacks {missing:?}, has too much: {extra:?}"
    );
}
