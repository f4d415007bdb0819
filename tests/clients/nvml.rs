//! Clients that only look: they see their own account's numbers and processes, and nothing else of theirs changes.

use serde_json::Value;

use super::venv::CUDA_13;
use crate::harness::{
    node::{Node, Setup},
    outcome::{Outcome, run},
    programs::{Link, program},
    session::Session,
    skip::skip,
};

const MIB: u64 = 1 << 20;
const CONTEXT: u64 = 64 * MIB;

/// A node on which tenant `theirs` holds 512 MiB and tenant `ours`, capped at 2 GiB, 256 MiB.
struct Shared {
    node: Node,
    theirs: Session,
    ours: Session,
}

#[track_caller]
fn shared() -> Shared {
    let node = Node::start(Setup::quota(""));
    let hold = |tenant: &str, cap: &str, bytes: u64| {
        let mut session = Session::start(&mut node.tenant_command(tenant, cap, program("steps", Link::Cuda)));
        assert_eq!(
            (session.ask("init"), session.ask("context 0")),
            ("0".into(), "0".into())
        );
        assert_eq!(session.error(&format!("alloc {bytes}")), 0);
        session
    };
    let (theirs, ours) = (hold("theirs", "4GiB", 512 * MIB), hold("ours", "2GiB", 256 * MIB));
    Shared { node, theirs, ours }
}

/// The pid of the program that a session's launcher started.
#[track_caller]
fn program_pid(node: &Node, bytes: u64) -> u64 {
    let truth = node.truth();
    let rows = truth["processes"].as_array().into_iter().flatten();
    let mut pids = rows
        .filter(|row| row["used_bytes"] == bytes && row["exited"] == false)
        .filter_map(|row| row["pid"].as_u64());
    pids.next()
        .unwrap_or_else(|| panic!("no process holds {bytes} bytes: {truth}"))
}

#[test]
fn pynvml_sees_its_own_account() {
    let script = match CUDA_13.script("nvml.py") {
        Ok(script) => script,
        Err(why) => return skip("client nvidia-ml-py", &why),
    };
    let Shared {
        node,
        theirs: _theirs,
        ours: _ours,
    } = shared();
    let view = |outcome: Outcome| -> Value {
        serde_json::from_str(&outcome.success().stdout).expect("the client prints JSON")
    };
    let (their_pid, our_pid) = (
        program_pid(&node, 512 * MIB + CONTEXT).to_string(),
        program_pid(&node, 256 * MIB + CONTEXT).to_string(),
    );

    let bare = view(run(&mut script.on(node.bare_command(&script.words[0]), &["view"])));
    assert!(
        bare["processes"][&their_pid].is_u64() && bare["processes"][&our_pid].is_u64(),
        "{bare}"
    );

    let capped = view(run(
        &mut script.on(node.tenant_command("ours", "2GiB", &script.words[0]), &["view"])
    ));
    assert_eq!(capped["total"], 2048 * MIB);
    assert_eq!(capped["used"], 256 * MIB + CONTEXT);
    assert_eq!(capped["free"], 2048 * MIB - 256 * MIB - CONTEXT);
    assert!(
        capped["processes"][&our_pid].is_u64(),
        "its own process: {capped}"
    );
    assert!(
        capped["processes"][&their_pid].is_null(),
        "somebody else's process: {capped}"
    );

    let below = |command| run(&mut script.on(command, &["below"])).success();
    assert_eq!(
        below(node.tenant_command("ours", "2GiB", &script.words[0])),
        below(node.bare_command(&script.words[0]))
    );
}

/// A tool that prints tables: its exit code and stderr stay, and it lists our process and not theirs.
#[track_caller]
fn tool(name: &str, words: &[&str]) {
    let path = match CUDA_13.program(name) {
        Ok(path) => path,
        Err(why) => return skip(&format!("client {name}"), &why),
    };
    let Shared {
        node,
        theirs: _theirs,
        ours: _ours,
    } = shared();
    let (their_pid, our_pid) = (
        program_pid(&node, 512 * MIB + CONTEXT).to_string(),
        program_pid(&node, 256 * MIB + CONTEXT).to_string(),
    );
    let bare = run(node.bare_command(&path).args(words));
    let capped = run(node.tenant_command("ours", "2GiB", &path).args(words));
    assert_eq!((capped.code, &capped.stderr), (bare.code, &bare.stderr), "{name}");
    let lists = |outcome: &Outcome, pid: &str| {
        outcome
            .stdout
            .split(|c: char| !c.is_ascii_digit())
            .any(|word| word == pid)
    };
    assert!(
        lists(&bare, &their_pid) && lists(&bare, &our_pid),
        "{name} bare:\n{}",
        bare.stdout
    );
    assert!(
        lists(&capped, &our_pid) && !lists(&capped, &their_pid),
        "{name} as tenant:\n{}",
        capped.stdout
    );
}

#[test]
fn gpustat_sees_its_own_account() {
    tool("gpustat", &["--no-color", "--show-pid", "--show-user"]);
}

#[test]
fn nvitop_sees_its_own_account() {
    tool("nvitop", &["--once", "--ascii"]);
}
