//! A finished program: how it ended and what it wrote; a watchdog ends one that hangs.

use std::{
    io::Read,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// No test program that works takes this long; one that does hangs.
pub const WATCHDOG: Duration = Duration::from_secs(120);

/// How a program ended and what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Exit code, or minus the signal that ended it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// Panics with everything the program wrote unless it ended with 0.
    #[track_caller]
    pub fn success(self) -> Outcome {
        assert_eq!(
            self.code, 0,
            "the program failed\n--- stdout\n{}\n--- stderr\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// The value of the line `name=value` in stdout.
    #[track_caller]
    pub fn value(&self, name: &str) -> &str {
        let found = self
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("no line {name}= in\n{}\n--- stderr\n{}", self.stdout, self.stderr))
    }

    /// `value` as a number.
    #[track_caller]
    pub fn number(&self, name: &str) -> i64 {
        let text = self.value(name);
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number"))
    }
}

/// A started program in a process group of its own, killed when dropped.
pub struct Running {
    child: Child,
    stdout: thread::JoinHandle<String>,
    stderr: thread::JoinHandle<String>,
}

/// Starts `command` with an empty stdin; what it writes is collected.
#[track_caller]
pub fn start(command: &mut Command) -> Running {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let stdout = collect(child.stdout.take().expect("stdout is a pipe"));
    let stderr = collect(child.stderr.take().expect("stderr is a pipe"));
    Running {
        child,
        stdout,
        stderr,
    }
}

/// Runs `command` to its end under the watchdog.
#[track_caller]
pub fn run(command: &mut Command) -> Outcome {
    let shown = format!("{command:?}");
    start(command).finish(&shown)
}

impl Running {
    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything it wrote if it has ended by itself already.
    pub fn ended(&mut self) -> Option<Outcome> {
        let status = self.child.try_wait().ok().flatten()?;
        let (stdout, stderr) = self.output();
        Some(Outcome {
            code: code(status),
            stdout,
            stderr,
        })
    }

    /// Waits for the end; a program that hangs is killed and fails the test, `what` says which.
    #[track_caller]
    pub fn finish(self, what: &str) -> Outcome {
        self.finish_within(what, WATCHDOG)
    }

    /// The same for a program that works longer than most.
    #[track_caller]
    pub fn finish_within(mut self, what: &str, longest: Duration) -> Outcome {
        let (done, watch) = mpsc::channel::<()>();
        let group = self.child.id();
        let watchdog = thread::spawn(move || {
            let hung = watch.recv_timeout(longest) == Err(mpsc::RecvTimeoutError::Timeout);
            if hung {
                kill_group(group);
            }
            hung
        });
        let status = self.child.wait().expect("the program can be waited for");
        drop(done);
        let hung = watchdog.join().expect("the watchdog ends");
        let (stdout, stderr) = self.output();
        assert!(!hung, "hangs: {what}\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
        Outcome {
            code: code(status),
            stdout,
            stderr,
        }
    }

    /// What was written so far; readers end when no process holds the pipes any more.
    fn output(&mut self) -> (String, String) {
        let take = |slot: &mut thread::JoinHandle<String>| {
            std::mem::replace(slot, thread::spawn(String::new))
                .join()
                .expect("the reader ends")
        };
        (take(&mut self.stdout), take(&mut self.stderr))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            kill_group(self.child.id());
            let _already_gone = self.child.wait();
        }
    }
}

/// SIGKILL to the group that `leader` leads.
pub fn kill_group(leader: u32) {
    let _already_gone = Command::new("kill")
        .args(["-KILL", "--", &format!("-{leader}")])
        .stderr(Stdio::null())
        .status();
}

/// The exit code, or minus the signal.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| -status.signal().unwrap_or(0))
}

/// Reads a pipe to its end in a thread, so that the program never waits for us.
fn collect(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _partial_output_is_shown = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
