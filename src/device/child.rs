//! The daemon's end of the device child: asks once a second, never waits, and starts a new child when one is silent or dies.
//! One JSON object a line, both ways; the child's end is `worker.rs`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Inventory, Look};
use crate::artefacts::Artefacts;

/// A child that does not answer for so long is killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first answer loads a driver, which takes longer.
const FIRST_PATIENCE: Duration = Duration::from_secs(60);
/// Waits before a new child is started: the first, and the longest it grows to.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// A longer line is nonsense.
const LONGEST_LINE: usize = 16 << 20;

/// The libraries of one driver.
#[derive(Debug, Clone)]
pub struct Libraries {
    nvml: PathBuf,
    cuda: Option<PathBuf>,
    /// The stand-in's node.
    run_dir: Option<PathBuf>,
    program: Option<PathBuf>,
}

impl Libraries {
    /// The stand-in's, talking to the node in `run_dir`.
    pub fn sim(artefacts: &Artefacts, run_dir: &std::path::Path) -> Libraries {
        Libraries {
            nvml: artefacts.sim_driver().join("libnvidia-ml.so.1"),
            cuda: Some(artefacts.sim_driver().join("libcuda.so.1")),
            run_dir: Some(run_dir.into()),
            program: None,
        }
    }

    /// This machine's; `None`: it has no NVML.
    pub fn nvidia() -> Option<Libraries> {
        let path = driver::load::library_path();
        let find = |soname| driver::load::find(soname, path.as_deref());
        Some(Libraries {
            nvml: find("libnvidia-ml.so.1")?,
            cuda: find("libcuda.so.1"),
            run_dir: None,
            program: None,
        })
    }

    fn command(&self) -> io::Result<Command> {
        let mut command = Command::new(self.program.clone().map_or_else(std::env::current_exe, Ok)?);
        command.arg("device").arg("--nvml").arg(&self.nvml);
        if let Some(cuda) = &self.cuda {
            command.arg("--cuda").arg(cuda);
        }
        if let Some(run_dir) = &self.run_dir {
            command.env("STINT_RUN_DIR", run_dir);
        }
        command.env_remove("LD_PRELOAD");
        for variable in crate::daemon::OWN_VARIABLES {
            command.env_remove(variable);
        }
        Ok(command)
    }
}

/// What the daemon asks.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ask {
    Look,
}

/// What a child says.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// The first line.
    Inventory(Inventory),
    /// The answer to [`Ask::Look`].
    Looks(Vec<Look>),
    /// What a context costs on a device, and how large the device is; see `context.rs`.
    Context(Context),
    /// It cannot go on, and why.
    Failed(String),
}

/// A device as CUDA sees it. What could not be found out is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// As [`super::Device::uuid_bytes`].
    pub uuid: [u8; 16],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_count: Option<u32>,
}

/// What a supervisor has to tell.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    Looks(Vec<Look>),
    /// It does not work; said once until it works again.
    Fault(String),
    /// It works again.
    Works,
}

#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    #[error("the device child cannot be started: {0}")]
    Start(#[from] io::Error),
    #[error("the device child did not answer: {error}")]
    Silent { error: io::Error },
    #[error("{0}")]
    Failed(String),
    #[error("the device child said something else than its devices")]
    Nonsense,
    #[error("{0} shows no device")]
    NoDevice(String),
}

/// A running child.
#[derive(Debug)]
struct Worker {
    child: Child,
    stream: UnixStream,
    unfinished: Vec<u8>,
    /// Asked then, and not answered yet.
    asked: Option<(Instant, Duration)>,
}

impl Worker {
    fn start(mut command: Command) -> io::Result<Worker> {
        let (stream, theirs) = UnixStream::pair()?;
        let theirs = OwnedFd::from(theirs);
        let child = command
            .stdin(Stdio::from(theirs.try_clone()?))
            .stdout(Stdio::from(theirs))
            .spawn()?;
        Ok(Worker {
            child,
            stream,
            unfinished: Vec::new(),
            asked: Some((Instant::now(), FIRST_PATIENCE)),
        })
    }

    fn end(mut self) {
        // A child stuck in the kernel ends when that lets it go; nobody waits for it here.
        let _ = self.child.kill();
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = std::thread::Builder::new()
                .name("stint-device-wait".into())
                .spawn(move || self.child.wait());
        }
    }

    /// The lines that have come; an error when the child has gone or talks nonsense.
    fn lines(&mut self) -> Result<Vec<Line>, String> {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err("it ended".into()),
                Ok(length) => self.unfinished.extend_from_slice(&bytes[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
            if self.unfinished.len() > LONGEST_LINE {
                return Err("it sent a line without end".into());
            }
        }
        let mut lines = Vec::new();
        while let Some(end) = self.unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unfinished.drain(..=end).collect();
            lines.push(serde_json::from_slice(&line).map_err(|error| format!("it sent nonsense: {error}"))?);
        }
        Ok(lines)
    }
}

/// Keeps one child running.
#[derive(Debug)]
pub struct Supervisor {
    libraries: Libraries,
    worker: Option<Worker>,
    /// When to try again, and how long to wait the time after.
    again: (Instant, Duration),
    broken: bool,
}

impl Supervisor {
    pub fn start(libraries: Libraries) -> Result<Supervisor, ChildError> {
        let worker = Worker::start(libraries.command()?)?;
        Ok(Supervisor {
            libraries,
            worker: Some(worker),
            again: (Instant::now(), BACKOFF.0),
            broken: false,
        })
    }

    /// Waits for the list of devices, the first thing a child says. From then on nothing here waits.
    pub fn inventory(&mut self) -> Result<Inventory, ChildError> {
        let Some(worker) = &mut self.worker else {
            return Err(ChildError::Nonsense);
        };
        worker.stream.set_read_timeout(Some(FIRST_PATIENCE))?;
        let mut line = String::new();
        // One byte at a time would be lost otherwise: what follows the line stays in the stream, for nothing was asked yet.
        BufReader::new(&worker.stream)
            .read_line(&mut line)
            .map_err(|error| ChildError::Silent { error })?;
        worker.stream.set_nonblocking(true)?;
        worker.asked = None;
        match serde_json::from_str(&line) {
            Ok(Line::Inventory(inventory)) if inventory.devices.is_empty() => {
                Err(ChildError::NoDevice(self.libraries.nvml.display().to_string()))
            }
            Ok(Line::Inventory(inventory)) => Ok(inventory),
            Ok(Line::Failed(why)) => Err(ChildError::Failed(why)),
            _ => Err(ChildError::Nonsense),
        }
    }

    /// Readable when the child said something. Another one after each restart.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.worker.as_ref().map(|worker| worker.stream.as_fd())
    }

    /// The child's pid: what it holds of a device is nobody's tenant's.
    pub fn pids(&self) -> Vec<u32> {
        self.worker.iter().map(|worker| worker.child.id()).collect()
    }

    /// What the child said.
    pub fn read(&mut self) -> Vec<Said> {
        let Some(worker) = &mut self.worker else {
            return Vec::new();
        };
        let lines = match worker.lines() {
            Ok(lines) => lines,
            Err(why) => return self.give_up(&format!("the device child failed: {why}")),
        };
        let mut said = Vec::new();
        for line in lines {
            match line {
                Line::Failed(why) => said.extend(self.give_up(&why)),
                Line::Looks(looks) => {
                    said.extend(self.answered());
                    said.push(Said::Looks(looks));
                }
                // Said by a child that was started anew: the devices are those of the first.
                Line::Inventory(_) => said.extend(self.answered()),
                Line::Context(_) => {}
            }
        }
        said
    }

    /// Once a second: asks, or replaces a child that does not answer. True: [`Supervisor::socket`] is a new one.
    pub fn tick(&mut self, now: Instant) -> (Vec<Said>, bool) {
        match &mut self.worker {
            Some(Worker {
                asked: Some((at, patience)),
                ..
            }) => {
                if now.duration_since(*at) < *patience {
                    return (Vec::new(), false);
                }
                let why = format!(
                    "the device child did not answer for {} s and was killed",
                    patience.as_secs()
                );
                (self.give_up(&why), false)
            }
            Some(worker) => {
                worker.asked = Some((now, PATIENCE));
                let line = serde_json::to_string(&Ask::Look).unwrap_or_default() + "\n";
                match worker.stream.write_all(line.as_bytes()) {
                    Ok(()) => (Vec::new(), false),
                    Err(error) => (self.give_up(&format!("the device child failed: {error}")), false),
                }
            }
            None if now < self.again.0 => (Vec::new(), false),
            None => match self.libraries.command().and_then(Worker::start) {
                Ok(worker) => {
                    let nonblocking = worker.stream.set_nonblocking(true);
                    self.worker = Some(worker);
                    match nonblocking {
                        Ok(()) => (Vec::new(), true),
                        Err(error) => (self.give_up(&error.to_string()), false),
                    }
                }
                Err(error) => (
                    self.give_up(&format!("the device child cannot be started: {error}")),
                    false,
                ),
            },
        }
    }

    fn answered(&mut self) -> Option<Said> {
        if let Some(worker) = &mut self.worker {
            worker.asked = None;
        }
        self.again.1 = BACKOFF.0;
        std::mem::take(&mut self.broken).then_some(Said::Works)
    }

    fn give_up(&mut self, why: &str) -> Vec<Said> {
        if let Some(worker) = self.worker.take() {
            worker.end();
        }
        self.again = (Instant::now() + self.again.1, (self.again.1 * 2).min(BACKOFF.1));
        if std::mem::replace(&mut self.broken, true) {
            Vec::new()
        } else {
            vec![Said::Fault(why.into())]
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            worker.end();
        }
    }
}

/// Runs a child that makes and releases one context per device, and returns what each cost in the order of the inventory
/// (0: unknown); enters the number of multiprocessors there. A device that cannot be measured is only said in the log.
pub fn measure_contexts(libraries: &Libraries, inventory: &mut Inventory) -> Vec<u64> {
    let mut costs = vec![0; inventory.devices.len()];
    if libraries.cuda.is_none() {
        return costs;
    }
    let command = libraries.command().map(|mut command| {
        command.arg("--contexts");
        command
    });
    let worker = match command.and_then(Worker::start) {
        Ok(worker) => worker,
        Err(error) => {
            tracing::warn!(%error, "the cost of a context cannot be measured");
            return costs;
        }
    };
    let deadline = Instant::now() + FIRST_PATIENCE;
    let mut lines = BufReader::new(&worker.stream);
    loop {
        let left = deadline
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1));
        let mut line = String::new();
        let read = worker
            .stream
            .set_read_timeout(Some(left))
            .and_then(|()| lines.read_line(&mut line));
        match read {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "the cost of a context was not measured in time");
                break;
            }
        }
        match serde_json::from_str(&line) {
            Ok(Line::Context(context)) => {
                let known = inventory
                    .devices
                    .iter()
                    .position(|device| device.uuid_bytes() == Some(context.uuid));
                if let Some(place) = known {
                    costs[place] = context.bytes.unwrap_or(0);
                    inventory.devices[place].sm_count = context.sm_count;
                }
            }
            Ok(Line::Failed(why)) => tracing::warn!("the cost of a context cannot be measured: {why}"),
            _ => {}
        }
    }
    worker.end();
    costs
}

#[cfg(test)]
mod tests;
