//! Do no harm: programs that never use a GPU run with the shim preloaded exactly as without it, byte for byte.
//!
//! Next: `harmless/programs.rs`, which programs; `harmless/starts.rs`, what it adds to their start.

mod programs;
mod starts;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::*;
use crate::harness::{
    long,
    node::Setup,
    outcome::{Outcome, run},
    skip::skip,
    wheels,
};
use programs::{PROGRAMS, Program};

/// The directory a program runs in: the same path and content for both runs, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(node: &Node) -> Scratch {
        let path = node.directory().join("scratch");
        fs::create_dir_all(&path).expect("a directory can be made");
        for name in ["words.txt", "hello.c", "numbers.csv", "Hello.java", "script.js"] {
            fs::write(path.join(name), programs::file(name)).expect("a file can be written");
        }
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _node_removes_it_too = fs::remove_dir_all(&self.0);
    }
}

/// One run of `program`, with or without the shim.
#[track_caller]
fn outcome(node: &Node, program: &Program, capped: bool, numpy: Option<&Path>) -> Outcome {
    let scratch = Scratch::new(node);
    let mut command = if capped {
        node.capped_command("sh")
    } else {
        node.bare_command("sh")
    };
    command.args(["-c", program.script]).current_dir(&scratch.0);
    command.env("HOME", &scratch.0).env("LC_ALL", "C.UTF-8");
    if let Some(numpy) = numpy {
        command.env("PYTHONPATH", numpy);
    }
    run(&mut command)
}

/// Whether all that `program` needs is here; else one line says what is missing.
fn present(program: &Program) -> bool {
    let missing: Vec<_> = program
        .needs
        .iter()
        .filter(|tool| {
            let question = if tool.contains(' ') {
                (**tool).to_owned()
            } else {
                format!("command -v {tool}")
            };
            let found = Command::new("sh").args(["-c", &question]).output();
            !found.is_ok_and(|found| found.status.success())
        })
        .collect();
    if !missing.is_empty() {
        skip(
            &format!("{} with the shim preloaded", program.name),
            &format!("no {missing:?} here"),
        );
    }
    missing.is_empty()
}

/// The rows that can run here, and numpy's directory for the one that needs it.
fn rows() -> Vec<(&'static Program, Option<PathBuf>)> {
    let with_library = |program: &'static Program| {
        if program.name != "numpy" {
            return Some((program, None));
        }
        match wheels::unpacked(programs::NUMPY) {
            Ok(path) => Some((program, Some(path))),
            Err(why) => {
                skip("numpy with the shim preloaded", &why);
                None
            }
        }
    };
    PROGRAMS
        .iter()
        .filter(|program| present(program))
        .filter_map(with_library)
        .collect()
}

#[test]
fn programs_without_cuda_do_not_notice_the_shim() {
    let node = Node::start(Setup::cap("1GiB"));
    let mut checked = 0;
    for (program, numpy) in rows() {
        let bare = outcome(&node, program, false, numpy.as_deref());
        let capped = outcome(&node, program, true, numpy.as_deref());
        assert_eq!(bare, capped, "{}: {}", program.name, program.script);
        assert_eq!(bare.code, program.code, "{}: {bare:?}", program.name);
        assert!(
            bare.stdout.len() + bare.stderr.len() > program.quiet,
            "{} does nothing: {bare:?}",
            program.name
        );
        checked += 1;
    }
    println!("{checked} of {} programs ran alike", PROGRAMS.len());
    let clients: Vec<_> = node
        .events()
        .into_iter()
        .filter(|event| event["kind"] == "admitted")
        .collect();
    assert!(clients.is_empty(), "none of them attached: {clients:?}");
}

#[test]
fn the_loader_answers_programs_as_without_the_shim() {
    let node = Node::start(Setup::cap("1GiB"));
    for link in [Link::Nothing, Link::Fixed] {
        let bare = run(&mut node.bare_command(program("resolver", link))).success();
        let capped = run(&mut node.capped_command(program("resolver", link))).success();
        assert_eq!(bare, capped, "{link:?}");
        assert_eq!(bare.stdout.lines().count(), 61, "{}", bare.stdout);
    }
}
