//! Who is connected: arrival, greeting, death.
//!
//! Death is seen by pidfd and by the socket's end, whichever comes first: a forked child may keep the
//! socket open, and a pid alone may be another's. Next file of the walk: `server/request.rs`.

use super::Server;
use super::intake::Intake;
use crate::proto::socket::{self, receive, send};
use crate::proto::{Hello, MAGIC, VERSION, Welcome, role};
use crate::shm::clock::host_now;
use crate::shm::map::Map;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Connections of one process.
const MAX_PER_PROCESS: usize = 64;
/// Connections taken before work is looked at again.
const ACCEPTS: usize = 64;
/// Kicks of one client in a second, far above what waiting can need.
const MAX_KICKS: u32 = 200_000;

pub(super) struct Conn {
    pub socket: OwnedFd,
    /// Watched for the process's end; closed with the connection.
    pidfd: OwnedFd,
    pub pid: u32,
    pub uid: u32,
    generation: u32,
    pub part: Part,
}

pub(super) enum Part {
    /// Has not said what it wants.
    Greeting,
    Observer,
    Client(Box<Intake>),
}

impl Conn {
    pub fn intake(&self) -> Option<&Intake> {
        if let Part::Client(intake) = &self.part {
            Some(intake)
        } else {
            None
        }
    }

    pub fn intake_mut(&mut self) -> Option<&mut Intake> {
        if let Part::Client(intake) = &mut self.part {
            Some(intake)
        } else {
            None
        }
    }
}

/// What an epoll event is about: kind (4 bits), connection (28 bits), its generation (32 bits).
const KIND: u64 = 0xf << 60;
pub(super) const LISTENER: u64 = 1 << 60;
const SOCKET: u64 = 2 << 60;
const DEATH: u64 = 3 << 60;
const KICK: u64 = 4 << 60;

impl Server {
    /// Serves what one epoll event is about.
    pub(super) fn serve(&mut self, tag: u64) {
        if tag & KIND == LISTENER {
            return self.accept();
        }
        let (i, generation) = ((tag & !KIND) as usize >> 32, tag as u32);
        let conn = self.conns.get_mut(i).and_then(Option::as_mut);
        // An event may outlive what it is about.
        let Some(conn) = conn.filter(|c| c.generation == generation) else {
            return;
        };
        let alive = match (tag & KIND, &mut conn.part) {
            (DEATH, _) => false,
            (KICK, Part::Client(intake)) => intake.take_kick(),
            (_, Part::Greeting) => self.welcome(i).is_ok(),
            _ => self.request(i).is_ok(),
        };
        if !alive {
            self.drop_conn(i);
        }
    }

    pub(super) fn accept(&mut self) {
        // A few at a time: the others wait for this thread too.
        for _ in 0..ACCEPTS {
            let Ok(socket) = socket::accept(self.place.listener()) else {
                return;
            };
            // Whoever may not come in sees the socket close.
            let _ = self.admit(socket);
        }
    }

    fn admit(&mut self, socket: OwnedFd) -> io::Result<()> {
        let peer = socket::peer(socket.as_fd())?;
        let pid = peer.pid as u32;
        let same = self.conns.iter().flatten().filter(|c| c.pid == pid).count();
        let all = self.conns.iter().flatten().count();
        if !self.place.admits(peer.uid) || same >= MAX_PER_PROCESS || all >= self.max_conns {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let pidfd = socket::peer_pidfd(socket.as_fd())?;
        self.generation = self.generation.wrapping_add(1);
        let i = self.model.add_client(100);
        if self.conns.len() <= i {
            self.conns.resize_with(i + 1, || None);
        }
        let tag = (i as u64) << 32 | self.generation as u64;
        let watched = self
            .watch(socket.as_fd(), SOCKET | tag)
            .and_then(|()| self.watch(pidfd.as_fd(), DEATH | tag));
        let (uid, generation) = (peer.uid, self.generation);
        self.conns[i] = Some(Conn {
            socket,
            pidfd,
            pid,
            uid,
            generation,
            part: Part::Greeting,
        });
        if self.unused_since.is_some() {
            self.unused_since = None;
        }
        if watched.is_err() {
            self.drop_conn(i);
        }
        watched
    }

    fn welcome(&mut self, i: usize) -> io::Result<()> {
        let Some(conn) = self.conns[i].as_mut() else {
            return Ok(());
        };
        let (hello, _): (Hello, _) = receive(conn.socket.as_fd())?;
        let welcome = Welcome {
            magic: MAGIC,
            version: VERSION,
            zero: 0,
            number: self.welcomed,
        };
        if hello.magic != MAGIC || hello.version != VERSION {
            // So that it can say why.
            send(conn.socket.as_fd(), &welcome, &[])?;
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (facts, board) = (self.facts.fd(), self.board.fd());
        if hello.role == role::OBSERVER {
            conn.part = Part::Observer;
            return send(conn.socket.as_fd(), &welcome, &[facts, board]);
        }
        self.welcomed += 1;
        self.model.set_share(i, hello.share);
        let intake = Intake {
            segment: Map::create(c"stint-sim-client")?,
            kick: eventfd()?,
            head: 0,
            last_stamp: self.clock.now(),
            streams: 0,
            host_calls: 0,
            kicks: 0,
            kicks_second: 0,
        };
        let fds = [facts, board, intake.segment.fd(), intake.kick.as_fd()];
        send(conn.socket.as_fd(), &welcome, &fds)?;
        let tag = (i as u64) << 32 | conn.generation as u64;
        let kick = intake.kick.as_raw_fd();
        conn.part = Part::Client(Box::new(intake));
        // SAFETY: the descriptor lives in the connection that was just stored.
        self.watch(unsafe { BorrowedFd::borrow_raw(kick) }, KICK | tag)
    }

    /// Everything of a connection goes: running work, queues, memory, objects, descriptors. Its truth
    /// stays.
    pub(super) fn drop_conn(&mut self, i: usize) {
        let Some(conn) = self.conns.get_mut(i).and_then(Option::take) else {
            return;
        };
        self.pending.retain(|p| p.1 != i);
        let now = self.clock.now();
        let counted = conn.intake().map(|intake| self.own_counts(intake));
        let truths = self.model.remove_client(i, now, &mut self.out);
        let uses = self.capacity.release(i);
        self.objects.release(i);
        for (device, truth) in truths.into_iter().enumerate() {
            let mut row = Server::row(conn.pid, device, &truth, uses[device], now);
            if let Some(counted) = &counted {
                counted[device].add_to(&mut row);
            }
            (row.used_bytes, row.busy_permille, row.exited) = (0, 0, true);
            row.sampled_permille = 0;
            self.dead.add(row);
            self.show_memory(device);
        }
        self.publish();
        drop(conn.pidfd);
        if self.linger_ns > 0 && self.conns.iter().all(Option::is_none) {
            self.unused_since = Some(host_now());
        }
    }
}

impl Intake {
    /// Takes the kick; false when they come faster than any waiting could need.
    fn take_kick(&mut self) -> bool {
        let mut count = 0u64;
        // SAFETY: eight bytes into a u64; the descriptor is a non-blocking eventfd.
        unsafe { libc::read(self.kick.as_raw_fd(), (&raw mut count).cast(), 8) };
        let second = host_now() / 1_000_000_000;
        if second != self.kicks_second {
            (self.kicks_second, self.kicks) = (second, 0);
        }
        self.kicks += 1;
        self.kicks <= MAX_KICKS
    }
}

fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; the descriptor is new and owned by nobody else.
    unsafe {
        match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// Allows as many descriptors as the system lets us; gives how many connections they serve.
pub(super) fn raise_descriptor_limit() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 1024,
        rlim_max: 1024,
    };
    // SAFETY: `limit` is valid for both calls; failure leaves what was there.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        let raised = libc::rlimit {
            rlim_cur: limit.rlim_max,
            ..limit
        };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 {
            limit = raised;
        }
    }
    // Four each, shared objects and our own beside them.
    (limit.rlim_cur.min(1 << 16) as usize).saturating_sub(128) / 6
}
