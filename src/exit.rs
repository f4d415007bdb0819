//! How a command ends: exit codes, and the failure that carries one. Every verb returns `Result<Exit, Failure>`.

use std::fmt;
use std::process::ExitCode;

/// Exit status of a command. `run` passes its command's own status through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit(pub u8);

impl Exit {
    /// Done.
    pub const OK: Exit = Exit(0);
    /// Ran, and the answer is no: a promise broken, a check failed.
    pub const FAILED: Exit = Exit(1);
    /// `load`: an allocation it needed was refused.
    pub const REFUSED: Exit = Exit(3);
    /// The command line is wrong.
    pub const USAGE: Exit = Exit(64);
    /// No daemon answers.
    pub const UNREACHABLE: Exit = Exit(69);
    /// The caller may not do this.
    pub const NOT_PERMITTED: Exit = Exit(77);
    /// The quota file or another input is wrong.
    pub const BAD_CONFIG: Exit = Exit(78);
    /// `run`: it failed itself, before the command.
    pub const RUN_FAILED: Exit = Exit(125);
    /// `run`: the command was found and could not be executed.
    pub const CANNOT_EXECUTE: Exit = Exit(126);
    /// `run`: no such command.
    pub const NOT_FOUND: Exit = Exit(127);
}

/// What the exit codes mean, for people: code, meaning, and the verbs it is for where that is not all.
pub const MEANINGS: [(Exit, &str, &[&str]); 10] = [
    (Exit::OK, "Done.", &[]),
    (
        Exit::FAILED,
        "It failed, or the answer is no: a promise is broken, a check fails.",
        &[],
    ),
    (Exit::REFUSED, "An allocation it needed was refused.", &["load"]),
    (
        Exit::USAGE,
        "The command line is wrong, or a value in it is, whoever finds that.",
        &[],
    ),
    (Exit::UNREACHABLE, "No daemon, or no stand-in node, answers.", &[]),
    (Exit::NOT_PERMITTED, "The caller may not do this.", &[]),
    (
        Exit::BAD_CONFIG,
        "The quota file, or another file that was named, is wrong.",
        &[],
    ),
    (
        Exit::RUN_FAILED,
        "It failed itself, before the command began; also where 1, 69 or 78 would tell so elsewhere.",
        &["run"],
    ),
    (
        Exit::CANNOT_EXECUTE,
        "The command was found and cannot be executed.",
        &["run"],
    ),
    (Exit::NOT_FOUND, "There is no such command.", &["run"]),
];

/// The codes that `verb` ends with, and what each means; `None`: those of all verbs.
pub fn meanings(verb: Option<&str>) -> impl Iterator<Item = (Exit, &'static str)> {
    // What `run` ends with is its command's; its own failures are told apart by codes few commands use.
    let elsewhere = [Exit::FAILED, Exit::UNREACHABLE, Exit::BAD_CONFIG];
    MEANINGS
        .into_iter()
        .filter(move |(_, _, verbs)| verbs.is_empty() || verb.is_none_or(|verb| verbs.contains(&verb)))
        .filter(move |(exit, _, _)| verb != Some("run") || !elsewhere.contains(exit))
        .map(|(exit, meaning, _)| (exit, meaning))
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.0)
    }
}

/// Why a command failed: what is printed to stderr (first line: what, why, what to do), and the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub exit: Exit,
    pub message: String,
}

impl Failure {
    pub fn new(exit: Exit, message: impl fmt::Display) -> Failure {
        Failure {
            exit,
            message: message.to_string(),
        }
    }

    pub fn failed(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::FAILED, message)
    }

    pub fn usage(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::USAGE, message)
    }

    pub fn unreachable(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::UNREACHABLE, message)
    }

    pub fn not_permitted(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::NOT_PERMITTED, message)
    }

    pub fn bad_config(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::BAD_CONFIG, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
