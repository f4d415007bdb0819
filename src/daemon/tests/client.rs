//! A client as a process of its own: this test executable once more, told what to do line by line. It speaks the attach
//! protocol and the ledger as the shim does.

use std::io::{BufRead, BufReader, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use ledger::account::Client;
use ledger::ring::{Event, Kind, Reason};
use ledger::wire::{Challenge, Hello, LONGEST_REPLY, ObjectEntry, PROTOCOL, Reply, flags};
use ledger::{Account, Mapping, Policy, SlotIndex, View};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect as connect_to, recvmsg, send, socket_with,
};

use crate::protocol::Connection;

/// Tells the executable that it is a client, and where its node is.
const VARIABLE: &str = "STINT_TEST_CLIENT_OF";
const TEST: &str = "daemon::tests::client::this_process_is_a_client";

/// A client process, driven from the test.
pub struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    pub fn start(run_dir: &Path) -> Process {
        Process::of(command(run_dir))
    }

    /// A process that says `ready` and then answers line by line.
    pub fn of(mut command: Command) -> Process {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut process = Process {
            child,
            stdin,
            stdout: BufReader::new(stdout),
        };
        assert_eq!(process.answer(), "ready");
        process
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has the process do something, and returns what came of it.
    pub fn tell(&mut self, what: &str) -> String {
        self.begin(what);
        self.answer()
    }

    /// Has the process begin something; [`Process::answer`] tells what came of it.
    pub fn begin(&mut self, what: &str) {
        writeln!(self.stdin, "{what}").unwrap();
    }

    /// The same; `None`: the process gave up on it and has ended.
    pub fn attempt(&mut self, what: &str) -> Option<String> {
        writeln!(self.stdin, "{what}").ok()?;
        self.line()
    }

    /// Has it execute the same program again.
    pub fn execute(&mut self) {
        assert_eq!(self.tell("execute"), "ready");
    }

    /// SIGSTOP or SIGCONT.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Kills it and waits for its end.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    pub fn answer(&mut self) -> String {
        self.line().expect("the client has ended")
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.stdout.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            // The test harness of that process prints lines of its own.
            if let Some((_, answer)) = line.split_once('@') {
                return Some(answer.trim_end().to_string());
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

fn command(run_dir: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
        .env(VARIABLE, run_dir);
    command
}

/// A connection to a node's attach socket.
pub fn connect(run_dir: &Path) -> OwnedFd {
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    connect_to(
        &socket,
        &SocketAddrUnix::new(run_dir.join("attach/attach.sock")).unwrap(),
    )
    .unwrap();
    socket
}

/// Whether the daemon has not hung up on a socket to which it says nothing else.
pub fn is_open(socket: &OwnedFd) -> bool {
    let now = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut fds = [rustix::event::PollFd::new(socket, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut fds, Some(&now)).unwrap() == 0
}

/// What an attach gave: the daemon's word, and per device the objects.
struct Attached {
    status: String,
    policies: Vec<View<Policy>>,
    accounts: Vec<Mapping<Account>>,
    slot: Option<SlotIndex>,
}

fn attach(run_dir: &Path, nonce: u64, flags: u16) -> Attached {
    let socket = connect(run_dir);
    send(&socket, &hello(nonce, flags).encode(), SendFlags::empty()).unwrap();
    let (mut bytes, mut fds) = receive(&socket);
    if Challenge::decode(&bytes).is_ok() {
        send(&socket, &bytes, SendFlags::empty()).unwrap();
        (bytes, fds) = receive(&socket);
    }
    let reply = Reply::decode(&bytes).unwrap();
    let entries: Vec<ObjectEntry> = reply.objects().collect();
    assert_eq!(entries.len(), fds.len());
    let observer = flags & flags::OBSERVER != 0;
    let mut attached = Attached {
        status: format!("{:?}", reply.status),
        policies: Vec::new(),
        accounts: Vec::new(),
        slot: None,
    };
    for (entry, fd) in entries.iter().zip(&fds) {
        match entry.kind {
            Some(ledger::wire::ObjectKind::Policy) => attached.policies.push(View::open(fd).unwrap()),
            Some(ledger::wire::ObjectKind::Account) if observer => {
                assert!(Mapping::<Account>::open(fd).is_err())
            }
            Some(ledger::wire::ObjectKind::Account) => {
                attached.slot = SlotIndex::client(u32::from(entry.slot));
                attached.accounts.push(Mapping::open(fd).unwrap());
            }
            other => panic!("{other:?}"),
        }
    }
    attached
}

/// One message, and the descriptors that came with it.
pub fn receive(socket: impl AsFd) -> (Vec<u8>, Vec<OwnedFd>) {
    let mut bytes = vec![0; LONGEST_REPLY];
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16), ScmCredentials(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [std::io::IoSliceMut::new(&mut bytes)];
    let message = recvmsg(socket.as_fd(), &mut into, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds.collect::<Vec<_>>()),
        _ => None,
    });
    let fds = rights.flatten().collect();
    bytes.truncate(message.bytes);
    (bytes, fds)
}

/// Does nothing in an ordinary run; in a process made by [`Process::start`] it is the client.
#[test]
fn this_process_is_a_client() {
    let Some(run_dir) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        return;
    };
    println!("@ready");
    let (mut attached, mut silent) = (None, Vec::new());
    // Read byte by byte: what is buffered would be lost when the process executes itself.
    while let Some(line) = read_line() {
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let number = rest.parse::<u64>().unwrap_or(0);
        let answer = match verb {
            "attach" | "observe" => {
                let flags = if verb == "observe" { flags::OBSERVER } else { 0 };
                let fresh = attach(&run_dir, number, flags);
                let answer = match fresh.policies.first() {
                    Some(policy) => {
                        format!(
                            "{} {} devices cap {}",
                            fresh.status,
                            fresh.policies.len(),
                            policy.cap()
                        )
                    }
                    None => fresh.status.clone(),
                };
                // What was mapped before stays mapped, as in a process that only says it executed.
                std::mem::forget(attached.replace(fresh));
                answer
            }
            "launch" => launch(&run_dir, rest),
            "hand" => super::descriptors::hand_a_socket_on(&run_dir),
            "drain" => drain(&run_dir, rest),
            "set" => set(&run_dir, rest),
            "reload" => match Connection::open(&run_dir).unwrap().reload() {
                Ok(_) => "ok".into(),
                Err(failure) => format!("{} {}", failure.exit.0, failure.message),
            },
            "become" => format!(
                "{:?}",
                nix::unistd::setuid(nix::unistd::Uid::from_raw(number as u32))
            ),
            // Silent connections, as a user other than the one it is billed to.
            "hush" => {
                nix::unistd::seteuid(nix::unistd::Uid::from_raw(number as u32)).unwrap();
                silent.extend((0..40).map(|_| connect(&run_dir)));
                nix::unistd::seteuid(nix::unistd::getuid()).unwrap();
                "ok".into()
            }
            "hushed" => silent.iter().filter(|socket| is_open(socket)).count().to_string(),
            "close" => {
                let open = |fd: &u32| std::fs::read_link(format!("/proc/self/fd/{fd}"));
                let ours = (3..256).filter_map(|fd| open(&fd).ok());
                let left =
                    ours.filter(|to| to.to_string_lossy().contains("stint-") || to.starts_with("socket:"));
                // The attach closed its socket and every descriptor it was handed.
                left.count().to_string()
            }
            "speak" => {
                let (protocol, status) = speak(&run_dir, number as u16);
                format!("{status:?} in {protocol}")
            }
            // Words of its account that no client of ours writes: the layout's version, and who has its slot.
            "age" | "disown" => {
                let attached: &Attached = attached.as_ref().unwrap();
                for account in &attached.accounts {
                    let slot = account.slot(attached.slot.unwrap());
                    match verb {
                        "age" => poke(std::ptr::from_ref(&**account).addr() + 8, number as u32),
                        _ => poke(std::ptr::from_ref(slot).addr() + 16, number as u32),
                    }
                }
                "ok".into()
            }
            "execute" => panic!("{}", command(&run_dir).exec()),
            verb => {
                let attached: &Attached = attached.as_ref().unwrap();
                let (policy, account) = (&attached.policies[0], &attached.accounts[0]);
                act(
                    &mut Client::new(policy, account, attached.slot.unwrap()),
                    verb,
                    number,
                )
                .into()
            }
        };
        println!("@{answer}");
    }
}

/// Writes a word of this process's memory.
fn poke(address: usize, word: u32) {
    use std::os::unix::fs::FileExt;
    let memory = std::fs::OpenOptions::new()
        .write(true)
        .open("/proc/self/mem")
        .unwrap();
    memory.write_all_at(&word.to_le_bytes(), address as u64).unwrap();
}

/// Says hello in another version of the protocol; the version and the status of the reply.
fn speak(run_dir: &Path, protocol: u16) -> (u16, ledger::wire::Status) {
    let socket = connect(run_dir);
    let mut hello = hello(u64::from(protocol) + 100, 0);
    hello.protocol = protocol;
    // A later version's hello is longer.
    let bytes = [&hello.encode()[..], &[0; 12]].concat();
    send(&socket, &bytes, SendFlags::empty()).unwrap();
    let (bytes, _) = receive(&socket);
    let reply = Reply::decode(&bytes).unwrap();
    (reply.protocol, reply.status)
}

/// What a shim says first.
pub fn hello(nonce: u64, flags: u16) -> Hello {
    Hello {
        protocol: PROTOCOL,
        flags,
        pid: std::process::id(),
        nonce,
        build: *b"test            ",
    }
}

fn act(client: &mut Client<'_>, verb: &str, bytes: u64) -> &'static str {
    match verb {
        "reserve" if client.reserve(bytes).is_ok() => "ok",
        "release" if client.release(bytes).is_ok() => "ok",
        "post" => {
            let kind = Kind::Refused(Reason::Cap);
            client.post(Event {
                kind,
                function: 0,
                thread: 0,
                at: 0,
                asked: bytes,
                used: 0,
                cap: 0,
                detail: 0,
            });
            "ok"
        }
        "reserve" | "release" => "refused",
        other => panic!("`{other}` is nothing a client does"),
    }
}

fn drain(run_dir: &Path, json: &str) -> String {
    let drain = serde_json::from_str(json).unwrap();
    match Connection::open(run_dir).unwrap().drain(drain) {
        Ok(_) => "ok".into(),
        Err(failure) => format!("{} {}", failure.exit.0, failure.message),
    }
}

fn set(run_dir: &Path, json: &str) -> String {
    let set = serde_json::from_str(json).unwrap();
    match Connection::open(run_dir).unwrap().set(set) {
        Ok(_) => "ok".into(),
        Err(failure) => format!("{} {}", failure.exit.0, failure.message),
    }
}

fn launch(run_dir: &Path, json: &str) -> String {
    let launch = serde_json::from_str(json).unwrap();
    match Connection::open(run_dir).unwrap().launch(launch) {
        Ok(launched) => format!(
            "{} {} {}",
            launched.tenant, launched.account, launched.devices[0].cap_bytes
        ),
        Err(failure) => format!("{} {}", failure.exit.0, failure.message),
    }
}

fn read_line() -> Option<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        match rustix::io::read(rustix::stdio::stdin(), &mut byte) {
            Ok(1) if byte[0] == b'\n' => return String::from_utf8(line).ok(),
            Ok(1) => line.push(byte[0]),
            _ => return None,
        }
    }
}
