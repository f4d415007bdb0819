//! The store beside one that is full and a keeper that does not listen.

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{accept, bind, listen, recv, send, socket_with};

use super::*;
use crate::enforce::keepsake::Part;

fn object() -> OwnedFd {
    ledger::mapping::create::<ledger::Account>(c"stint-account")
        .unwrap()
        .0
}

/// Both objects of account `number` on one device.
fn keepsakes(number: u32, fd: &OwnedFd) -> Vec<(Keepsake, BorrowedFd<'_>)> {
    let of = |part| Keepsake {
        number,
        device: [7; 16],
        part,
        account: "lab".into(),
    };
    [Part::Policy, Part::Account]
        .map(|part| (of(part), fd.as_fd()))
        .into()
}

#[test]
fn more_than_systemd_keeps_is_refused_and_told() {
    let mut store = Store {
        keeping: Keeping::Outside,
        run_dir: PathBuf::new(),
        place: Place::Systemd { most: 3 },
        names: BTreeMap::new(),
    };
    let fd = object();
    store.put(&keepsakes(1, &fd)).unwrap();
    store.put(&keepsakes(1, &fd)).unwrap(); // there already
    let error = store.put(&keepsakes(2, &fd)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "systemd keeps 3 for this service, as many as it may (`FileDescriptorStoreMax=`)"
    );
    assert!(!store.names.contains_key(&2), "half an account is of no use");
    store.forget(1);
    store.put(&keepsakes(2, &fd)).unwrap();
}

#[test]
fn a_keeper_that_does_not_listen_is_waited_for_once() {
    let dir = tempfile::tempdir().unwrap();
    let listener = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    bind(
        &listener,
        &SocketAddrUnix::new(dir.path().join("keeper.sock")).unwrap(),
    )
    .unwrap();
    listen(&listener, 1).unwrap();
    let keeper = std::thread::spawn(move || {
        let daemon = accept(&listener).unwrap();
        let mut asked = [0; 16];
        assert_eq!(recv(&daemon, &mut asked, RecvFlags::empty()).unwrap().0, 4);
        send(&daemon, b"all", SendFlags::empty()).unwrap();
        daemon // not listened to any more
    });
    let (mut store, left, wrong) = Store::open(Keeping::Found, dir.path());
    assert!(left.is_empty() && wrong.is_empty(), "{wrong:?}");
    let _daemon = keeper.join().unwrap();
    let fd = object();
    // Until its socket is full.
    let full = (1..100_000).find(|number| store.put(&keepsakes(*number, &fd)).is_err());
    assert!(full.is_some() && !store.is_lost());
    store.forget(1);
    assert!(
        store.is_lost(),
        "the rest is not waited for, and a tick replaces it"
    );
}
