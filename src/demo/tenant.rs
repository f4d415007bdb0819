//! A tenant of the demo: `stint run … -- stint load …`, as a user would type it.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cli::Driver;
use crate::exit::{Exit, Failure};
use crate::load::report::Report;

/// How long a client may take to appear, or to end once it was told to.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// One client, alive or not. Dropped, it is killed.
pub struct Tenant {
    pub name: String,
    pub cap: u64,
    /// Process id of the `stint load`: the `stint run` above it holds nothing.
    pub pid: u32,
    run: RefCell<Child>,
}

impl Tenant {
    /// Starts `stint load WORDS… --json` as tenant `name` of the node in `run_dir`.
    pub fn start(
        run_dir: &Path,
        driver: Driver,
        name: &str,
        cap: u64,
        words: &[&str],
    ) -> Result<Tenant, Failure> {
        let stint = std::env::current_exe().map_err(Failure::failed)?;
        let mut command = Command::new(&stint);
        command
            .arg("run")
            .arg("--run-dir")
            .arg(run_dir)
            .args(["--driver", driver.as_str()]);
        command.args(["--tenant", name, "--memory", &format!("{cap}B"), "--"]);
        command.arg(&stint).arg("load").args(words).arg("--json");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut run = command
            .spawn()
            .map_err(|error| Failure::failed(format!("{}: {error}", stint.display())))?;
        let pid = client_below(&mut run)?;
        Ok(Tenant {
            name: name.into(),
            cap,
            pid,
            run: RefCell::new(run),
        })
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> Result<bool, Failure> {
        Ok(self
            .run
            .borrow_mut()
            .try_wait()
            .map_err(Failure::failed)?
            .is_some())
    }

    /// What it told at its end. Being refused memory is an answer; anything else but success is a failure.
    pub fn report(&self) -> Result<Report, Failure> {
        let mut run = self.run.borrow_mut();
        let status = run.wait().map_err(Failure::failed)?;
        let (out, err) = (read(run.stdout.take()), read(run.stderr.take()));
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        match (code.map(Exit), serde_json::from_str(&out)) {
            (Some(Exit::OK | Exit::REFUSED), Ok(report)) => Ok(report),
            _ => Err(Failure::failed(format!(
                "tenant {} ended with {status}: {} {}",
                self.name,
                out.trim(),
                err.trim()
            ))),
        }
    }

    /// SIGKILL to the client; returns when the `stint run` above it has passed its end on.
    pub fn kill(&self) -> Result<(), Failure> {
        if !self.has_ended()? {
            signal(self.pid, Signal::KILL);
            self.run.borrow_mut().wait().map_err(Failure::failed)?;
        }
        Ok(())
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        let _ = self.kill(); // no child any more: dead is what was wanted
    }
}

/// The process below `run`, waited for.
fn client_below(run: &mut Child) -> Result<u32, Failure> {
    let children = format!("/proc/{0}/task/{0}/children", run.id());
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(&children).unwrap_or_default();
        if let Some(pid) = text
            .split_ascii_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok())
        {
            return Ok(pid);
        }
        if let Some(status) = run.try_wait().map_err(Failure::failed)? {
            let why = read(run.stderr.take());
            return Err(Failure::failed(format!(
                "`stint run` ended with {status}: {}",
                why.trim()
            )));
        }
        if Instant::now() > deadline {
            let _ = run.kill();
            let _ = run.wait();
            return Err(Failure::failed("`stint run` has started nothing"));
        }
        std::thread::sleep(PAUSE);
    }
}

/// All that is left in a pipe; a client says a few lines at most, so it never waited for us.
fn read(pipe: Option<impl std::io::Read>) -> String {
    let mut text = String::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.read_to_string(&mut text); // as far as it is text
    }
    text
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal); // it has ended: so be it
    }
}
