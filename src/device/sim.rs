//! Starts the stand-in node a daemon works on, if none runs. It is nobody's: it outlives the daemon and ends by itself when
//! nobody uses it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::artefacts::Artefacts;
use crate::exit::{Exit, Failure};

/// How long a fresh node may take until it answers.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks whether it does.
const PAUSE: Duration = Duration::from_millis(2);

/// Makes sure a stand-in node answers in `run_dir`. `devices` describes a node that is started, such as `h200:2`; one that
/// runs already must have these.
pub fn ensure(artefacts: &Artefacts, run_dir: &Path, devices: Option<&str>) -> Result<(), Failure> {
    let socket = std::path::absolute(run_dir.join(driver::run_dir::SIM_SOCKET)).map_err(Failure::failed)?;
    let program = artefacts.sim_server();
    if let Some(devices) = devices {
        compare(&program, &socket, devices)?;
    }
    let deadline = Instant::now() + PATIENCE;
    let mut server: Option<Child> = None;
    while !answers(&socket) {
        if Instant::now() > deadline {
            return Err(Failure::failed(format!(
                "{}: the stand-in node does not answer",
                socket.display()
            )));
        }
        let ended = match &mut server {
            None => true,
            Some(server) => match server.try_wait() {
                Ok(Some(status)) if !status.success() => {
                    return Err(Failure::failed(format!(
                        "the stand-in node did not start ({status}); see above"
                    )));
                }
                // Another node had the place: one that answers in a moment, or one that was about to leave.
                Ok(Some(_)) => !answers(&socket),
                _ => false,
            },
        };
        if ended {
            server = Some(start(&program, &socket, devices)?);
        }
        std::thread::sleep(PAUSE);
    }
    let Some(mut server) = server else { return Ok(()) };
    // It is our child and not ours: somebody has to take its exit status, whenever that comes.
    let reaper = std::thread::Builder::new()
        .name("stint-sim-wait".into())
        .spawn(move || server.wait());
    reaper.map(drop).map_err(Failure::failed)
}

fn start(program: &Path, socket: &Path, devices: Option<&str>) -> Result<Child, Failure> {
    let mut command = Command::new(program);
    command.arg("serve").arg("--socket").arg(socket);
    if let Some(devices) = devices {
        command.args(["--devices", devices]);
    }
    // A group of its own: what interrupts the daemon at a terminal is not for the node.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0)
        .env_remove("LD_PRELOAD");
    command
        .spawn()
        .map_err(|error| Failure::failed(format!("{}: {error}", program.display())))
}

/// Whether `devices` is a list of devices, and the one of the node at `socket` if one runs there.
fn compare(program: &Path, socket: &Path, devices: &str) -> Result<(), Failure> {
    let mut command = Command::new(program);
    command.arg("compare").arg("--socket").arg(socket);
    command.args(["--devices", devices]).env_remove("LD_PRELOAD");
    let ended = command
        .output()
        .map_err(|error| Failure::failed(format!("{}: {error}", program.display())))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let why = said.trim_end();
    let code = ended.status.code().and_then(|code| u8::try_from(code).ok());
    let exit = code.map_or(Exit::FAILED, Exit);
    Err(Failure::new(exit, why.strip_prefix("stint-sim: ").unwrap_or(why)))
}

/// Whether a node listens at `socket`.
fn answers(socket: &Path) -> bool {
    let connected = socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .and_then(|caller| connect(&caller, &SocketAddrUnix::new(socket)?));
    connected.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{bind, listen};

    #[test]
    fn one_that_leaves_as_another_is_started_is_followed_by_a_third() {
        let dir = tempfile::tempdir().unwrap();
        let artefacts = Artefacts::at(dir.path().into());
        let program = artefacts.sim_server();
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        let leaving = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/leaving.sh");
        std::os::unix::fs::symlink(leaving, program).unwrap();
        let failure = ensure(&artefacts, &dir.path().join("run"), None).unwrap_err();
        // Not: that it did not answer for half a minute.
        assert!(failure.message.contains("did not start"), "{failure}");
    }

    #[test]
    fn a_stand_in_listens_for_packets() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sim.sock");
        assert!(!answers(&path));
        let socket = socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        assert!(!answers(&path), "bound is not listening");
        listen(&socket, 1).unwrap();
        assert!(answers(&path));
    }
}
