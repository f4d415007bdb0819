//! Descriptors handed about: a socket used by another process than the one that connected, and descriptors sent along.

use std::io::{BufRead, BufReader, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use ledger::wire::{Challenge, Reply};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};

use super::client::{connect, hello, receive};
use super::*;
use crate::admission::attach::PeerIdentity;

/// Tells the executable that its stdin is an attach socket that another process opened.
const VARIABLE: &str = "STINT_TEST_SPEAKS_FOR";
const TEST: &str = "daemon::tests::descriptors::this_process_speaks_for_another";

/// Opens an attach socket and has another process, a child, say hello there. What the daemon answered.
pub fn hand_a_socket_on(run_dir: &Path) -> String {
    let socket = connect(run_dir);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", TEST, "--nocapture", "--test-threads=1"]);
    command
        .env(VARIABLE, "1")
        .stdin(Stdio::from(socket))
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answers = lines
        .map_while(Result::ok)
        .filter_map(|line| Some(line.split_once('@')?.1.to_string()));
    let answer = answers.last().unwrap();
    child.wait().unwrap();
    answer
}

/// Does nothing in an ordinary run; in a process made by [`hand_a_socket_on`] it says hello.
#[test]
fn this_process_speaks_for_another() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    let socket = rustix::stdio::stdin();
    send(socket, &hello(7, 0).encode(), SendFlags::empty()).unwrap();
    let (mut bytes, mut _fds) = receive(socket);
    if Challenge::decode(&bytes).is_ok() {
        send(socket, &bytes, SendFlags::empty()).unwrap();
        (bytes, _fds) = receive(socket);
    }
    println!(
        "@{:?} {}",
        Reply::decode(&bytes).unwrap().status,
        std::process::id()
    );
}

#[test]
fn a_socket_handed_on_admits_who_opened_it_and_nobody_else() {
    let node = TestNode::start(CAP);
    let mut opener = node.client();
    let answer = opener.tell("hand");
    let (status, speaker) = answer.split_once(' ').unwrap();
    let clients: Vec<u32> = node
        .status()
        .tenants
        .iter()
        .flat_map(|tenant| &tenant.clients)
        .map(|client| client.pid)
        .collect();
    match status {
        // What the speaker got is the opener's to answer for, and goes when the opener does.
        "Admitted" => assert_eq!(clients, [opener.pid()], "and not {speaker}"),
        // A kernel that cannot tell who opened a socket: whoever opened it must answer itself.
        "Identity" => assert!(clients.is_empty()),
        other => panic!("{other}"),
    }
    opener.kill();
    until("nobody is a client any more", || {
        node.status()
            .tenants
            .iter()
            .all(|tenant| tenant.clients.is_empty())
    });
}

#[test]
fn who_answers_a_challenge_for_another_is_nobody() {
    let node = TestNode::with(CAP, |options| options.peer_identity = PeerIdentity::Challenge);
    let answer = node.client().tell("hand");
    assert!(answer.starts_with("Identity "), "{answer}");
    assert!(node.status().tenants.is_empty());
}

#[test]
fn descriptors_sent_along_are_not_kept() {
    let node = TestNode::start(CAP);
    let litter = memfd_create("stint-litter", MemfdFlags::CLOEXEC).unwrap();
    let fds = [litter.as_fd(); 32];
    let send_along = |socket: &dyn AsFd, bytes: &[u8]| {
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(32))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).unwrap();
    };
    let attach = connect(node.path());
    send_along(&attach, &hello(1, 0).encode());
    assert_eq!(
        format!("{:?}", Reply::decode(&receive(&attach).0).unwrap().status),
        "Admitted"
    );
    let admin = UnixStream::connect(node.path().join("stint.sock")).unwrap();
    send_along(&admin, b"{\"request\":\"status\"}\n");
    let mut line = String::new();
    BufReader::new(&admin).read_line(&mut line).unwrap();
    assert!(line.starts_with("{\"ok\""), "{line}");
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let kept = open.filter(|fd| {
        let to = std::fs::read_link(fd.path()).unwrap_or_default();
        to.to_string_lossy().contains("stint-litter")
    });
    assert_eq!(kept.count(), 1, "ours, and none that the daemon kept");
}

#[test]
fn a_daemon_without_a_descriptor_left_waits_for_one_and_says_so_once() {
    let dir = tempfile::tempdir().unwrap();
    keeper(dir.path());
    std::fs::write(dir.path().join("stint.toml"), CAP).unwrap();
    let mut daemon = super::steps::daemon(dir.path());
    assert_eq!(daemon.tell("start 0"), "ok");
    assert_eq!(daemon.tell("limit 64"), "ok");
    let mut tries = || daemon.tell("steps").parse::<u32>().unwrap();
    let (before, begin) = (tries(), Instant::now());
    // They say nothing: each is a descriptor and nothing else.
    let silent: Vec<_> = (0..60).map(|_| connect(dir.path())).collect();
    until("it has tried again", || tries() >= before + 3);
    let tried = tries() - before;
    let most = 2 + begin.elapsed().as_millis() / crate::daemon::deafness::PAUSE.as_millis();
    assert!(
        u128::from(tried) <= 2 * most,
        "{tried} times, of which {most} were due: it does nothing else"
    );
    drop(silent);
    let mut client = Process::start(dir.path());
    assert!(client.tell("attach 1").starts_with("Admitted"));
    let events = Connection::open(dir.path()).unwrap().events(false).unwrap();
    let told = events.map(Result::unwrap).filter(|event| {
        let text = event.detail.values().filter_map(|value| value.as_str());
        text.into_iter()
            .any(|text| text.starts_with("no connection can be taken"))
    });
    assert_eq!(told.count(), 1);
}
