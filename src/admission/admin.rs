//! One connection to the admin socket: lines in, lines out, never waiting. What a line means is in `protocol.rs`, what is
//! answered in `daemon/answer.rs`.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use serde::Serialize;

use super::process::{Credentials, same_namespace};
use crate::protocol::{LONGEST_REQUEST, Launch};

/// A caller that leaves so much unread loses the connection.
const MOST_UNREAD: usize = 8 << 20;

/// A connection.
#[derive(Debug)]
pub struct Admin {
    stream: UnixStream,
    peer: Option<Credentials>,
    /// Bytes of a line whose end has not come.
    unfinished: Vec<u8>,
    unsent: Vec<u8>,
    /// Every later event goes there too.
    pub follows: bool,
    /// A launch that waits until names are known, and since when.
    pub waits: Option<(Launch, Instant)>,
    finishing: bool,
}

/// Why a connection is over.
#[derive(Debug, thiserror::Error)]
pub enum Over {
    /// One side did, and nothing was left to say.
    #[error("it hung up")]
    HungUp,
    #[error("it sent a line longer than {LONGEST_REQUEST} bytes")]
    LongLine,
    #[error("it does not read")]
    NotReading,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Admin {
    /// Takes over an accepted stream.
    pub fn new(stream: UnixStream) -> io::Result<Admin> {
        stream.set_nonblocking(true)?;
        Ok(Admin {
            peer: Credentials::of(&stream),
            stream,
            unfinished: Vec::new(),
            unsent: Vec::new(),
            follows: false,
            waits: None,
            finishing: false,
        })
    }

    /// Who connected.
    pub fn peer(&self) -> Option<Credentials> {
        self.peer
    }

    pub fn socket(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// One line, where one has come. What follows it stays in the socket, which therefore is readable again: who sends
    /// many requests at once is answered in turn with others.
    pub fn line(&mut self) -> Result<Option<String>, Over> {
        let mut bytes = [0; 4096];
        let come = match recv(&self.stream, &mut bytes, RecvFlags::PEEK) {
            Ok((0, _)) => return Err(Over::HungUp),
            Ok((length, _)) => &bytes[..length.min(4096)],
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(error) => return Err(Over::Io(error.into())),
        };
        let end = come.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(come.len(), |end| end + 1);
        self.stream.read_exact(&mut bytes[..length])?; // it is there
        self.unfinished.extend_from_slice(&bytes[..length]);
        if self.unfinished.len() > LONGEST_REQUEST {
            return Err(Over::LongLine);
        }
        Ok(end.map(|_| {
            let line = std::mem::take(&mut self.unfinished);
            String::from_utf8_lossy(line.trim_ascii_end()).into_owned()
        }))
    }

    /// Sends one line, or keeps it until the caller reads.
    pub fn send(&mut self, value: &impl Serialize) -> Result<(), Over> {
        serde_json::to_writer(&mut self.unsent, value).map_err(io::Error::from)?;
        self.unsent.push(b'\n');
        if self.unsent.len() > MOST_UNREAD {
            return Err(Over::NotReading);
        }
        self.flush()
    }

    /// Sends what was kept, as far as it goes.
    pub fn flush(&mut self) -> Result<(), Over> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(length) => drop(self.unsent.drain(..length)),
                Err(error) if again(&error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        if self.finishing && self.unsent.is_empty() {
            Err(Over::HungUp)
        } else {
            Ok(())
        }
    }

    /// Hangs up once everything kept has been sent.
    pub fn finish(&mut self) -> Result<(), Over> {
        self.finishing = true;
        self.flush()
    }

    /// Whether something is kept until the caller reads.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }
}

fn again(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// Whether the node's own namespaces are the caller's: a root of some container is not root here.
pub fn in_our_namespaces(pid: u32) -> bool {
    ["user", "pid"]
        .into_iter()
        .all(|kind| same_namespace(pid, kind) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    #[test]
    fn lines_are_put_together_and_taken_apart() {
        let (mut caller, daemon) = UnixStream::pair().unwrap();
        let mut admin = Admin::new(daemon).unwrap();
        assert_eq!(admin.line().unwrap(), None);
        caller.write_all(b"{\"a\"").unwrap();
        assert_eq!(admin.line().unwrap(), None);
        caller.write_all(b":1}\n{}\n{").unwrap();
        assert_eq!(admin.line().unwrap().unwrap(), "{\"a\":1}");
        assert_eq!(admin.line().unwrap().unwrap(), "{}");
        assert_eq!(admin.line().unwrap(), None);
        admin.send(&"x").unwrap();
        let mut line = String::new();
        BufReader::new(&caller).read_line(&mut line).unwrap();
        assert_eq!(line, "\"x\"\n");
        drop(caller);
        assert!(matches!(admin.line(), Err(Over::HungUp)));
    }

    #[test]
    fn a_caller_that_does_not_read_loses_the_connection_and_not_our_time() {
        let (_caller, daemon) = UnixStream::pair().unwrap();
        let mut admin = Admin::new(daemon).unwrap();
        let line = "x".repeat(1 << 20);
        let ends = std::iter::repeat_with(|| admin.send(&line))
            .take(64)
            .find_map(Result::err);
        assert!(matches!(ends, Some(Over::NotReading)));
    }

    #[test]
    fn a_line_without_end_is_an_error() {
        let (mut caller, daemon) = UnixStream::pair().unwrap();
        let mut admin = Admin::new(daemon).unwrap();
        let mut over = None;
        for _ in 0..1000 {
            caller.write_all(&[b'x'; 1000]).unwrap();
            over = admin.line().err();
            if over.is_some() {
                break;
            }
        }
        assert!(matches!(over, Some(Over::LongLine)));
    }
}
