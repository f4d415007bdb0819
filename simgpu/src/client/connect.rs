//! Finding the node or starting it, and the handshake.
//!
//! Of several that start a server at once one gets the place and the others' servers leave; all of them
//! then meet at the one socket. Next file of the walk: `server/conns.rs`.

use super::{ConnectError, Place, start};
use crate::facts::NodeFacts;
use crate::proto::socket::{self, connect, receive, send, set_timeouts};
use crate::proto::{Hello, MAGIC, VERSION, Welcome};
use crate::server::is_trusted;
use crate::shm::map::Map;
use crate::shm::segment::Board;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a node may take to appear.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long one that was started may take before another is.
const RESTART: Duration = Duration::from_secs(2);

/// A fresh connection.
pub(super) struct Link {
    pub socket: OwnedFd,
    /// Copied, so that it outlives forks and the server.
    pub facts: Box<NodeFacts>,
    pub board: Map<Board>,
    pub number: u64,
    /// What else came: nothing, or segment and kick.
    pub rest: Vec<OwnedFd>,
}

pub(super) fn establish(place: &Place, role: u32, share: u32) -> Result<Link, ConnectError> {
    let deadline = Instant::now() + PATIENCE;
    let mut started: Option<Instant> = None;
    let mut pause = Duration::from_micros(500);
    loop {
        let error = match attempt(place, role, share) {
            Err(ConnectError::NoNode(error)) => error,
            other => return other,
        };
        let Some(server) = place.server.as_deref() else {
            return Err(ConnectError::NoNode(error));
        };
        if Instant::now() > deadline {
            return Err(ConnectError::NoNode(error));
        }
        if started.is_none_or(|at| at.elapsed() > RESTART) {
            let arguments = ["serve".as_ref(), "--socket".as_ref(), place.socket.as_os_str()];
            start(server, &arguments).map_err(ConnectError::NoNode)?;
            started = Some(Instant::now());
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn attempt(place: &Place, role: u32, share: u32) -> Result<Link, ConnectError> {
    let no_node = ConnectError::NoNode;
    let bad = |text| no_node(io::Error::new(io::ErrorKind::InvalidData, text));
    // The installed node's directory is root's to make; seen from a container it may look like nobody's.
    let system = |directory: &&Path| directory.parent() != Some(Path::new(driver::run_dir::SYSTEM));
    if let Some(directory) = place.socket.parent().filter(system) {
        match is_trusted(directory) {
            Ok(true) => {}
            Ok(false) => return Err(ConnectError::Untrusted),
            Err(error) => return Err(no_node(error)),
        }
    }
    let socket = connect(&place.socket, PATIENCE.as_secs() as i64).map_err(no_node)?;
    send(
        socket.as_fd(),
        &Hello {
            magic: MAGIC,
            version: VERSION,
            role,
            share,
            zero: 0,
        },
        &[],
    )
    .map_err(no_node)?;
    let (welcome, fds): (Welcome, _) = match receive(socket.as_fd()) {
        Err(e) if e.kind() == io::ErrorKind::InvalidData => return Err(ConnectError::Version),
        other => other.map_err(no_node)?,
    };
    if welcome.magic != MAGIC || welcome.version != VERSION {
        return Err(ConnectError::Version);
    }
    let mut fds = fds.into_iter();
    let (Some(facts), Some(board)) = (fds.next(), fds.next()) else {
        return Err(bad("no facts"));
    };
    let facts: Map<NodeFacts> = Map::open(facts, false).map_err(no_node)?;
    let board = Map::open(board, false).map_err(no_node)?;
    set_timeouts(socket.as_fd(), 0).map_err(no_node)?;
    if facts.devices().is_empty() {
        return Err(bad("no devices"));
    }
    Ok(Link {
        socket,
        facts: Box::new(*facts),
        board,
        number: welcome.number,
        rest: fds.collect(),
    })
}

impl Link {
    pub fn is_dead(&self) -> bool {
        socket::hung_up(self.socket.as_fd())
    }
}
