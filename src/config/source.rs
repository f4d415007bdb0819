//! The text of a quota file, and where its lines begin. `check.rs` goes through it.

use std::path::{Path, PathBuf};

use super::problem::Problem;

/// A quota file as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub path: PathBuf,
    pub text: String,
}

impl Source {
    /// Longest file, in bytes: far beyond any node's, and read in milliseconds.
    pub const LONGEST: usize = 1 << 20;

    /// The text in `bytes`, without a byte order mark. A mistake if it is none, or too long.
    pub fn new(path: &Path, bytes: &[u8]) -> Result<Source, Problem> {
        if bytes.len() > Source::LONGEST {
            let message = format!(
                "{} bytes are more than a quota file may have ({})",
                bytes.len(),
                Source::LONGEST
            );
            return Err(Problem::of_file(path, message));
        }
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Source {
                path: path.into(),
                text: text.into(),
            }),
            Err(error) => {
                let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                let at = before.len()..before.len();
                let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
                let message = format!("byte 0x{byte:02x} is no text: save the file as UTF-8");
                Err(Lines::of(&before).problem(path, &before, at, message))
            }
        }
    }
}

/// Where the lines of a text begin.
#[derive(Debug)]
pub struct Lines(Vec<usize>);

impl Lines {
    pub fn of(text: &str) -> Lines {
        let after = text.match_indices('\n').map(|(newline, _)| newline + 1);
        Lines(std::iter::once(0).chain(after).collect())
    }

    /// Line and column, from 1, of byte `offset` of `text`; columns count characters.
    pub fn place(&self, text: &str, offset: usize) -> (usize, usize) {
        let offset = offset.min(text.len());
        let line = self.0.partition_point(|begin| *begin <= offset);
        let begin = line
            .checked_sub(1)
            .and_then(|line| self.0.get(line))
            .copied()
            .unwrap_or_default();
        let before = text.get(begin..offset).unwrap_or_default();
        (line, before.chars().count() + 1)
    }

    /// A mistake at the byte range `span` of `text`.
    pub fn problem(
        &self,
        file: &Path,
        text: &str,
        span: std::ops::Range<usize>,
        message: impl Into<String>,
    ) -> Problem {
        let (line, column) = self.place(text, span.start);
        Problem {
            line,
            column,
            ..Problem::of_file(file, message)
        }
    }
}
