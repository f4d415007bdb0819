//! The table of clients that allocate. Four things hold of each; a row is the client and the step it grows in.

use std::process::Command;

use super::{
    Client, made,
    venv::{CUDA_12, CUDA_13, TORCH},
};
use crate::harness::{
    artefacts::{self, Profile},
    node::{Node, Setup},
    outcome::run,
    skip::skip,
};

const MIB: u64 = 1 << 20;
const CONTEXT: u64 = 64 * MIB;
const CAP: u64 = 2048 * MIB;
const STEP: u64 = 128 * MIB;

/// More steps than the cap holds.
const STEPS: u64 = 24;

/// The client on the stand-in alone. The stand-in's runtimes are preloaded, because PyTorch's own search path would find
/// NVIDIA's first, which runs on no stand-in.
fn without_stint(node: &Node, client: &Client) -> Command {
    let mut command = node.bare_command(&client.words[0]);
    let runtimes = ["libcudart.so.12", "libcudart.so.13"].map(|name| artefacts::runtimes().join(name));
    command.env(
        "LD_PRELOAD",
        std::env::join_paths(runtimes).expect("paths without colons"),
    );
    command
}

/// Runs `client` bare and as a tenant, growing and below the cap.
#[track_caller]
fn holds(name: &str, profile: Profile, client: Result<Client, String>) {
    let client = match client {
        Ok(client) => client,
        Err(why) => return skip(&format!("client {name}"), &why),
    };
    let grow = ["grow", &(STEP / MIB).to_string(), &STEPS.to_string()];
    let setup = || Setup::quota("").profile(profile);

    // (a) bare on the stand-in it exceeds the cap
    let node = Node::start(setup());
    let bare = run(&mut client.on(without_stint(&node, &client), &grow)).success();
    assert_eq!(
        (bare.number("granted"), bare.number("error")),
        (STEPS as i64, 0),
        "{name} without Stint"
    );
    assert!(node.high_water(0) > CAP, "{name} without Stint");
    drop(node);

    // (b) under the cap it is refused at the first allocation that does not fit
    let node = Node::start(setup());
    let run_as_tenant = |words: &[&str]| {
        run(&mut client.on(node.tenant_command("client", "2GiB", &client.words[0]), words)).success()
    };
    let capped = run_as_tenant(&grow);
    assert_eq!(capped.number("error"), 2, "{name}: {capped:?}");
    let high = node.high_water(0);
    assert!(
        high <= CAP && high > CAP - STEP - CONTEXT,
        "{name}: {high} bytes were in use, the cap is {CAP}"
    );

    // (c) what it reads is the cap's
    assert_eq!(capped.number("total"), CAP as i64, "{name}");
    assert!(
        (0..=CAP as i64).contains(&capped.number("free")),
        "{name}: {capped:?}"
    );
    assert!(
        capped.number("granted") as u64 * STEP <= capped.number("free") as u64,
        "{name}: {capped:?}"
    );

    // (d) below the cap nothing differs
    let without = run(&mut client.on(without_stint(&node, &client), &["below"])).success();
    assert_eq!(run_as_tenant(&["below"]), without, "{name} below the cap");
    assert!(!without.stdout.is_empty(), "{name} says nothing");
}

#[test]
fn c_linked_to_the_driver() {
    holds("C, -lcuda", Profile::V13, made::linked());
}

#[test]
fn c_that_opens_the_driver() {
    holds("C, dlopen", Profile::V13, made::opened());
}

#[test]
fn c_on_the_runtime_of_cuda_12() {
    holds("C, libcudart.so.12", Profile::V13, made::runtime_12());
}

#[test]
fn nvcc_with_a_shared_runtime() {
    holds("nvcc, libcudart.so.13", Profile::V13, made::nvcc());
}

#[test]
fn cudarc() {
    holds("cudarc", Profile::V13, made::cudarc());
}

#[test]
fn cuda_bindings_12() {
    holds(
        "cuda-bindings 12.9",
        Profile::V13,
        CUDA_12.script("cuda_bindings.py"),
    );
}

#[test]
fn cuda_bindings_13() {
    holds(
        "cuda-bindings 13.5",
        Profile::V13,
        CUDA_13.script("cuda_bindings.py"),
    );
}

#[test]
fn cuda_core() {
    holds("cuda.core", Profile::V13, CUDA_13.script("cuda_core.py"));
}

#[test]
fn numba_jit() {
    holds("numba-cuda", Profile::V13, CUDA_13.script("numba_jit.py"));
}

/// Whether the gigabytes were asked for.
fn all() -> bool {
    std::env::var_os("STINT_TEST_CLIENTS").is_some_and(|which| which == "all")
}

#[test]
fn pytorch() {
    if !all() {
        return skip("client PyTorch", "gigabytes; cargo xtask test --clients all");
    }
    for (label, allocator) in [
        ("caching", ""),
        ("expandable", "expandable_segments:True"),
        ("async", "backend:cudaMallocAsync"),
    ] {
        let client = TORCH.script("torch_tensors.py").map(|mut client| {
            client
                .variables
                .push(("PYTORCH_CUDA_ALLOC_CONF", allocator.into()));
            client
        });
        holds(&format!("PyTorch, {label}"), Profile::V13, client);
    }
}

#[test]
fn triton() {
    if !all() {
        return skip("client Triton", "gigabytes; cargo xtask test --clients all");
    }
    let client = TORCH.script("triton_kernel.py").map(|mut client| {
        client
            .variables
            .push(("TRITON_LIBCUDA_PATH", artefacts::stand_in(Profile::V13)));
        client
    });
    holds("Triton", Profile::V13, client);
}
