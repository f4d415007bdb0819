//! Memory of the node, shared objects, and what a forked child may not do.

use super::{Node, config, until};
use driver::CudaError;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;

#[test]
fn processes_compete_for_a_device_to_the_byte() {
    let node = Node::start(config());
    let (a, b) = (node.client(), node.client());
    let capacity = a.devices()[0].memory_bytes;
    a.charge(0, capacity - 1000).expect("fits");
    assert_eq!(b.charge(0, 1001), Err(CudaError::OUT_OF_MEMORY));
    b.charge(0, 1000).expect("fits");
    b.charge(1, 1001).expect("the other device is empty");
    assert_eq!(b.charge(2, 1), Err(CudaError::INVALID_DEVICE));
    let memory = b.memory(0);
    assert_eq!(
        (memory.capacity, memory.used, memory.mine),
        (capacity, capacity, 1000)
    );
    assert_eq!(b.discharge(0, 1001), Err(CudaError::INVALID_VALUE));
    b.discharge(0, 400).expect("held");
    assert_eq!((b.memory(0).used, b.memory(0).mine), (capacity - 400, 600));
    drop(a);
    until("its memory is free", || b.memory(0).used == 600);
    let truth = node.report();
    assert_eq!(
        (truth.devices[0].used_bytes, truth.devices[0].high_water_bytes),
        (600, capacity)
    );
    let dead = truth.processes.iter().find(|p| p.exited).expect("on record");
    assert_eq!((dead.used_bytes, dead.high_water_bytes), (0, capacity - 1000));
}

#[test]
fn concurrent_charges_never_exceed_the_device() {
    let node = Node::start(config());
    let clients = [node.client(), node.client(), node.client()];
    let piece = clients[0].devices()[0].memory_bytes / 100 + 1;
    let taken: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter()
            .map(|client| scope.spawn(move || (0..50).filter(|_| client.charge(0, piece).is_ok()).count()))
            .collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).sum()
    });
    assert_eq!(taken, 99);
    assert_eq!(node.report().devices[0].used_bytes, 99 * piece);
}

#[test]
fn objects_are_shared_by_id_and_die_with_their_owner() {
    let node = Node::start(config());
    let (a, b) = (node.client(), node.client());
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(b"shared").expect("written");
    let (first, second) = (
        a.share(file.as_fd()).expect("id"),
        a.share(file.as_fd()).expect("id"),
    );
    assert_ne!(first, second);
    let mut fetched = File::from(b.fetch(first).expect("the object"));
    let mut text = String::new();
    fetched.rewind().expect("a file");
    fetched.read_to_string(&mut text).expect("readable");
    assert_eq!(text, "shared");
    assert_eq!(b.fetch(first ^ second ^ 1).err(), Some(CudaError::INVALID_HANDLE));
    assert_eq!(b.unshare(first), Err(CudaError::INVALID_HANDLE));
    a.unshare(first).expect("ours");
    assert_eq!(b.fetch(first).err(), Some(CudaError::INVALID_HANDLE));
    drop(a);
    until("the object is gone", || {
        b.fetch(second).err() == Some(CudaError::INVALID_HANDLE)
    });
}

#[test]
fn a_forked_child_knows_itself_and_touches_nothing() {
    let node = Node::start(config());
    let client = node.client();
    let stream = client.stream(0, 0, 0).expect("stream");
    let event = client.event().expect("event");
    client.charge(0, 4096).expect("fits");
    // SAFETY: the child makes calls that take no lock another thread could hold, and leaves by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let no = CudaError::NOT_INITIALIZED;
        let refused = client.forked()
            && client.alive() == Err(no)
            && client.launch(stream, 1, 1) == Err(no)
            && client.record(event, stream) == Err(no)
            && client.event_query(event) == Err(no)
            && client.charge(0, 1) == Err(no)
            && client.stream(0, 0, 0) == Err(no)
            && client.devices().len() == 2
            && client.memory(0).mine == 4096;
        // SAFETY: no destructor may run in the child.
        unsafe { libc::_exit(if refused { 0 } else { 1 }) };
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert!(!client.forked());
    client.launch(stream, 1_000, 1).expect("the parent goes on");
    client.synchronize(stream, Default::default()).expect("wait");
}
