//! One connection to the attach socket: hello, who is it, reply. Never waits: each call does what the socket allows now.
//! The messages are in `ledger/src/wire.rs`; what to answer is decided in `daemon/admit.rs`.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use ledger::wire::{
    Challenge, Hello, LONGEST_REPLY, ObjectEntry, PROTOCOL, Reply, Status, WireError, answer_in,
};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, UnixCredentials, getsockopt, recvmsg as nix_recvmsg, sockopt,
};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_passcred;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::process::Credentials;

/// A peer that says nothing for so long is hung up on.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// How a peer's pidfd is had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PeerIdentity {
    /// From the socket, where the kernel can (Linux 6.5), else by [`PeerIdentity::Challenge`].
    #[default]
    Socket,
    /// Opened by number, then proven by an answer that carries credentials of the kernel's.
    Challenge,
}

/// A peer that said hello, and the process it is.
#[derive(Debug)]
pub struct Greeted {
    /// Its protocol is the version to answer in.
    pub hello: Hello,
    pub pidfd: OwnedFd,
    pub pid: u32,
    /// Effective user when it connected.
    pub uid: u32,
}

/// What a look at the connection gave.
#[derive(Debug)]
pub enum Step {
    /// Nothing yet.
    Wait,
    /// It is over: hung up, or nonsense was said.
    Close,
    Greeted(Greeted),
    /// To be told this and hung up on.
    Refuse(u16, Status),
}

#[derive(Debug)]
enum Expect {
    Hello,
    Answer {
        hello: Hello,
        nonce: u64,
        pidfd: OwnedFd,
        peer: Credentials,
    },
}

/// A connection.
#[derive(Debug)]
pub struct Attach {
    socket: OwnedFd,
    expect: Expect,
    since: Instant,
    peer: Option<Credentials>,
    /// Whom its silence is counted to, once it is known to be silent. `None`: who connected has gone.
    pub user: Option<u32>,
}

impl Attach {
    /// Takes over an accepted, non-blocking socket.
    pub fn new(socket: OwnedFd, now: Instant) -> Attach {
        Attach {
            peer: Credentials::of(&socket),
            socket,
            expect: Expect::Hello,
            since: now,
            user: None,
        }
    }

    /// Who connected.
    pub fn peer(&self) -> Option<Credentials> {
        self.peer
    }

    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether the peer has been silent for too long.
    pub fn overdue(&self, now: Instant) -> bool {
        now.duration_since(self.since) > PATIENCE
    }

    /// Does what the socket allows.
    pub fn step(&mut self, identity: PeerIdentity) -> Step {
        match std::mem::replace(&mut self.expect, Expect::Hello) {
            Expect::Hello => self.hello(identity),
            Expect::Answer {
                hello,
                nonce,
                pidfd,
                peer,
            } => self.answer(hello, nonce, pidfd, peer),
        }
    }

    fn hello(&mut self, identity: PeerIdentity) -> Step {
        let mut bytes = [0; 256];
        // Without room for a control message the kernel closes descriptors nobody asked for.
        let length = match rustix::net::recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Step::Close,
            Ok((length, _)) => length.min(bytes.len()),
            Err(Errno::AGAIN | Errno::INTR) => return Step::Wait,
            Err(_) => return Step::Close,
        };
        let mut hello = match Hello::decode(&bytes[..length]) {
            Ok(hello) => hello,
            Err(WireError::Protocol(theirs)) => return Step::Refuse(theirs, Status::Protocol),
            Err(_) => return Step::Close,
        };
        // What follows is in a version both understand.
        match answer_in(hello.protocol) {
            Some(protocol) => hello.protocol = protocol,
            None => return Step::Refuse(PROTOCOL, Status::Protocol),
        }
        let Some(peer) = Credentials::of(&self.socket) else {
            return Step::Refuse(hello.protocol, Status::Identity);
        };
        if identity == PeerIdentity::Socket {
            match getsockopt(&self.socket, sockopt::PeerPidfd) {
                Ok(pidfd) => return greeted(hello, pidfd, peer),
                Err(nix::errno::Errno::ENOPROTOOPT) => {}
                Err(_) => return Step::Close, // it has ended
            }
        }
        self.challenge(hello, peer)
    }

    /// The number of a process that may have ended names the process that has it now. So: a descriptor first, then a
    /// question only the process with that number can answer, then a look whether the descriptor's process still lives.
    fn challenge(&mut self, hello: Hello, peer: Credentials) -> Step {
        let number = i32::try_from(peer.pid).ok().and_then(Pid::from_raw);
        let Some(Ok(pidfd)) = number.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else {
            return Step::Close;
        };
        let mut random = [0; 8];
        if set_socket_passcred(&self.socket, true).is_err()
            || rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()) != Ok(random.len())
        {
            return Step::Refuse(hello.protocol, Status::Failed);
        }
        let nonce = u64::from_ne_bytes(random);
        let challenge = Challenge {
            protocol: hello.protocol,
            nonce,
        };
        let sent = rustix::net::send(
            &self.socket,
            &challenge.encode(),
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        );
        if sent != Ok(Challenge::LENGTH) {
            return Step::Close;
        }
        self.expect = Expect::Answer {
            hello,
            nonce,
            pidfd,
            peer,
        };
        Step::Wait
    }

    fn answer(&mut self, hello: Hello, nonce: u64, pidfd: OwnedFd, peer: Credentials) -> Step {
        let mut bytes = [0; 256];
        let (length, sender) = match self.receive(&mut bytes) {
            Ok(received) => received,
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => {
                self.expect = Expect::Answer {
                    hello,
                    nonce,
                    pidfd,
                    peer,
                };
                return Step::Wait;
            }
            Err(_) => return Step::Close,
        };
        let answered = Challenge::decode(&bytes[..length]).is_ok_and(|answer| answer.nonce == nonce);
        let is_peer = sender == Some(peer);
        if !answered || !is_peer {
            return Step::Refuse(hello.protocol, Status::Identity);
        }
        greeted(hello, pidfd, peer)
    }

    /// One message, and who sent it. There is room for the kernel's word on that alone, which comes before any
    /// descriptor: those are closed unseen.
    fn receive(&self, bytes: &mut [u8]) -> nix::Result<(usize, Option<Credentials>)> {
        let mut space = nix::cmsg_space!(UnixCredentials);
        let mut into = [io::IoSliceMut::new(bytes)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
        let socket = self.socket.as_raw_fd();
        let message = nix_recvmsg::<()>(socket, &mut into, Some(&mut space), flags)?;
        let sender = message.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmCredentials(sender) => Credentials::from_kernel(sender),
            _ => None,
        });
        Ok((message.bytes, sender))
    }

    /// Sends the last word, with one descriptor per object.
    pub fn reply(
        &self,
        protocol: u16,
        status: Status,
        objects: &[ObjectEntry],
        fds: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let mut bytes = [0; LONGEST_REPLY];
        let length = Reply::new(protocol, status, objects).encode(&mut bytes);
        let mut space =
            vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ledger::wire::MOST_OBJECTS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::other("more objects than one message can carry"));
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(
            &self.socket,
            &[io::IoSlice::new(&bytes[..length])],
            &mut control,
            flags,
        )?;
        Ok(())
    }
}

fn greeted(hello: Hello, pidfd: OwnedFd, peer: Credentials) -> Step {
    // After this look the number still belonged to that process, whatever was read by it before.
    if super::process::ended(pidfd.as_fd()) {
        return Step::Close;
    }
    Step::Greeted(Greeted {
        hello,
        pidfd,
        pid: peer.pid,
        uid: peer.uid,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::wire::flags;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, Attach) {
        let flags = SocketFlags::CLOEXEC;
        let (client, daemon) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        (client, Attach::new(daemon, Instant::now()))
    }

    fn hello() -> Hello {
        Hello {
            protocol: PROTOCOL,
            flags: flags::FORKED,
            pid: 1,
            nonce: 7,
            build: [0; 16],
        }
    }

    fn send(client: &OwnedFd, bytes: &[u8]) {
        assert_eq!(
            rustix::net::send(client, bytes, SendFlags::empty()).unwrap(),
            bytes.len()
        );
    }

    #[test]
    fn a_silent_peer_is_waited_for_without_waiting_and_overdue_later() {
        let (client, mut attach) = pair();
        assert!(matches!(attach.step(PeerIdentity::Socket), Step::Wait));
        assert!(!attach.overdue(Instant::now()));
        assert!(attach.overdue(Instant::now() + PATIENCE * 2));
        drop(client);
        assert!(matches!(attach.step(PeerIdentity::Socket), Step::Close));
    }

    #[test]
    fn nonsense_is_hung_up_on_and_another_version_is_told() {
        let (client, mut attach) = pair();
        send(&client, b"GET / HTTP/1.0\r\n");
        assert!(matches!(attach.step(PeerIdentity::Socket), Step::Close));
        let (client, mut attach) = pair();
        send(
            &client,
            &Hello {
                protocol: 9,
                ..hello()
            }
            .encode(),
        );
        assert!(matches!(
            attach.step(PeerIdentity::Socket),
            Step::Refuse(_, Status::Protocol)
        ));
    }

    #[test]
    fn the_kernel_says_who_it_is() {
        let (client, mut attach) = pair();
        send(&client, &hello().encode());
        let Step::Greeted(greeted) = attach.step(PeerIdentity::Socket) else {
            panic!("not greeted")
        };
        assert_eq!((greeted.pid, greeted.hello), (std::process::id(), hello()));
    }

    #[test]
    fn an_older_kernel_is_helped_by_a_challenge() {
        let (client, mut attach) = pair();
        send(&client, &hello().encode());
        assert!(matches!(attach.step(PeerIdentity::Challenge), Step::Wait));
        assert!(
            matches!(attach.step(PeerIdentity::Challenge), Step::Wait),
            "no answer yet"
        );
        let mut bytes = [0; Challenge::LENGTH];
        let (length, _) = rustix::net::recv(&client, &mut bytes[..], RecvFlags::empty()).unwrap();
        assert_eq!(length, Challenge::LENGTH);
        send(&client, &bytes);
        let Step::Greeted(greeted) = attach.step(PeerIdentity::Challenge) else {
            panic!("not greeted")
        };
        assert_eq!(greeted.pid, std::process::id());
    }

    #[test]
    fn a_wrong_answer_to_the_challenge_is_no_identity() {
        let (client, mut attach) = pair();
        send(&client, &hello().encode());
        assert!(matches!(attach.step(PeerIdentity::Challenge), Step::Wait));
        send(
            &client,
            &Challenge {
                protocol: PROTOCOL,
                nonce: 0,
            }
            .encode(),
        );
        assert!(matches!(
            attach.step(PeerIdentity::Challenge),
            Step::Refuse(_, Status::Identity)
        ));
    }

    #[test]
    fn an_answer_by_another_process_is_no_identity() {
        let (client, mut attach) = pair();
        send(&client, &hello().encode());
        assert!(matches!(attach.step(PeerIdentity::Challenge), Step::Wait));
        let mut bytes = [0; Challenge::LENGTH];
        let _ = rustix::net::recv(&client, &mut bytes[..], RecvFlags::empty()).unwrap();
        let answer = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&answer, bytes).unwrap();
        // The right words from the wrong mouth.
        let cat = std::process::Command::new("cat")
            .arg(answer.path())
            .stdout(client)
            .status()
            .unwrap();
        assert!(cat.success());
        assert!(matches!(
            attach.step(PeerIdentity::Challenge),
            Step::Refuse(_, Status::Identity)
        ));
    }
}
