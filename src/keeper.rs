//! `stint keeper`: holds descriptors while no daemon runs, and nothing else. It belongs to a run directory, not to a daemon: a
//! later one, also of another version, asks for what it holds (`keeper/kept.rs`; the words are in `keeper/message.rs` and never
//! change their meaning). It leaves when no daemon is there and no process maps what it holds.

mod kept;
mod message;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SocketFlags, accept_with};

use crate::admission::process::{self, Credentials};
use crate::exit::{Exit, Failure};
pub use kept::{Found, Kept};
use message::{Message, listen, socket_path};

/// Time between two looks whether anybody needs what is held, while no daemon is there.
const PAUSE: Duration = Duration::from_secs(1);
/// A look at every process of a large machine takes its time: at most this part of it is spent so.
const SHARE: u32 = 20;
/// So many looks in a row must find nobody: a client that was just admitted may not have mapped its objects yet.
const LOOKS: u32 = 2;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Have the keeper of this run directory leave
    #[arg(long)]
    pub end: bool,
}

/// Runs the verb. A keeper started by a daemon has a conversation with it on standard input from the beginning.
pub fn main(args: Args, run_dir: Option<PathBuf>) -> Result<Exit, Failure> {
    let run_dir = run_dir.unwrap_or_else(driver::run_dir::default_for_user);
    if args.end {
        end(&run_dir).map_err(Failure::failed)?;
        return Ok(Exit::OK);
    }
    let _ = rustix::process::setsid(); // a leader of a session already: then nobody's signals reach it either
    let _ = rustix::process::chdir("/"); // it may be about to be unmounted
    crate::daemon::raise_descriptor_limit();
    let first = std::io::stdin().as_fd().try_clone_to_owned().ok();
    serve(&run_dir, first.filter(is_ours)).map_err(Failure::failed)?;
    Ok(Exit::OK)
}

/// Has the keeper of a run directory leave, and waits for that. There may be none.
pub fn end(run_dir: &Path) -> io::Result<()> {
    if let Some(found) = Kept::find(run_dir)? {
        found.kept.end();
    }
    Ok(())
}

/// Whether a keeper listens for `run_dir`.
#[cfg(test)]
pub fn answers(run_dir: &Path) -> bool {
    message::answers(&socket_path(run_dir))
}

/// Whether the other end is a process of our own user.
fn is_ours(socket: &OwnedFd) -> bool {
    Credentials::of(socket).is_some_and(|peer| peer.uid == rustix::process::geteuid().as_raw())
}

/// Holds what daemons bring until nobody needs it. `first`: a conversation with the daemon that started us, because there is
/// no keeper, or none that answers; else one that is there stays the keeper.
pub fn serve(run_dir: &Path, first: Option<OwnedFd>) -> io::Result<()> {
    let daemons: Vec<OwnedFd> = first.into_iter().collect();
    let first = !daemons.is_empty();
    let mut keeper = Keeper {
        path: socket_path(run_dir),
        listener: None,
        daemons,
        held: BTreeMap::new(),
        idle_looks: 0,
    };
    if first {
        let _ = std::fs::remove_file(&keeper.path); // its keeper, if it had one, does not answer
    }
    keeper.bind();
    if keeper.listener.is_none() && keeper.daemons.is_empty() {
        return Err(io::Error::other(format!(
            "{} cannot be listened at",
            keeper.path.display()
        )));
    }
    keeper.run();
    Ok(())
}

/// See the module.
struct Keeper {
    path: PathBuf,
    /// With the inode of its path, by which it is told whether the path is still ours.
    listener: Option<(OwnedFd, u64)>,
    daemons: Vec<OwnedFd>,
    held: BTreeMap<String, OwnedFd>,
    /// Looks in a row at which nobody needed what is held.
    idle_looks: u32,
}

impl Keeper {
    fn run(&mut self) {
        let mut next_look = Instant::now() + PAUSE;
        loop {
            self.wait();
            if !self.has_path() {
                self.bind();
            }
            self.accept();
            for daemon in std::mem::take(&mut self.daemons) {
                match self.converse(&daemon) {
                    Ok(true) => self.daemons.push(daemon),
                    // Before the daemon sees the end of the conversation: then there is nothing left of us.
                    Ok(false) => return self.unbind(),
                    Err(_) => next_look = Instant::now() + PAUSE, // it has gone, and another may be on its way
                }
            }
            if !self.daemons.is_empty() {
                self.idle_looks = 0;
                continue;
            }
            if Instant::now() >= next_look {
                let begin = Instant::now();
                self.idle_looks = if self.is_needed() { 0 } else { self.idle_looks + 1 };
                if self.held.is_empty() || self.idle_looks >= LOOKS {
                    return self.unbind();
                }
                next_look = Instant::now() + PAUSE.max(begin.elapsed() * SHARE);
            }
        }
    }

    fn wait(&self) {
        // Woken for nothing, it looks for nothing.
        self.poll(Timespec {
            tv_sec: PAUSE.as_secs() as i64,
            tv_nsec: 0,
        });
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        if let Some((listener, _)) = &self.listener
            && let Ok(daemon) = accept_with(listener, flags)
            && is_ours(&daemon)
        {
            self.daemons.push(daemon);
        }
    }

    /// Does what a daemon asks; `false`: to leave. An error when it has gone.
    fn converse(&mut self, daemon: &OwnedFd) -> io::Result<bool> {
        while let Some((message, fd)) = message::receive(daemon)? {
            match (message, fd) {
                (Message::Put(name), Some(fd)) => drop(self.held.insert(name, fd)),
                (Message::Drop(name), _) => drop(self.held.remove(&name)),
                (Message::Take, _) => self.hand_over(daemon)?,
                (Message::Leave, _) => return Ok(false),
                _ => {}
            }
        }
        Ok(true)
    }

    fn hand_over(&self, daemon: &OwnedFd) -> io::Result<()> {
        for (name, fd) in &self.held {
            message::send(daemon, &Message::Held(name.clone()), Some(fd.as_fd()))?;
        }
        message::send(daemon, &Message::All, None)
    }

    /// Whether any process maps what is held.
    fn is_needed(&self) -> bool {
        let stat = |fd| rustix::fs::fstat(fd).ok().map(|file| (file.st_dev, file.st_ino));
        let inodes: Vec<_> = self.held.values().filter_map(stat).collect();
        let own = std::process::id();
        // A machine may have thousands of processes: a daemon that starts meanwhile is not kept waiting.
        !inodes.is_empty()
            && process::all()
                .any(|pid| self.is_called() || pid != own && process::maps_any(pid, &inodes) == Some(true))
    }

    /// Whether a daemon has something to say.
    fn is_called(&self) -> bool {
        self.poll(Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        })
    }

    fn poll(&self, longest: Timespec) -> bool {
        let listener = self.listener.iter().map(|(listener, _)| listener);
        let sockets = listener.chain(&self.daemons);
        let mut fds: Vec<PollFd<'_>> = sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        matches!(poll(&mut fds, Some(&longest)), Ok(1..))
    }

    fn bind(&mut self) {
        // Where the directory has gone, a daemon that makes it anew is waited for; where another keeper has taken the
        // place, it has what its daemon brought.
        self.listener = listen(&self.path)
            .ok()
            .and_then(|listener| Some((listener, std::fs::symlink_metadata(&self.path).ok()?.ino())));
    }

    fn unbind(&mut self) {
        if self.has_path() {
            let _ = std::fs::remove_file(&self.path); // gone already is as good
        }
        self.listener = None;
    }

    /// Whether daemons find us at our path.
    fn has_path(&self) -> bool {
        match (&self.listener, std::fs::symlink_metadata(&self.path)) {
            (Some((_, ours)), Ok(there)) => there.ino() == *ours,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
