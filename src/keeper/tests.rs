//! The keeper in a thread of this process, and daemons that come and go.

use std::os::fd::AsFd;
use std::thread::JoinHandle;

use super::*;

fn keeper(run_dir: &Path) -> JoinHandle<io::Result<()>> {
    let place = run_dir.to_path_buf();
    let thread = std::thread::spawn(move || serve(&place, None));
    while !answers(run_dir) {
        assert!(!thread.is_finished(), "it has left before anybody came");
        std::thread::yield_now();
    }
    thread
}

fn object() -> (OwnedFd, ledger::Mapping<ledger::Account>) {
    ledger::mapping::create::<ledger::Account>(c"stint-account").unwrap()
}

fn inode(fd: impl AsFd) -> u64 {
    rustix::fs::fstat(fd).unwrap().st_ino
}

#[test]
fn what_one_daemon_brought_the_next_one_gets() {
    let dir = tempfile::tempdir().unwrap();
    let keeper = keeper(dir.path());
    let (first, _first) = object();
    let (second, _second) = object();
    let Found { kept, held, .. } = Kept::find(dir.path()).unwrap().unwrap();
    assert!(held.is_empty());
    kept.put("one", first.as_fd()).unwrap();
    kept.put("two", second.as_fd()).unwrap();
    kept.put("two", first.as_fd()).unwrap();
    kept.put("three", second.as_fd()).unwrap();
    kept.remove("three").unwrap();
    drop(kept);
    let Found { kept, held, .. } = Kept::find(dir.path()).unwrap().unwrap();
    let held: Vec<(String, u64)> = held.into_iter().map(|(name, fd)| (name, inode(fd))).collect();
    assert_eq!(
        held,
        [("one".into(), inode(&first)), ("two".into(), inode(&first))]
    );
    kept.end();
    keeper.join().unwrap().unwrap();
    assert!(Kept::find(dir.path()).unwrap().is_none());
    assert!(!socket_path(dir.path()).exists());
}

#[test]
fn a_keeper_whom_nobody_needs_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let thread = keeper(dir.path());
    let Found { kept, .. } = Kept::find(dir.path()).unwrap().unwrap();
    // Mapped by this process alone, which is the keeper's own.
    let (fd, _mapping) = object();
    kept.put("one", fd.as_fd()).unwrap();
    drop(kept);
    thread.join().unwrap().unwrap();
}

#[test]
fn there_is_one_keeper_for_a_run_directory() {
    let dir = tempfile::tempdir().unwrap();
    let thread = keeper(dir.path());
    assert!(serve(dir.path(), None).is_err());
    Kept::find(dir.path()).unwrap().unwrap().kept.end();
    thread.join().unwrap().unwrap();
}

#[test]
fn a_daemon_at_the_door_ends_a_look_at_all_processes() {
    let dir = tempfile::tempdir().unwrap();
    let mut keeper = Keeper {
        path: socket_path(dir.path()),
        listener: None,
        daemons: Vec::new(),
        held: BTreeMap::new(),
        idle_looks: 0,
    };
    keeper.bind();
    // Mapped by this process alone, which is the keeper's own.
    let (fd, _mapping) = object();
    keeper.held.insert("one".into(), fd);
    // A child that another test forks maps it too, until it executes.
    let watchdog = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while keeper.is_needed() {
        assert!(
            std::time::Instant::now() < watchdog,
            "nobody maps it, and nobody asks"
        );
        std::thread::yield_now();
    }
    let _daemon = message::reach(&keeper.path).unwrap();
    assert!(keeper.is_needed(), "somebody is about to ask");
}

#[test]
fn a_descriptor_that_does_not_arrive_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let listener = listen(&socket_path(dir.path())).unwrap();
    let path = dir.path().to_path_buf();
    let asks = std::thread::spawn(move || Kept::find(&path).unwrap().unwrap());
    let daemon = loop {
        match accept_with(&listener, SocketFlags::CLOEXEC) {
            Ok(daemon) => break daemon,
            Err(_) => std::thread::yield_now(),
        }
    };
    // As the kernel delivers it to somebody who may have no more descriptors open.
    let (fd, _object) = object();
    message::send(&daemon, &Message::Held("one".into()), Some(fd.as_fd())).unwrap();
    message::send(&daemon, &Message::Held("two".into()), None).unwrap();
    message::send(&daemon, &Message::All, None).unwrap();
    let Found { held, missing, .. } = asks.join().unwrap();
    assert_eq!((held.len(), missing), (1, vec!["two".to_string()]));
}
