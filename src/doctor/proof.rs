//! The proof: `stint run … -- stint load …` as any user would start it, asking for more than its cap, and what the daemon and
//! the device say of one that stays below.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::check::Check;
use crate::artefacts::Artefacts;
use crate::cli::Driver;
use crate::config::Mode;
use crate::demo::truth::Source;
use crate::exit::{Exit, Failure};
use crate::load::report::Report;
use crate::protocol::Connection;
use crate::protocol::node::Node;

const MIB: u64 = 1 << 20;
/// The client's cap; a context must fit into it.
const CAP: u64 = 2048 * MIB;
/// What it asks for, too much; and what the other one holds.
const TOO_MUCH: u64 = CAP + 256 * MIB;
const HELD: u64 = 512 * MIB;
/// By how much the daemon's count may be above the device's: a few granules of the driver.
const TOLERANCE: u64 = 12 * MIB;
/// How long a client may take to be where it is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

const NAME: &str = "proof";

/// Starts the clients and judges.
pub fn prove(run_dir: &Path, node: &Node, connection: &mut Connection) -> Check {
    if node.mode == Mode::Observe {
        return Check::warn(NAME, "not tried: the node only observes", "see `mode`");
    }
    if node.devices.iter().all(|device| device.drained) {
        return Check::warn(
            NAME,
            "not tried: the node is drained",
            "`stint drain --undo`, then ask again",
        );
    }
    let room = |device: &crate::protocol::node::Device| {
        let schedulable = device
            .schedulable
            .as_ref()
            .is_some_and(|room| room.memory_bytes >= TOO_MUCH);
        let free = device
            .memory
            .used_bytes
            .is_none_or(|used| device.memory.total_bytes.saturating_sub(used) >= TOO_MUCH);
        schedulable && free
    };
    let Some(device) = node.devices.iter().find(|device| room(device)) else {
        let found = format!("not tried: no device has {TOO_MUCH} bytes to spare");
        return Check::warn(NAME, found, "ask again when the node is less busy");
    };
    match exceed(run_dir, node.driver.kind, device.index).and_then(|refused| {
        let counted = count(run_dir, node.driver.kind, device.index, connection)?;
        Ok(format!("{refused}; {counted}"))
    }) {
        Ok(found) => Check::ok(NAME, found),
        Err(failure) if failure.exit == Exit::NOT_PERMITTED => Check::warn(
            NAME,
            format!("not tried: {}", failure.message),
            "run the doctor as root, or as a user who has more",
        ),
        Err(failure) => Check::fail(
            NAME,
            failure.message,
            "caps do not hold: see the failures above; the log of the daemon (`journalctl -u stintd`) may say more",
        ),
    }
}

/// A client that asks for more than its cap must be refused by CUDA's own error.
fn exceed(run_dir: &Path, driver: Driver, device: u32) -> Result<String, Failure> {
    let asked = format!("{TOO_MUCH}B");
    let ended =
        client(run_dir, driver, device, &["--memory", &asked, "--seconds", "1"]).and_then(Client::output)?;
    let report = report(&ended)?;
    if ended.status.code() != Some(i32::from(Exit::REFUSED.0)) || report.refusals == 0 {
        return Err(Failure::failed(format!(
            "a client with a cap of {CAP} bytes got {TOO_MUCH}: nothing refused it"
        )));
    }
    Ok(format!(
        "{TOO_MUCH} bytes were refused to a client with a cap of {CAP}"
    ))
}

/// What a client holds must be what daemon and device say.
fn count(
    run_dir: &Path,
    driver: Driver,
    device: u32,
    connection: &mut Connection,
) -> Result<String, Failure> {
    let truth = match driver {
        Driver::Sim => Source::Sim {
            artefacts: Artefacts::find()?,
            run_dir: run_dir.into(),
        },
        Driver::Nvidia => Source::nvidia()?,
    };
    let held = format!("{HELD}B");
    let mut client = client(run_dir, driver, device, &["--memory", &held, "--seconds", "600"])?;
    let account = format!("#{}", client.0.id());
    let deadline = Instant::now() + PATIENCE;
    loop {
        let node = connection.status()?;
        let tenant = node
            .tenants
            .iter()
            .find(|tenant| tenant.account.ends_with(&account));
        let holder = tenant.and_then(|tenant| tenant.clients.iter().find(|client| client.used_bytes >= HELD));
        if let Some(holder) = holder {
            let told = holder.used_bytes;
            let true_bytes = truth
                .read()?
                .get(&holder.pid)
                .map_or(0, |process| process.used_bytes);
            // The device may still be on its way to what was charged first.
            if true_bytes >= HELD && told >= true_bytes && told - true_bytes <= TOLERANCE {
                return Ok(format!(
                    "one that holds {true_bytes} bytes is counted with {told}"
                ));
            }
            if Instant::now() > deadline {
                return Err(Failure::failed(format!(
                    "a client that holds {true_bytes} bytes of device {device} is counted with {told}"
                )));
            }
        }
        if let Some(status) = client.0.try_wait().map_err(Failure::failed)? {
            let ended = client.output()?;
            return Err(Failure::failed(format!(
                "a client within its cap ended with {status}: {}",
                words(&ended)
            )));
        }
        if Instant::now() > deadline {
            return Err(Failure::failed(format!(
                "a client that holds {HELD} bytes never became the daemon's client"
            )));
        }
        std::thread::sleep(PAUSE);
    }
}

/// A `stint run`; dropped, it is ended with its command.
struct Client(Child);

impl Client {
    fn output(mut self) -> Result<Output, Failure> {
        let status = self.0.wait().map_err(Failure::failed)?;
        let read = |pipe: Option<&mut dyn std::io::Read>| {
            let mut bytes = Vec::new();
            if let Some(pipe) = pipe {
                let _ = pipe.read_to_end(&mut bytes); // what came is enough
            }
            bytes
        };
        let stdout = read(self.0.stdout.as_mut().map(|pipe| pipe as &mut dyn std::io::Read));
        let stderr = read(self.0.stderr.as_mut().map(|pipe| pipe as &mut dyn std::io::Read));
        Ok(Output {
            status,
            stdout,
            stderr,
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process};
        if matches!(self.0.try_wait(), Ok(None)) {
            // `stint run` passes it on and waits for its command.
            let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
            let _ = self.0.wait();
        }
    }
}

fn client(run_dir: &Path, driver: Driver, device: u32, words: &[&str]) -> Result<Client, Failure> {
    let stint = std::env::current_exe().map_err(Failure::failed)?;
    let mut command = Command::new(&stint);
    command.arg("run").arg("--run-dir").arg(run_dir);
    command.args(["--driver", driver.as_str(), "--gpus", &device.to_string()]);
    command.args(["--memory", &format!("{CAP}B"), "--"]);
    command.arg(&stint).arg("load").args(words).arg("--json");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
        .env_remove("LD_PRELOAD")
        .env_remove("CUDA_VISIBLE_DEVICES");
    let child = command
        .spawn()
        .map_err(|error| Failure::failed(format!("{}: {error}", stint.display())))?;
    Ok(Client(child))
}

fn report(ended: &Output) -> Result<Report, Failure> {
    let exit = match ended.status.code() {
        // More than what was set is a wrong value to those who may ask for anything.
        Some(code)
            if [Exit::NOT_PERMITTED, Exit::USAGE]
                .map(|exit| i32::from(exit.0))
                .contains(&code) =>
        {
            Exit::NOT_PERMITTED
        }
        _ => Exit::FAILED,
    };
    serde_json::from_slice(&ended.stdout).map_err(|_| {
        Failure::new(
            exit,
            format!("a client could not be run ({}): {}", ended.status, words(ended)),
        )
    })
}

fn words(ended: &Output) -> String {
    String::from_utf8_lossy(&ended.stderr).trim().replace('\n', "; ")
}
