//! What tenants, their programs and the daemon do together, each a situation that broke some sharing runtime in the field.
//! The files are kinds of situations; a test's name says the behaviour.

mod bypass;
mod caps;
mod configuration;
mod deaths;
mod demo;
mod devices;
mod doctor;
mod graphs;
mod harmless;
mod host;
mod identity;
mod instants;
mod loading;
mod lookers;
mod mistakes;
mod namespaces;
mod observe;
mod orphans;
mod packages;
mod processes;
mod recycler;
mod restarts;
mod shared_memory;
mod silence;
mod strangers;
mod verbs;
mod waits;

use crate::harness::{
    node::Node,
    programs::{Link, program},
    session::Session,
};

/// Bytes of one MiB.
const MIB: u64 = 1 << 20;

/// The driver's granule.
const GRANULE: u64 = 2 * MIB;

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: u64 = 2;

/// What a context costs on the stand-in by default.
const CONTEXT: u64 = 64 * MIB;

/// A session of `tests/programs/steps.c` under the shim, with device 0's context.
#[track_caller]
fn client(node: &Node) -> Session {
    begin(Session::start(
        &mut node.capped_command(program("steps", Link::Cuda)),
    ))
}

/// The same as `tenant`, who has `memory` per device.
#[track_caller]
fn tenant(node: &Node, tenant: &str, memory: &str) -> Session {
    begin(Session::start(&mut node.tenant_command(
        tenant,
        memory,
        program("steps", Link::Cuda),
    )))
}

/// The same without the shim.
#[track_caller]
fn bare(node: &Node) -> Session {
    begin(Session::start(
        &mut node.bare_command(program("steps", Link::Cuda)),
    ))
}

#[track_caller]
fn begin(mut session: Session) -> Session {
    assert_eq!(session.ask("init"), "0", "cuInit");
    assert_eq!(session.ask("context 0"), "0", "the context of device 0");
    session
}

/// Free bytes that the client sees.
#[track_caller]
fn free(session: &mut Session) -> u64 {
    let [error, free, _total] = session.numbers("info")[..] else {
        panic!("info failed")
    };
    assert_eq!(error, 0);
    free
}
