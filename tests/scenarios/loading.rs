//! How programs come to load the driver, and who else is loaded: foreign preloads, older and newer drivers.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use super::*;
use crate::harness::{
    artefacts::{self, Profile},
    elf,
    node::Setup,
    outcome::run,
    programs::program_for,
    root,
};

/// `LD_PRELOAD` with `before`, the shim and its twin, `after`.
fn preload(before: &[PathBuf], after: &[PathBuf]) -> OsString {
    let ours = [artefacts::shim(), artefacts::nvml_twin()];
    std::env::join_paths(before.iter().chain(&ours).chain(after)).expect("paths without colons")
}

#[test]
fn foreign_interposers_before_and_after_ours_work_as_without_us() {
    let (plain, overriding) = (
        program("interposer", Link::Shared),
        program("overrider", Link::Shared),
    );
    let node = Node::start(Setup::cap("1GiB"));
    let user = program("interposed", Link::Nothing);
    let foreign = |preload: OsString| run(node.bare_command(&user).env("LD_PRELOAD", preload)).success();
    let join = |list: &[PathBuf]| std::env::join_paths(list).expect("paths without colons");
    for list in [
        vec![plain.clone()],
        vec![overriding.clone()],
        vec![plain, overriding], // the other order recurses for ever without us too
    ] {
        let alone = foreign(join(&list));
        assert!(
            alone.stdout.contains("foreign"),
            "the interposers do something: {alone:?}"
        );
        assert_eq!(foreign(preload(&list, &[])), alone, "{list:?} before ours");
        assert_eq!(foreign(preload(&[], &list)), alone, "{list:?} after ours");
        let (first, rest) = list.split_at(1);
        assert_eq!(foreign(preload(first, rest)), alone, "{list:?} around ours");
    }
}

#[test]
fn a_deeply_bound_plugin_is_capped_and_nothing_waits_for_ever() {
    let node = Node::start(Setup::cap("1GiB"));
    let plugin = program("plugin", Link::Shared);
    let outcome = run(node.capped_command(program("host", Link::Nothing)).arg(plugin)).success();
    assert_eq!(
        outcome.value("plugin"),
        "2",
        "the plugin's allocation beyond the cap is refused"
    );
    assert_eq!(
        outcome.value("launches"),
        "0",
        "the other thread's launches all succeed"
    );
}

/// A stand-in driver with exactly `names`, in a directory of its own. `beside` is one more C file in it.
#[track_caller]
pub(super) fn profile(directory: &Path, names: impl IntoIterator<Item = String>, beside: Option<&Path>) {
    std::fs::create_dir_all(directory).expect("a directory can be made");
    let list = directory.join("names.txt");
    std::fs::write(&list, names.into_iter().collect::<Vec<_>>().join("\n")).expect("a list can be written");
    let (list, out) = (
        list.display().to_string(),
        directory.join("libcuda.so.1").display().to_string(),
    );
    let beside = beside.map(|file| file.display().to_string());
    let mut words = vec![
        "link",
        "--soname",
        "libcuda.so.1",
        "--names",
        &list,
        "--out",
        &out,
    ];
    words.extend(beside.iter().flat_map(|file| ["--beside", file]));
    artefacts::xtask(&words);
    let link = directory.join("libcuda.so");
    if !link.exists() {
        std::os::unix::fs::symlink("libcuda.so.1", link).expect("a link can be made");
    }
}

/// A program is capped on `driver`, and finds by name what the driver has and nothing else.
#[track_caller]
fn works_on(node: &Node, label: &str, driver: &Path) {
    let mut command = node.capped_command(program("dynamic", Link::Nothing));
    let libraries =
        std::env::join_paths([driver.to_path_buf(), artefacts::runtimes()]).expect("paths without colons");
    let outcome = run(command.env("LD_LIBRARY_PATH", libraries)).success();
    assert_eq!(outcome.value("refused"), "2", "{label}: {}", outcome.stdout);
    let available = elf::exported_names(&driver.join("libcuda.so.1"));
    for line in outcome
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("symbol "))
    {
        let (name, found) = line.split_once(' ').expect("a name and whether it was found");
        assert_eq!(found == "1", available.contains(name), "{label}: {name} by dlsym");
    }
}

#[test]
fn drivers_of_other_ages_work_and_what_they_lack_stays_absent() {
    let node = Node::start(Setup::cap("1GiB"));
    let older = |name: &&str| {
        ![
            "Pool",
            "Async",
            "MemCreate",
            "MemMap",
            "MemAddress",
            "MemSetAccess",
            "Graph",
            "Library",
            "Kernel",
        ]
        .iter()
        .any(|word| name.contains(word))
            || *name == "cuLaunchKernel"
    };
    let all = || driver::table::SYMBOLS.iter();
    let synthetic = all()
        .filter(|symbol| symbol.version <= 11080)
        .map(|symbol| symbol.name)
        .filter(older)
        .map(str::to_owned);
    let directory = node.directory().join("450");
    profile(&directory, synthetic, None);
    works_on(&node, "450 (synthetic)", &directory);
    for version in [11080, 13000] {
        let directory = node.directory().join(version.to_string());
        profile(
            &directory,
            all()
                .filter(|symbol| symbol.version <= version)
                .map(|symbol| symbol.name.to_owned()),
            None,
        );
        works_on(&node, &version.to_string(), &directory);
    }
    for built in [Profile::V12_9, Profile::V13] {
        works_on(&node, built.name(), &artefacts::stand_in(built));
    }
}

#[test]
fn a_linked_program_runs_on_the_older_profile() {
    let node = Node::start(Setup::cap("1GiB").profile(Profile::V12_9));
    let mut session = client(&node);
    assert_eq!(session.error(&format!("alloc {}", 2048 * MIB)), OUT_OF_MEMORY);
}

#[test]
fn a_function_newer_than_the_table_works_through_the_driver_that_has_it() {
    let node = Node::start(Setup::cap("1GiB"));
    // A tree of its own, whose driver has one name more; the launcher finds it beside itself.
    let tree = node.directory().join("tree");
    run(Command::new("cp")
        .arg("-al")
        .arg(artefacts::directory())
        .arg(&tree))
    .success();
    let lib = tree.join("sim/13/lib");
    let names = driver::table::SYMBOLS
        .iter()
        .map(|symbol| symbol.name)
        .chain(["cuBrandNew"])
        .map(str::to_owned);
    profile(&lib, names, Some(&root().join("tests/programs/newer_driver.c")));
    for link in [Link::Cuda, Link::CudaLazy] {
        let newer = program_for("newer", link, &lib);
        let mut command = Command::new(tree.join("bin/stint"));
        command
            .args(["run", "--memory", "1GiB", "--"])
            .arg(newer)
            .env("STINT_RUN_DIR", node.directory());
        let outcome = run(command.env_remove("LD_PRELOAD").env_remove("LD_LIBRARY_PATH")).success();
        assert_eq!(outcome.value("refused"), "2", "{link:?}");
        assert_eq!(outcome.value("new"), "0 42", "{link:?}");
        assert_eq!(outcome.value("looked_up"), "0", "{link:?}");
        assert_eq!(outcome.value("unknown"), "500 0 1", "{link:?}");
        assert_eq!(
            (outcome.value("absent"), outcome.value("dlerror")),
            ("0", "libc's"),
            "{link:?}"
        );
    }
}
