//! The admin socket: one JSON object a line, both ways. What the CLI (`status`, `top`, `events`, `run`, `demo`) asks and
//! what the daemon answers (`src/admission/admin.rs`). The node document is in `protocol/node.rs`.

pub mod drain;
pub mod node;
pub mod recommend;
pub mod reload;
pub mod set;
pub mod why;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::admission::process::Credentials;
use crate::cli::Driver;
use crate::events::Event;
use crate::exit::{Exit, Failure};
use drain::{Drain, Drained};
use node::Node;
use recommend::Recommendations;
use reload::Reloaded;
use set::{Changed, Set};
use why::Why;

/// Name of the admin socket in the run directory.
pub const SOCKET: &str = "stint.sock";

/// A daemon answers at once, but for a launch whose user has to be looked up first, which takes 5 s at most.
const PATIENCE: Duration = Duration::from_secs(10);

/// A line from a caller longer than this is an error.
pub const LONGEST_REQUEST: usize = 64 * 1024;

/// What a caller may ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// The node document. Answer: `{"ok": {stint.node/v1}}`.
    Status,
    /// The event log. Answer: `{"ok": "events"}`, then one `stint.event/v1` a line: those kept, and with `follow` every
    /// later one until the caller goes. A caller that does not read loses the connection, not the daemon's time.
    Events { follow: bool },
    /// Makes the calling process the head of a launch: clients whose chain of parents reaches it belong to `tenant`.
    /// Answer: `{"ok": Launched}`.
    Launch(Launch),
    /// Changes what a tenant or account has. Answer: `{"ok": {stint.set/v1}}`.
    Set(Set),
    /// Reads the quota file again. Answer: `{"ok": {stint.reload/v1}}`.
    Reload,
    /// The rule in force for a tenant, account or pid, and its last refusal. Answer: `{"ok": {stint.why/v1}}`.
    Why { subject: String },
    /// What a tenant or account used, or all of them, and the cap that would fit. Answer: `{"ok": {stint.recommend/v1}}`.
    Recommend {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<String>,
    },
    /// Closes the node or a device to newcomers, opens it, or shows who is there. Answer: `{"ok": {stint.drain/v1}}`.
    Drain(Drain),
}

/// What `stint run` asks for. Absent: as the caller would have it anyway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Cap per device as written on the command line, for example `8GiB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Guaranteed part of the compute, for example `30%`. Checked and reported as an event, not in force yet; so are the
    /// next two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// `low`, `normal` or `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
}

/// What a launch was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launched {
    pub tenant: String,
    pub account: String,
    pub driver: Driver,
    /// Exact cap of the account on each device.
    pub devices: Vec<LaunchedDevice>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchedDevice {
    pub index: u32,
    pub uuid: String,
    pub cap_bytes: u64,
}

/// The first line of every answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer<T> {
    Ok(T),
    Error(Refused),
}

/// Why a request was not done, and the exit code the command ends with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub exit: u8,
    pub message: String,
}

/// A caller's end of the admin socket.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<UnixStream>,
    path: PathBuf,
    /// How long an answer is waited for.
    patience: Duration,
}

impl Connection {
    /// Connects to the node in `run_dir`. No daemon there: exit 69; not allowed to talk to it: exit 77.
    pub fn open(run_dir: &Path) -> Result<Connection, Failure> {
        let path = run_dir.join(SOCKET);
        match UnixStream::connect(&path) {
            Ok(stream) => Ok(Connection {
                stream: BufReader::new(stream),
                path,
                patience: PATIENCE,
            }),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Err(Failure::not_permitted(closed(&path)))
            }
            Err(error) => Err(Failure::unreachable(format!(
                "no daemon answers at {} ({error}): start one with `stint daemon`",
                path.display()
            ))),
        }
    }

    /// The daemon, as the kernel knows it from when it began to listen.
    pub fn peer(&self) -> Option<Credentials> {
        Credentials::of(self.stream.get_ref())
    }

    /// The node as it is now.
    pub fn status(&mut self) -> Result<Node, Failure> {
        self.ask(&Request::Status)
    }

    /// Has the quota file read again.
    pub fn reload(&mut self) -> Result<Reloaded, Failure> {
        self.ask(&Request::Reload)
    }

    /// Registers the calling process as the head of a launch.
    pub fn launch(&mut self, launch: Launch) -> Result<Launched, Failure> {
        self.ask(&Request::Launch(launch))
    }

    /// Changes what a tenant or account has.
    pub fn set(&mut self, set: Set) -> Result<Changed, Failure> {
        self.ask(&Request::Set(set))
    }

    /// The rule in force for a tenant, account or pid.
    pub fn why(&mut self, subject: &str) -> Result<Why, Failure> {
        self.ask(&Request::Why {
            subject: subject.into(),
        })
    }

    /// What a tenant or account used, or all of them, and the cap that would fit.
    pub fn recommend(&mut self, subject: Option<&str>) -> Result<Recommendations, Failure> {
        self.ask(&Request::Recommend {
            subject: subject.map(Into::into),
        })
    }

    /// Closes the node or a device, opens it, or shows who is there.
    pub fn drain(&mut self, drain: Drain) -> Result<Drained, Failure> {
        self.ask(&Request::Drain(drain))
    }

    /// The kept events and, with `follow`, all later ones; the iterator blocks for them. Ends when the daemon does.
    pub fn events(mut self, follow: bool) -> Result<impl Iterator<Item = Result<Event, Failure>>, Failure> {
        let _: String = self.ask(&Request::Events { follow })?;
        let patience = self.stream.get_ref().set_read_timeout(None); // nothing may happen for days
        patience.map_err(|error| self.broken(error))?;
        Ok(std::iter::from_fn(move || match self.line() {
            Ok(None) => None,
            Ok(Some(line)) => Some(serde_json::from_str(&line).map_err(|error| self.broken(error))),
            Err(failure) => Some(Err(failure)),
        }))
    }

    fn ask<T: serde::de::DeserializeOwned>(&mut self, request: &Request) -> Result<T, Failure> {
        let mut line = serde_json::to_string(request).map_err(|error| self.broken(error))?;
        line.push('\n');
        let patience = self.stream.get_ref().set_read_timeout(Some(self.patience));
        patience.map_err(|error| self.broken(error))?;
        // A daemon that refuses at once has hung up before it read this; its reason is there to be read all the same.
        let written = self.stream.get_mut().write_all(line.as_bytes());
        let line = match (self.line(), written) {
            (Ok(Some(line)), _) => line,
            (_, Err(error)) => return Err(self.broken(error)),
            (Ok(None), Ok(())) => return Err(self.broken("it closed the connection")),
            (Err(failure), Ok(())) => return Err(failure),
        };
        match serde_json::from_str(&line).map_err(|error| self.broken(error))? {
            Answer::Ok(value) => Ok(value),
            Answer::Error(Refused { exit, message }) => Err(Failure::new(Exit(exit), message)),
        }
    }

    fn line(&mut self) -> Result<Option<String>, Failure> {
        use std::io::ErrorKind::{TimedOut, WouldBlock};
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(line)),
            Err(error) if matches!(error.kind(), TimedOut | WouldBlock) => {
                Err(Failure::unreachable(format!(
                    "the daemon at {} has not answered for {} s: it is stopped or hangs; see its log, or restart it",
                    self.path.display(),
                    self.patience.as_secs_f32()
                )))
            }
            Err(error) => Err(self.broken(error)),
        }
    }

    fn broken(&self, why: impl std::fmt::Display) -> Failure {
        Failure::unreachable(format!("the daemon at {} broke off: {why}", self.path.display()))
    }
}

/// Who keeps the caller away from the node whose socket is `path`.
fn closed(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let part = driver::run_dir::closed_part(path);
    let whose = std::fs::symlink_metadata(&part).map_or(String::new(), |found| {
        format!(
            ", which is user {}'s with mode {:o}",
            found.uid(),
            found.mode() & 0o7777
        )
    });
    format!(
        "the node at {} cannot be reached: permission denied by {}{whose}",
        path.parent().unwrap_or(path).display(),
        part.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_are_the_documented_lines() {
        let line = serde_json::to_string(&Request::Status).unwrap();
        assert_eq!(line, r#"{"request":"status"}"#);
        let launch: Request =
            serde_json::from_str(r#"{"request":"launch","tenant":"a","memory":"8GiB"}"#).unwrap();
        assert_eq!(
            launch,
            Request::Launch(Launch {
                tenant: Some("a".into()),
                memory: Some("8GiB".into()),
                ..Launch::default()
            })
        );
        let refused: Answer<String> = Answer::Error(Refused {
            exit: 77,
            message: "no".into(),
        });
        assert_eq!(
            serde_json::to_string(&refused).unwrap(),
            r#"{"error":{"exit":77,"message":"no"}}"#
        );
    }

    #[test]
    fn a_daemon_that_does_not_answer_is_exit_69_too() {
        let dir = tempfile::tempdir().unwrap();
        let _hangs = std::os::unix::net::UnixListener::bind(dir.path().join(SOCKET)).unwrap();
        let mut connection = Connection::open(dir.path()).unwrap();
        connection.patience = Duration::from_millis(10);
        let failure = connection.status().unwrap_err();
        assert_eq!(failure.exit, Exit::UNREACHABLE);
        assert!(failure.message.contains("stopped or hangs"), "{failure}");
    }

    #[test]
    fn no_daemon_is_exit_69() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Connection::open(dir.path()).unwrap_err().exit, Exit::UNREACHABLE);
    }
}
