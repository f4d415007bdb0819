//! Named, timed steps on stderr, and one line for each thing that was left out and why.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// What was done so far.
#[derive(Default)]
pub struct Steps {
    done: Vec<(String, Duration, bool)>,
    skipped: Vec<String>,
    silent: bool,
}

impl Steps {
    /// Runs `body` as the step `name`; a failure names the step.
    pub fn step<T>(&mut self, name: &str, body: impl FnOnce(&mut Steps) -> Result<T>) -> Result<T> {
        eprintln!("== {name}");
        let start = Instant::now();
        let result = body(self);
        self.done.push((name.to_owned(), start.elapsed(), result.is_ok()));
        result.with_context(|| name.to_owned())
    }

    /// Records that `what` was left out because of `why`.
    pub fn skip(&mut self, what: &str, why: &str) {
        self.skipped.push(format!("{what}: {why}"));
    }

    /// Adds the lines `what: why` that the tests left.
    pub fn skip_lines(&mut self, lines: &str) {
        self.skipped.extend(
            lines
                .lines()
                .filter(|line| !line.trim().is_empty())
                .map(str::to_owned),
        );
    }

    /// Says nothing at the end: what follows is another program's output.
    pub fn silence(&mut self) {
        self.silent = true;
    }

    /// One line per step and one per skip.
    pub fn summary(&self) {
        if self.silent || self.done.is_empty() {
            return;
        }
        eprintln!();
        for (name, time, good) in &self.done {
            eprintln!(
                "{:>7.1} s  {}  {name}",
                time.as_secs_f64(),
                if *good { "ok    " } else { "FAILED" }
            );
        }
        let total: Duration = self.done.iter().map(|(_, time, _)| *time).sum();
        eprintln!("{:>7.1} s  in all", total.as_secs_f64());
        for line in &self.skipped {
            eprintln!("skipped  {line}");
        }
        if self.skipped.is_empty() {
            eprintln!("nothing skipped");
        }
    }
}
