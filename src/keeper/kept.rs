//! The daemon's end of the conversation with its keeper.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::is_ours;
use super::message::{Message, PATIENCE, reach, receive, send, socket_path, wait};
use crate::daemon::OWN_VARIABLES;

/// Descriptors with their names.
type Named = Vec<(String, OwnedFd)>;

/// A keeper that is there hands over what it holds within this time, or something is badly wrong with it.
const HANDING_OVER: Duration = Duration::from_secs(10);

/// A keeper that holds copies of our descriptors.
#[derive(Debug)]
pub struct Kept {
    socket: OwnedFd,
    /// Where we started it: to be waited for when it ends, so that it leaves no zombie.
    child: Option<Child>,
}

/// A keeper that was there.
#[derive(Debug)]
pub struct Found {
    pub kept: Kept,
    /// What it holds.
    pub held: Named,
    /// Names of what it holds that did not arrive: we may have no more descriptors open.
    pub missing: Vec<String>,
}

impl Kept {
    /// The keeper of a run directory and what it holds; `None`: there is none.
    pub fn find(run_dir: &Path) -> io::Result<Option<Found>> {
        let path = socket_path(run_dir);
        let Ok(socket) = reach(&path) else {
            return Ok(None);
        };
        if !is_ours(&socket) {
            return Err(io::Error::other(format!("{} is another user's", path.display())));
        }
        send(&socket, &Message::Take, None)?;
        let deadline = Instant::now() + HANDING_OVER;
        let (mut held, mut missing) = (Vec::new(), Vec::new());
        loop {
            match receive(&socket)? {
                Some((Message::Held(name), Some(fd))) => held.push((name, fd)),
                Some((Message::Held(name), None)) => missing.push(name),
                Some((Message::All, _)) => {
                    let kept = Kept { socket, child: None };
                    return Ok(Some(Found { kept, held, missing }));
                }
                Some(_) => {}
                None => wait(&socket, PollFlags::IN, deadline)?,
            }
        }
    }

    /// Starts a keeper for `run_dir` and returns at once: what is said to it before it listens waits for it.
    pub fn start(run_dir: &Path) -> io::Result<Kept> {
        let flags = SocketFlags::CLOEXEC;
        let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        rustix::io::ioctl_fionbio(&theirs, true)?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("keeper")
            .arg("--run-dir")
            .arg(std::path::absolute(run_dir)?);
        for variable in OWN_VARIABLES.iter().chain(&["LD_PRELOAD", "LD_LIBRARY_PATH"]) {
            command.env_remove(variable);
        }
        command
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn()?;
        Ok(Kept {
            socket,
            child: Some(child),
        })
    }

    /// Readable when the keeper has gone: it says nothing unasked.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Has it hold a copy of `fd` under `name`.
    pub fn put(&self, name: &str, fd: BorrowedFd<'_>) -> io::Result<()> {
        send(&self.socket, &Message::Put(name.into()), Some(fd))
    }

    /// Has it let go of `name`.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        send(&self.socket, &Message::Drop(name.into()), None)
    }

    /// Ends it as far as it is ours, whatever it is doing.
    pub fn discard(mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill(); // it has ended: so be it
            let _ = child.wait();
        }
    }

    /// Has it end, and waits for that.
    pub fn end(mut self) {
        let deadline = Instant::now() + PATIENCE;
        if send(&self.socket, &Message::Leave, None).is_ok() {
            while matches!(receive(&self.socket), Ok(None | Some(_)))
                && wait(&self.socket, PollFlags::IN, deadline).is_ok()
            {}
        }
        if let Some(mut child) = self.child.take() {
            let _ = child.kill(); // it has ended: so be it
            let _ = child.wait();
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.try_wait(); // it lives on, or has ended and is gone now
        }
    }
}
