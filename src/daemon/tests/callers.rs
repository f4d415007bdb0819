//! Callers of the admin socket who ask for more than their turn. The loop is driven step by step, without its thread.

use std::io::{BufRead, BufReader, ErrorKind, Read};

use super::*;
use crate::admission::identity::Place;
use crate::admission::launches::MOST_OF_A_USER;
use crate::admission::process;
use crate::config::MemoryRule;
use crate::daemon::core::Core;
use crate::daemon::sources::FIRST_CONNECTION;
use crate::skip::skip;

/// A daemon without its thread, in `run_dir`.
fn core(run_dir: &Path) -> Core {
    core_with(run_dir, Keeping::Nowhere)
}

fn core_with(run_dir: &Path, keeping: Keeping) -> Core {
    let options = Options {
        keeping,
        ..options(run_dir, CAP)
    };
    let Source::Fixed(inventory) = options.source.clone() else {
        unreachable!("a fixed list")
    };
    let (_stop, told) = UnixStream::pair().unwrap();
    Core::new(options, inventory, None, Vec::new(), told).unwrap()
}

fn caller(run_dir: &Path) -> UnixStream {
    let caller = UnixStream::connect(run_dir.join("stint.sock")).unwrap();
    caller.set_nonblocking(true).unwrap();
    caller
}

const STATUS: &[u8] = b"{\"request\":\"status\"}\n";

#[test]
fn who_sends_many_requests_at_once_is_answered_in_turn_with_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut core = core(dir.path());
    let mut eager = caller(dir.path());
    eager.write_all(&STATUS.repeat(100)).unwrap();
    core.accept_admins();
    for round in 1..=3 {
        core.serve(FIRST_CONNECTION);
        let mut come = Vec::new();
        let end = BufReader::new(&eager).read_to_end(&mut come).unwrap_err();
        assert_eq!(end.kind(), ErrorKind::WouldBlock);
        assert_eq!(come.lines().count(), 1, "answers in round {round}");
    }
}

#[test]
fn who_reads_no_answers_is_asked_no_more_and_costs_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut core = core(dir.path());
    let mut deaf = caller(dir.path());
    core.accept_admins();
    let mut sent = 0;
    loop {
        match deaf.write(STATUS) {
            Ok(length) => sent += length / STATUS.len(),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "it is not hung up on either");
                break;
            }
        }
        core.serve(FIRST_CONNECTION);
        assert!(sent < 1_000_000, "everything is taken in");
    }
    // As soon as it reads, it goes on, and nothing was lost.
    let mut answers = 0;
    let mut come = vec![0; 1 << 20];
    while answers < sent {
        match deaf.read(&mut come) {
            Ok(length) => answers += come[..length].iter().filter(|byte| **byte == b'\n').count(),
            Err(_) => core.serve(FIRST_CONNECTION),
        }
    }
    assert_eq!(answers, sent);
}

#[test]
fn an_account_goes_with_the_last_who_looks_at_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut core = core(dir.path());
    // All that descends from this process belongs to an account made for it, and nobody is its client.
    let lab = Place {
        tenant: "lab".into(),
        account: "lab".into(),
        memory: MemoryRule::ALL,
        asked: false,
        carved_from: None,
        passing: true,
        lives_in: None,
    };
    let me = process::stat(std::process::id()).unwrap().identity;
    core.launches.add(me, 0, lab);
    let mut observers = [
        client::Process::start(dir.path()),
        client::Process::start(dir.path()),
    ];
    for observer in &mut observers {
        observer.begin("observe 1");
        let pid = observer.pid();
        until("it is admitted", || {
            core.accept_attaches();
            core.observers.keys().any(|process| process.pid == pid)
        });
        assert!(observer.answer().starts_with("Admitted"));
    }
    for (observer, remains) in observers.into_iter().zip([true, false]) {
        assert!(core.places.contains_key("lab"));
        observer.kill();
        core.reap();
        assert_eq!(core.places.contains_key("lab"), remains);
    }
}

#[test]
fn accounts_that_outlive_their_launches_count_as_these_do() {
    if !rustix::process::geteuid().is_root() {
        return skip("accounts left of launches", "only root can become another user");
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut core = core(dir.path());
    let launch = |core: &mut Core| {
        let mut head = client::Process::start(dir.path());
        assert!(head.tell("become 65534").starts_with("Ok"));
        head.begin(r#"launch {"memory":"1MiB"}"#);
        let mut asked = false;
        until("it is answered", || {
            core.accept_admins();
            for token in core.admins.keys().copied().collect::<Vec<_>>() {
                asked = true;
                core.serve(token);
            }
            asked && core.admins.is_empty()
        });
        let answer = head.answer();
        // Somebody it started looks at the account on and on.
        let account = answer.split(' ').nth(1).unwrap_or_default().to_string();
        let pid = head.pid();
        core.observers
            .insert(process::Identity { pid, start_time: 0 }, account);
        head.kill();
        core.reap();
        answer
    };
    for _ in 0..MOST_OF_A_USER {
        let answer = launch(&mut core);
        assert!(answer.starts_with("default default#"), "{answer}");
    }
    let answer = launch(&mut core);
    assert!(answer.contains("or programs left of so many"), "{answer}");
}

#[test]
fn a_keeper_that_takes_nothing_is_given_up_until_the_next_tick() {
    let dir = tempfile::tempdir().unwrap();
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    );
    let socket = socket.unwrap();
    let path = rustix::net::SocketAddrUnix::new(dir.path().join("keeper.sock")).unwrap();
    rustix::net::bind(&socket, &path).unwrap();
    rustix::net::listen(&socket, 8).unwrap();
    // It hands over what it has, nothing, and goes, each time.
    std::thread::spawn(move || {
        while let Ok(daemon) = rustix::net::accept(&socket) {
            let _ = rustix::net::send(&daemon, b"all", rustix::net::SendFlags::NOSIGNAL);
            let _ = rustix::net::recv(&daemon, &mut [0; 16][..], rustix::net::RecvFlags::empty());
        }
    });
    let mut core = core_with(dir.path(), Keeping::Found);
    let mut client = client::Process::start(dir.path());
    client.begin("attach 1");
    until("its account is open", || {
        core.accept_attaches();
        core.places.contains_key("default")
    });
    assert!(client.answer().starts_with("Admitted"));
    core.replace_keeper();
    assert!(core.store.is_lost(), "it is tried again");
}
