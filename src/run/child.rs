//! The command of `stint run` as a child: signals go to it, its end becomes ours.
//!
//! The child stays in our process group, so the terminal treats both as one job: Ctrl-C, Ctrl-Z, a resize and a hangup
//! reach it without us, and are not sent a second time. Signals sent to our pid alone are passed on. This process is the
//! parent of whatever the command leaves behind (a subreaper), so that all of it stays below the launch; it waits for
//! the command only.

use std::io::ErrorKind;
use std::process::Command;

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, kill_process, set_child_subreaper, setrlimit,
    wait,
};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
    SIGWINCH,
};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::emulate_default_handler;
use signal_hook::low_level::siginfo::{Cause, Origin};

use crate::exit::{Exit, Failure};

/// Passed on to the command, unless we were started with them ignored: then so is the command.
const PASSED_ON: [i32; 10] = [
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGCONT, SIGWINCH,
];

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Exited(u8),
    Killed(i32),
}

impl Ended {
    /// Ends this process as the command ended: by the same signal, or with the exit code returned.
    pub fn pass_on(self) -> Exit {
        match self {
            Ended::Exited(code) => Exit(code),
            Ended::Killed(signal) => {
                // The command left its core file, if any; ours would say nothing.
                let _ = setrlimit(
                    Resource::Core,
                    Rlimit {
                        current: Some(0),
                        maximum: Some(0),
                    },
                );
                let _ = emulate_default_handler(signal); // unknown to it: the shell's way of saying it
                Exit(128u8.wrapping_add(signal as u8))
            }
        }
    }
}

/// Runs `command` to its end.
pub fn run(mut command: Command) -> Result<Ended, Failure> {
    set_child_subreaper(Some(Pid::INIT)).map_err(Failure::failed)?; // any pid means "yes"
    let ignored = ignored_signals(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    let wanted = PASSED_ON
        .into_iter()
        .filter(|signal| ignored & (1 << (signal - 1)) == 0)
        .chain([SIGCHLD]);
    let mut signals = SignalsInfo::<WithOrigin>::new(wanted).map_err(Failure::failed)?;
    let child = command.spawn().map_err(|error| {
        let program = command.get_program().display();
        if error.kind() == ErrorKind::NotFound {
            Failure::new(Exit::NOT_FOUND, format!("{program}: there is no such command"))
        } else {
            Failure::new(
                Exit::CANNOT_EXECUTE,
                format!("{program}: it cannot be executed: {error}"),
            )
        }
    })?;
    let pid = Pid::from_child(&child);
    drop(child); // waited for by number, beside what else ends below us
    loop {
        let mut pending: Vec<Origin> = signals.wait().collect();
        // Continued first: else the stop that has just ended would be seen and repeated.
        pending.sort_by_key(|origin| origin.signal != SIGCONT);
        for origin in pending {
            if origin.signal == SIGCHLD {
                if let Some(ended) = reap(pid)? {
                    return Ok(ended);
                }
            } else if is_for_us_alone(&origin)
                && let Some(signal) = Signal::from_named_raw(origin.signal)
            {
                let _ = kill_process(pid, signal); // it has ended: SIGCHLD follows
            }
        }
    }
}

/// Whether the child has not got the signal already. The terminal's go to the whole process group.
fn is_for_us_alone(origin: &Origin) -> bool {
    origin.cause != Cause::Kernel
}

/// Collects everything that has ended; the command's end is the answer. When job control stops the command we stop too,
/// so that the shell sees the job stopped.
fn reap(command: Pid) -> Result<Option<Ended>, Failure> {
    loop {
        // Whatever process group they made for themselves, as `timeout` and `setsid` do.
        match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            Ok(Some((pid, status))) if pid == command => {
                if let Some(ended) = ended(status) {
                    return Ok(Some(ended));
                }
                if status
                    .stopping_signal()
                    .is_some_and(|signal| [SIGTSTP, SIGTTIN, SIGTTOU].contains(&signal))
                {
                    let _ = emulate_default_handler(SIGTSTP); // stops here until SIGCONT
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => return Ok(None),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                return Err(Failure::failed(format!(
                    "the command cannot be waited for: {error}"
                )));
            }
        }
    }
}

fn ended(status: WaitStatus) -> Option<Ended> {
    let exited = status.exit_status().map(|code| Ended::Exited(code as u8));
    exited.or_else(|| status.terminating_signal().map(Ended::Killed))
}

/// The mask `SigIgn` of `/proc/self/status`; bit n − 1 is signal n.
fn ignored_signals(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_kernels_mask() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t0\n";
        assert_eq!(ignored_signals(status), 1 << (SIGHUP - 1) | 1 << 12);
        assert_eq!(ignored_signals(""), 0);
    }
}
