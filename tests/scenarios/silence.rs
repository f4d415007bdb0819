//! The shim is silent and side-effect free: what a process is looks the same with and without it.

use std::{collections::BTreeSet, fmt::Write, process::Stdio};

use super::*;
use crate::harness::{
    artefacts,
    node::Setup,
    outcome::{Outcome, run},
};

/// All variables that libstint.so may read; none of them can loosen a cap.
const VARIABLES: [&str; 3] = ["STINT_RUN_DIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"];

#[test]
fn a_process_looks_the_same_from_inside() {
    let node = Node::start(Setup::cap("1GiB"));
    let bare = run(&mut node.bare_command(program("footprint", Link::Cuda))).success();
    let capped = run(&mut node.capped_command(program("footprint", Link::Cuda))).success();
    // The environment differs by the preload itself, which is in the count and not in the hash.
    let uncounted = |outcome: &Outcome| {
        outcome
            .stdout
            .replace(char::is_whitespace, " ")
            .split("environment ")
            .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(uncounted(&bare), uncounted(&capped));
    assert_eq!(bare.stderr, capped.stderr);
}

#[test]
fn the_shim_reads_three_variables_and_no_other() {
    let node = Node::start(Setup::cap("1GiB"));
    let mut command = node.capped_command(program("locations", Link::Cuda));
    let preload = [
        program("watcher", Link::Shared),
        artefacts::shim(),
        artefacts::nvml_twin(),
    ];
    let outcome = run(command.env(
        "LD_PRELOAD",
        std::env::join_paths(preload).expect("paths without colons"),
    ))
    .success();
    let read: BTreeSet<&str> = outcome
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("read "))
        .collect();
    assert!(
        read.contains("STINT_RUN_DIR"),
        "the watcher sees what is read: {outcome:?}"
    );
    let others: Vec<_> = read.iter().filter(|name| !VARIABLES.contains(name)).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// Every hooked function with each of its pointers NULL in turn, and with none.
fn questions() -> String {
    let mut text = String::new();
    for row in driver::table::ROWS.iter().filter(|row| row.handler != "forward") {
        // A structure by value does not fit into the registers that the program fills.
        if row.arguments.len() > 12
            || row
                .arguments
                .iter()
                .any(|(_, kind)| ["CUipcMemHandle", "CUipcEventHandle", "f32", "CUuuid"].contains(kind))
        {
            continue;
        }
        let is_pointer = |kind: &str| kind.starts_with('*');
        let pointers = row
            .arguments
            .iter()
            .enumerate()
            .filter(|(_, (_, kind))| is_pointer(kind))
            .fold(0u32, |mask, (i, _)| mask | 1 << i);
        let nulls = (0..row.arguments.len())
            .map(|i| 1u32 << i)
            .filter(|bit| pointers & bit != 0)
            .chain([0]);
        for null in nulls {
            writeln!(text, "{} {} {pointers} {null}", row.name, row.arguments.len())
                .expect("a string can be written to");
        }
    }
    text
}

#[test]
fn hooked_calls_answer_null_pointers_as_the_driver_does() {
    let node = Node::start(Setup::cap("64GiB").option("--timing", "null"));
    let list = node.directory().join("questions.txt");
    let questions = questions();
    std::fs::write(&list, &questions).expect("a list can be written");
    assert!(questions.lines().count() > 50, "the table has hooks");
    let ask = |mut command: std::process::Command| {
        let file = std::fs::File::open(&list).expect("the list can be read");
        let child = command
            .stdin(file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .output()
            .expect("the program can be run");
        String::from_utf8_lossy(&child.stdout).into_owned()
    };
    let bare = ask(node.bare_command(program("nulls", Link::Cuda)));
    let capped = ask(node.capped_command(program("nulls", Link::Cuda)));
    let differs: Vec<_> = bare
        .lines()
        .zip(capped.lines())
        .filter(|(bare, capped)| bare != capped)
        .collect();
    assert_eq!(bare.lines().count(), questions.lines().count());
    assert!(
        differs.is_empty() && bare.lines().count() == capped.lines().count(),
        "{differs:#?}"
    );
}
