//! The words between a daemon and its keeper: one text and at most one descriptor a packet. A keeper outlives the daemon that
//! started it, so a word may be added here and never changed; one that is not known is passed over.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, recvmsg,
    sendmsg, socket_with,
};

/// Name of the keeper's socket in the run directory.
const SOCKET: &str = "keeper.sock";
/// Longest text.
const LONGEST: usize = 512;
/// Who takes nothing off the socket for so long is given up: either end only ever copies descriptors.
pub const PATIENCE: Duration = Duration::from_millis(500);

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// "Hold this." With a descriptor.
    Put(String),
    /// "Let go of that."
    Drop(String),
    /// "What do you hold?" Answered by any number of [`Message::Held`] and one [`Message::All`].
    Take,
    /// "Let go of everything and end."
    Leave,
    /// With a descriptor.
    Held(String),
    All,
    /// Of a later version.
    Unknown,
}

impl Message {
    fn text(&self) -> String {
        match self {
            Message::Put(name) => format!("put {name}"),
            Message::Drop(name) => format!("drop {name}"),
            Message::Take => "take".into(),
            Message::Leave => "leave".into(),
            Message::Held(name) => format!("held {name}"),
            Message::All => "all".into(),
            Message::Unknown => String::new(),
        }
    }

    fn of(text: &str) -> Message {
        let (verb, name) = text.split_once(' ').unwrap_or((text, ""));
        match verb {
            "put" => Message::Put(name.into()),
            "drop" => Message::Drop(name.into()),
            "take" => Message::Take,
            "leave" => Message::Leave,
            "held" => Message::Held(name.into()),
            "all" => Message::All,
            _ => Message::Unknown,
        }
    }
}

/// Where the keeper of a run directory listens.
pub fn socket_path(run_dir: &Path) -> PathBuf {
    run_dir.join(SOCKET)
}

/// A socket at `path` for our user alone, in place of one that nobody listens at.
pub fn listen(path: &Path) -> io::Result<OwnedFd> {
    if answers(path) {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    let _ = std::fs::remove_file(path); // there is none: as it should be
    let socket = socket(SocketFlags::NONBLOCK)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    rustix::net::listen(&socket, 16)?;
    Ok(socket)
}

/// Whether a keeper listens at `path`.
pub fn answers(path: &Path) -> bool {
    reach(path).is_ok()
}

/// A connection to the keeper at `path`.
pub fn reach(path: &Path) -> io::Result<OwnedFd> {
    let socket = socket(SocketFlags::NONBLOCK)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

fn socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    let flags = flags | SocketFlags::CLOEXEC;
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        flags,
        None,
    )?)
}

/// Says something. Where there is no room it waits for some, for at most [`PATIENCE`].
pub fn send(socket: &OwnedFd, message: &Message, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match send_now(socket, message, fd) {
            Err(Errno::AGAIN) => wait(socket, PollFlags::OUT, deadline)?,
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Waits until `socket` is ready, but not after `deadline`.
pub fn wait(socket: &OwnedFd, ready: PollFlags, deadline: Instant) -> io::Result<()> {
    let left = deadline
        .checked_duration_since(Instant::now())
        .ok_or(io::ErrorKind::TimedOut)?;
    let left = Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: i64::from(left.subsec_nanos()),
    };
    match poll(&mut [PollFd::new(socket, ready)], Some(&left)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn send_now(socket: &OwnedFd, message: &Message, fd: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
    let text = message.text();
    let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let flags = SendFlags::NOSIGNAL;
    sendmsg(socket, &[io::IoSlice::new(text.as_bytes())], &mut control, flags)?;
    Ok(())
}

/// What was said, and the descriptor with it; `None`: nothing yet. An error when the other has gone.
pub fn receive(socket: &OwnedFd) -> io::Result<Option<(Message, Option<OwnedFd>)>> {
    let mut bytes = [0; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [io::IoSliceMut::new(&mut bytes)];
    let length = match recvmsg(socket.as_fd(), &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
        Ok(message) if message.bytes == 0 => return Err(io::ErrorKind::ConnectionReset.into()),
        Ok(message) => message.bytes,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let fd = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok(Some((
        Message::of(&String::from_utf8_lossy(&bytes[..length])),
        fd,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_later_version_is_passed_over() {
        for message in [
            Message::Put("a.1".into()),
            Message::Drop("a 1".into()),
            Message::Take,
            Message::Leave,
            Message::Held("x".into()),
            Message::All,
        ] {
            assert_eq!(Message::of(&message.text()), message);
        }
        assert_eq!(Message::of("freeze 7"), Message::Unknown);
    }
}
