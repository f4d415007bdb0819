//! The client's side of the attach protocol: one conversation with the daemon, and the descriptors that come of it.
//!
//! Read next: `wire.rs`, the messages; and `mapping.rs`, what to do with a descriptor. The other side is the daemon's
//! `admission`.
//!
//! This is the one part of the crate that waits: for a daemon that is starting, at most [`PATIENCE`] in all.

use core::mem::MaybeUninit;
use core::time::Duration;

use rustix::fd::OwnedFd;
use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, UCred, connect, recvmsg,
    sendmsg, socket_with,
};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::wire::{Challenge, Hello, LONGEST_REPLY, MOST_OBJECTS, ObjectEntry, PROTOCOL, Reply, Status};

/// How long a daemon may be silent.
pub const PATIENCE: Duration = Duration::from_secs(2);
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

fn monotonic_nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(now.tv_nsec as u64)
}

/// The hello of this process; `nonce` is one number for the whole run of its program.
#[must_use]
pub fn hello(nonce: u64, flags: u16) -> Hello {
    let mut build = [0; 16];
    let text = env!("CARGO_PKG_VERSION").as_bytes();
    let length = text.len().min(build.len());
    build[..length].copy_from_slice(&text[..length]);
    Hello {
        protocol: PROTOCOL,
        flags,
        pid: rustix::process::getpid().as_raw_pid().unsigned_abs(),
        nonce,
        build,
    }
}

/// Asks the daemon that listens at `path` to admit this process. `None` when none answered in time. `object` gets every
/// object of a [`Status::Admitted`] reply; what it cannot use it refuses with `false`, and the answer is
/// [`Status::Failed`]: to go on without an object would be to go on uncapped.
pub fn ask(
    path: &[u8],
    hello: &Hello,
    mut object: impl FnMut(ObjectEntry, OwnedFd) -> bool,
) -> Option<Status> {
    let deadline = Deadline(monotonic_nanoseconds() + PATIENCE.as_nanos() as u64);
    let address = SocketAddrUnix::new(path).ok()?;
    let hello = hello.encode();
    loop {
        match once(&address, &hello, deadline, &mut object) {
            Ok(status) => return Some(status),
            // Nobody listens, or who listened went away: a daemon may be starting.
            Err(_) => {
                let pause = PAUSE.min(deadline.left()?);
                let pause = Timespec {
                    tv_sec: 0,
                    tv_nsec: pause.as_nanos() as i64,
                };
                let _ = rustix::thread::nanosleep(&pause);
            }
        }
    }
}

type Descriptors = [Option<OwnedFd>; MOST_OBJECTS];

fn once(
    address: &SocketAddrUnix,
    hello: &[u8],
    deadline: Deadline,
    object: &mut impl FnMut(ObjectEntry, OwnedFd) -> bool,
) -> Result<Status, Errno> {
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
            return Ok(reply.status);
        }
        let mut descriptors = descriptors.into_iter();
        for entry in reply.objects() {
            let Some(descriptor) = descriptors.next().flatten() else {
                return Ok(Status::Failed);
            };
            if !object(entry, descriptor) {
                return Ok(Status::Failed);
            }
        }
        return Ok(Status::Admitted);
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

/// One message and the descriptors that came with it, in their order.
fn receive(socket: &OwnedFd, bytes: &mut [u8], deadline: Deadline) -> Result<(usize, Descriptors), Errno> {
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
    let mut descriptors = [const { None }; MOST_OBJECTS];
    let mut places = descriptors.iter_mut();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            for (right, place) in rights.zip(&mut places) {
                *place = Some(right);
            }
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
