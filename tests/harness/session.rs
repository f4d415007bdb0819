//! A program that is told what to do line by line and answers line by line, so that a test orders the steps of several
//! processes without clocks. The partner is `tests/programs/steps.c`.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
};

use super::outcome::{WATCHDOG, kill_group};

/// A running partner; killed when dropped.
pub struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
}

impl Session {
    /// Starts `command`, whose stderr goes to the test's.
    #[track_caller]
    pub fn start(command: &mut Command) -> Session {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| send.send(line))
        });
        Session {
            stdin: child.stdin.take(),
            child,
            lines,
        }
    }

    /// Sends one line without waiting for the answer.
    #[track_caller]
    pub fn tell(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("the session is open");
        writeln!(stdin, "{line}").unwrap_or_else(|error| panic!("{line}: the program is gone: {error}"));
    }

    /// The same; whether it was there to read it.
    #[allow(dead_code, reason = "not every set of tests has programs that may not start")]
    pub fn is_told(&mut self, line: &str) -> bool {
        let stdin = self.stdin.as_mut().expect("the session is open");
        writeln!(stdin, "{line}").is_ok()
    }

    /// The next line it wrote.
    #[track_caller]
    pub fn answer(&mut self) -> String {
        match self.lines.recv_timeout(WATCHDOG) {
            Ok(line) => line,
            Err(error) => panic!("no answer: {error}; ended: {:?}", self.child.try_wait()),
        }
    }

    /// The next line it wrote, or `None` when it has ended.
    pub fn last_answer(&mut self) -> Option<String> {
        self.lines.recv_timeout(WATCHDOG).ok()
    }

    /// Sends one line and waits for the answer.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.answer()
    }

    /// The answer as numbers.
    #[track_caller]
    pub fn numbers(&mut self, line: &str) -> Vec<u64> {
        let answer = self.ask(line);
        answer
            .split_whitespace()
            .map(|word| word.parse().unwrap_or_else(|_| panic!("{line}: {answer}")))
            .collect()
    }

    /// The CUDA error that the step ended with.
    #[track_caller]
    pub fn error(&mut self, line: &str) -> u64 {
        self.numbers(line)[0]
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL to it and to what it started (`stint run` starts the program), and waits until it is gone.
    pub fn kill(&mut self) {
        kill_group(self.child.id());
        let _reaped = self.child.wait();
    }

    /// Closes its stdin and waits; exit code or minus the signal.
    #[track_caller]
    pub fn close(mut self) -> i32 {
        self.stdin = None;
        let status = self.child.wait().expect("the program can be waited for");
        status.code().unwrap_or_else(|| -status.signal().unwrap_or(0))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.kill();
    }
}
