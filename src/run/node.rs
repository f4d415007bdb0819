//! The node a command runs on: the named one, the machine's, the user's, or a private one for the length of the command.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::cli::Driver;
use crate::exit::{Exit, Failure};
use crate::place;
use crate::protocol::{Answer, Connection, Refused};

/// Between two looks for a daemon that is away.
const PAUSE: Duration = Duration::from_millis(20);

/// A node that answers.
pub struct Node {
    /// To be let go once it is of no more use: a user may have so many open and no more.
    pub connection: Connection,
    /// Absolute.
    pub run_dir: PathBuf,
    /// A node of this command's own; it ends with this value.
    pub private: Option<Private>,
}

impl Node {
    /// Finds the node, or starts a private one with `driver` and `devices` where none answers.
    pub fn find_or_start(
        named: Option<&Path>,
        driver: Option<Driver>,
        devices: Option<&str>,
    ) -> Result<Node, Failure> {
        let found = |connection, run_dir: &Path| {
            if devices.is_some() {
                let at = run_dir.display();
                return Err(Failure::usage(format!(
                    "a node runs at {at}: `--devices` is for a private one"
                )));
            }
            Ok(Node {
                connection,
                run_dir: absolute(run_dir)?,
                private: None,
            })
        };
        let system = Path::new(driver::run_dir::SYSTEM);
        // A shim on this machine looks nowhere else, so no other node would see it.
        if place::is_taken() {
            if let Some(other) = named.filter(|named| *named != system) {
                return Err(Failure::failed(format!(
                    "this machine has a node at {}, which its programs cannot leave for {}: drop --run-dir and STINT_RUN_DIR",
                    system.display(),
                    other.display()
                )));
            }
            return found(connect(system)?, system);
        }
        let usual = named.map_or_else(driver::run_dir::default_for_user, Path::to_path_buf);
        if named.is_none() {
            place::own(&usual)
                .map_err(|error| Failure::not_permitted(format!("{}: {error}", usual.display())))?;
        }
        match connect(&usual) {
            Ok(connection) => return found(connection, &usual),
            Err(failure) if failure.exit != Exit::UNREACHABLE => return Err(failure),
            // A private node in its place would have its clients, and be in its way when it comes back.
            Err(failure) if named.is_some() && is_away(&usual) => return Err(failure),
            Err(_) => {}
        }
        let run_dir = named.map_or_else(|| place::private("run"), |named| Ok(named.to_path_buf()));
        let run_dir = run_dir.map_err(|error| Failure::failed(format!("{}: {error}", usual.display())))?;
        let run_dir = absolute(&run_dir)?;
        let private = Private::start(&run_dir, driver, devices)?;
        Ok(Node {
            connection: Connection::open(&run_dir)?,
            run_dir,
            private: Some(private),
        })
    }
}

/// Connects to a node. One whose daemon is away is waited for as long as its programs would wait.
fn connect(run_dir: &Path) -> Result<Connection, Failure> {
    let deadline = Instant::now() + ledger::attach::PATIENCE;
    loop {
        match Connection::open(run_dir) {
            Err(failure)
                if failure.exit == Exit::UNREACHABLE && is_away(run_dir) && Instant::now() < deadline =>
            {
                std::thread::sleep(PAUSE);
            }
            other => return other,
        }
    }
}

/// Whether a daemon ran here and has not ended for good: then its word to its programs is there.
fn is_away(run_dir: &Path) -> bool {
    run_dir.join(driver::run_dir::ATTACH_POLICY).exists()
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

/// The process of a private node (`run/private_node.rs`). It ends with its standard input, so also when this process is
/// killed; and it is not in the command's process group, so that neither Ctrl-C nor Ctrl-Z reach it.
pub struct Private(Child);

impl Private {
    fn start(run_dir: &Path, driver: Option<Driver>, devices: Option<&str>) -> Result<Private, Failure> {
        let own = std::env::current_exe().map_err(Failure::failed)?;
        let mut command = Command::new(own);
        command.arg("private-node").arg("--run-dir").arg(run_dir);
        if let Some(driver) = driver {
            command.args(["--driver", driver.as_str()]);
        }
        if let Some(devices) = devices {
            command.args(["--devices", devices]);
        }
        // What it says is of interest only where it does not start.
        let said = memfd_create("stint-private-node", MemfdFlags::CLOEXEC).map_err(Failure::failed)?;
        let said = File::from(said);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said.try_clone().map_err(Failure::failed)?)
            .process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| Failure::failed(format!("a private node cannot be started: {error}")))?;
        let mut line = String::new();
        if let Some(answers) = child.stdout.take() {
            BufReader::new(answers)
                .read_line(&mut line)
                .map_err(Failure::failed)?;
        }
        let private = Private(child);
        let answer = serde_json::from_str(&line);
        if !matches!(answer, Ok(Answer::Ok(()))) {
            eprint!("{}", text_of(&said));
        }
        match answer {
            Ok(Answer::Ok(())) => Ok(private),
            Ok(Answer::Error(Refused { exit, message })) => Err(Failure::new(Exit(exit), message)),
            Err(_) => Err(Failure::failed("the private node ended before it answered")),
        }
    }
}

/// All that was written to a file, whoever wrote it.
fn text_of(file: &File) -> String {
    let mut bytes = vec![0; file.metadata().map_or(0, |file| file.len() as usize)];
    let length = file.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

impl Drop for Private {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait(); // reaped already: then it is gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_was_here_is_waited_for_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(connect(dir.path()).unwrap_err().exit, Exit::UNREACHABLE);
        let policy = dir.path().join(driver::run_dir::ATTACH_POLICY);
        std::fs::create_dir(policy.parent().unwrap()).unwrap();
        std::fs::write(policy, "").unwrap();
        let waiting = {
            let place = dir.path().to_path_buf();
            std::thread::spawn(move || connect(&place))
        };
        let _back =
            std::os::unix::net::UnixListener::bind(dir.path().join(driver::run_dir::ADMIN_SOCKET)).unwrap();
        assert!(waiting.join().unwrap().is_ok());
    }
}
