//! The conversation with the daemon: hello, perhaps a challenge, one reply with descriptors. The messages are in
//! `ledger/src/wire.rs`.
//!
//! Next: `attach/objects.rs`, which maps what the descriptors hold.

use core::mem::MaybeUninit;
use core::time::Duration;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use driver::run_dir::ATTACH_SOCKET;
use ledger::wire::{Challenge, Hello, LONGEST_REPLY, MOST_OBJECTS, PROTOCOL, Reply, Status, flags};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, UCred, connect, recvmsg,
    sendmsg, socket_with,
};

use crate::attach::objects::{self, Admitted};
use crate::charge::monotonic_nanoseconds;

/// How long a daemon may be silent.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two attempts to reach a daemon that is not there, or just starting.
const PAUSE: Duration = Duration::from_millis(20);

/// An instant, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy)]
struct Deadline(u64);

impl Deadline {
    fn left(self) -> Option<Duration> {
        let left = self.0.checked_sub(monotonic_nanoseconds())?;
        // A timeout of 0 would mean "for ever".
        (left > 0).then(|| Duration::from_nanos(left).max(Duration::from_micros(1)))
    }
}

/// Asks the node of `run_dir` to admit this process. `None` when no daemon answered in time; accounts come only with
/// [`Status::Admitted`].
pub fn ask(run_dir: &Path, nonce: u64, forked: bool) -> Option<(Status, Vec<Admitted>)> {
    let deadline = Deadline(monotonic_nanoseconds() + PATIENCE.as_nanos() as u64);
    let path = run_dir.join(ATTACH_SOCKET);
    let address = SocketAddrUnix::new(path.as_os_str().as_bytes()).ok()?;
    let hello = hello(nonce, forked).encode();
    loop {
        match once(&address, &hello, deadline) {
            Ok(answer) => return Some(answer),
            // Nobody listens, or who listened went away: a daemon may be starting.
            Err(_) => {
                let pause = PAUSE.min(deadline.left()?);
                let pause = rustix::thread::Timespec {
                    tv_sec: 0,
                    tv_nsec: pause.as_nanos() as i64,
                };
                let _ = rustix::thread::nanosleep(&pause);
            }
        }
    }
}

fn hello(nonce: u64, forked: bool) -> Hello {
    let mut build = [0; 16];
    let text = env!("CARGO_PKG_VERSION").as_bytes();
    let length = text.len().min(build.len());
    build[..length].copy_from_slice(&text[..length]);
    Hello {
        protocol: PROTOCOL,
        flags: if forked { flags::FORKED } else { 0 },
        pid: std::process::id(),
        nonce,
        build,
    }
}

fn once(
    address: &SocketAddrUnix,
    hello: &[u8],
    deadline: Deadline,
) -> Result<(Status, Vec<Admitted>), Errno> {
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    again(&socket, deadline, || connect(&socket, address))?;
    again(&socket, deadline, || {
        rustix::net::send(&socket, hello, SendFlags::NOSIGNAL)
    })?;
    let mut bytes = [0; LONGEST_REPLY];
    loop {
        let (length, descriptors) = receive(&socket, &mut bytes, deadline)?;
        let message = &bytes[..length];
        if Challenge::decode(message).is_ok() {
            answer(&socket, message, deadline)?;
            continue;
        }
        let reply = Reply::decode(message).map_err(|_| Errno::PROTO)?;
        if reply.status != Status::Admitted {
            return Ok((reply.status, Vec::new()));
        }
        // Objects we cannot map are a refusal: to go on without them would be to go on uncapped.
        return Ok(match objects::map(reply.objects(), descriptors) {
            Some(accounts) => (Status::Admitted, accounts),
            None => (Status::Failed, Vec::new()),
        });
    }
}

/// Makes a blocking call that ends at the deadline, whatever signals arrive.
fn again<T>(
    socket: &OwnedFd,
    deadline: Deadline,
    mut call: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    loop {
        let left = deadline.left().ok_or(Errno::TIMEDOUT)?;
        set_socket_timeout(socket, Timeout::Send, Some(left))?;
        set_socket_timeout(socket, Timeout::Recv, Some(left))?;
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// One message and the descriptors that came with it.
fn receive(socket: &OwnedFd, bytes: &mut [u8], deadline: Deadline) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = [const { MaybeUninit::uninit() }; rustix::cmsg_space!(ScmRights(MOST_OBJECTS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let length = again(socket, deadline, || {
        recvmsg(
            socket,
            &mut [IoSliceMut::new(bytes)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
        .map(|message| message.bytes)
    })?;
    if length == 0 {
        return Err(Errno::CONNRESET);
    }
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok((length, descriptors))
}

/// Says a challenge again, with credentials that the kernel vouches for.
fn answer(socket: &OwnedFd, challenge: &[u8], deadline: Deadline) -> Result<(), Errno> {
    let credentials = UCred {
        pid: rustix::process::getpid(),
        uid: rustix::process::geteuid(),
        gid: rustix::process::getegid(),
    };
    let mut space = [const { MaybeUninit::uninit() }; rustix::cmsg_space!(ScmCredentials(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmCredentials(credentials));
    again(socket, deadline, || {
        sendmsg(
            socket,
            &[IoSlice::new(challenge)],
            &mut control,
            SendFlags::NOSIGNAL,
        )
    })?;
    Ok(())
}
