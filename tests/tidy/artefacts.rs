//! The linked files say about themselves what they must: exports, SONAME, what they need from the system.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use driver::table::SYMBOLS;

use crate::harness::{
    artefacts::{self, Profile},
    elf, root,
};

/// The newest glibc that a build against the system's may need (the compiler's unwinder asks it for the object of an address).
const GLIBC: (u32, u32) = (2, 35);

/// Relocations of each preloaded file: the dynamic loader makes them at the start of every program, and each page they touch
/// becomes a copy of the program's own. A table with addresses in it (`driver/src/names.rs` says how to do without) has one
/// per address.
const RELOCATIONS: usize = 1280;

/// What may be loaded into a tenant's program besides.
const NEEDED: [&str; 4] = ["libc.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "libm.so.6"];

fn table() -> BTreeSet<String> {
    SYMBOLS.iter().map(|symbol| symbol.name.to_owned()).collect()
}

fn names(list: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("simgpu/symbols").join(list))
        .expect("a list of names can be read");
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

#[track_caller]
fn same(file: &Path, expected: &BTreeSet<String>) {
    let found = elf::exported_names(file);
    let (missing, extra): (Vec<_>, Vec<_>) = (
        expected.difference(&found).collect(),
        found.difference(expected).collect(),
    );
    assert!(
        missing.is_empty() && extra.is_empty(),
        "{}: not exported {missing:?}; exported beyond {extra:?}",
        file.display()
    );
}

#[track_caller]
fn soname(file: &Path, name: &str) {
    assert!(
        elf::dynamic(file).contains(&format!("soname: [{name}]")),
        "{} is not {name}",
        file.display()
    );
}

#[test]
fn the_shim_exports_the_table_and_the_two_lookups() {
    let mut expected = table();
    expected.extend(["dlsym".to_owned(), "dlvsym".to_owned()]);
    same(&artefacts::shim(), &expected);
    soname(&artefacts::shim(), "libcuda.so.1");
}

#[test]
fn the_twin_exports_nvml_and_nothing_else() {
    let found = elf::exported_names(&artefacts::nvml_twin());
    assert!(
        found.contains("nvmlDeviceGetMemoryInfo")
            && found.contains("nvmlDeviceGetComputeRunningProcesses_v3"),
        "{found:?}"
    );
    let foreign: Vec<_> = found.iter().filter(|name| !name.starts_with("nvml")).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    soname(&artefacts::nvml_twin(), "libnvidia-ml.so.1");
}

#[test]
fn preloaded_files_need_little_of_the_system() {
    for file in [artefacts::shim(), artefacts::nvml_twin()] {
        let dynamic = elf::dynamic(&file);
        assert!(
            dynamic.contains("NODELETE"),
            "{} can be unloaded while a thread is in it",
            file.display()
        );
        assert!(
            !dynamic.contains("TEXTREL"),
            "{} has text relocations",
            file.display()
        );
        let needed = dynamic
            .lines()
            .filter(|line| line.contains("(NEEDED)"))
            .filter_map(|line| line.split(['[', ']']).nth(1));
        let extra: Vec<&str> = needed.filter(|name| !NEEDED.contains(name)).collect();
        assert!(
            extra.is_empty(),
            "{} pulls {extra:?} into every program",
            file.display()
        );

        let imports = elf::imports(&file);
        let newest = imports
            .iter()
            .filter_map(|import| glibc(import.version.as_deref()?))
            .max();
        assert!(
            newest.is_some_and(|version| version <= GLIBC),
            "{} needs glibc {newest:?}",
            file.display()
        );
        let hard: Vec<&str> = imports
            .iter()
            .map(|import| import.name.as_str())
            .filter(|name| table().contains(*name) || name.starts_with("nvml"))
            .collect();
        assert!(
            hard.is_empty(),
            "{} needs a driver to be loaded at all: {hard:?}",
            file.display()
        );
    }
}

#[test]
fn preloaded_files_leave_the_loader_little_to_do() {
    for file in [artefacts::shim(), artefacts::nvml_twin()] {
        let relocations = elf::relocations(&file);
        assert!(
            relocations.len() <= RELOCATIONS,
            "{}: {} relocations",
            file.display(),
            relocations.len()
        );
        let own: Vec<&String> = relocations
            .iter()
            .filter(|name| table().contains(*name) || name.starts_with("nvml"))
            .collect();
        assert!(
            own.is_empty(),
            "{} has its own functions looked up: {own:?}",
            file.display()
        );
    }
}

#[test]
fn each_profile_of_the_stand_in_exports_its_own_names() {
    for (profile, expected) in [(Profile::V13, table()), (Profile::V12_9, names("cuda-12.9.txt"))] {
        let file = artefacts::stand_in(profile).join("libcuda.so.1");
        same(&file, &expected);
        soname(&file, "libcuda.so.1");
        assert_eq!(
            std::fs::read_link(artefacts::stand_in(profile).join("libcuda.so")).ok(),
            Some(PathBuf::from("libcuda.so.1"))
        );
        soname(
            &artefacts::stand_in(profile).join("libnvidia-ml.so.1"),
            "libnvidia-ml.so.1",
        );
    }
}

#[test]
fn each_runtime_exports_its_names_under_its_version() {
    for version in ["12", "13"] {
        let name = format!("libcudart.so.{version}");
        let file = artefacts::runtimes().join(&name);
        soname(&file, &name);
        same(&file, &names(&format!("cudart-{version}.txt")));
        let unversioned: Vec<_> = elf::exports(&file)
            .into_iter()
            .filter(|export| export.version.as_deref() != Some(name.as_str()))
            .collect();
        assert!(unversioned.is_empty(), "{unversioned:?}");
    }
}

#[test]
fn the_stand_in_has_every_runtime_function_that_pytorch_imports() {
    let wanted = include_str!("../lists/torch-runtime-names.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let found = elf::exported_names(&artefacts::runtimes().join("libcudart.so.13"));
    let missing: Vec<&str> = wanted.filter(|name| !found.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// `GLIBC_2.34` as (2, 34).
fn glibc(version: &str) -> Option<(u32, u32)> {
    let (major, rest) = version.strip_prefix("GLIBC_")?.split_once('.')?;
    Some((major.parse().ok()?, rest.split('.').next()?.parse().ok()?))
}
