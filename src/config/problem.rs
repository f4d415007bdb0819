//! What is wrong in a quota file: place, finding, what is allowed, nearest spelling.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl Problem {
    /// A mistake at the byte range `span` of `text`.
    pub fn at(file: &Path, text: &str, span: Range<usize>, message: impl Into<String>) -> Problem {
        let (line, column) = place(text, span.start);
        let message = message.into();
        Problem {
            file: file.into(),
            line,
            column,
            message,
            allowed: Vec::new(),
            suggestion: None,
        }
    }

    /// Names what may stand there and, if one is near to `found`, which was probably meant.
    pub fn allow<S: AsRef<str>>(mut self, found: &str, allowed: &[S]) -> Problem {
        self.allowed = allowed.iter().map(|word| word.as_ref().to_string()).collect();
        self.suggestion = nearest(found, &self.allowed);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}",
            self.file.display(),
            self.line,
            self.column,
            self.message
        )?;
        if let Some(suggestion) = &self.suggestion {
            write!(f, "; did you mean `{suggestion}`?")?;
        }
        if !self.allowed.is_empty() {
            write!(f, " (allowed: {})", self.allowed.join(", "))?;
        }
        Ok(())
    }
}

/// Every mistake found, in the order of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Line and column, from 1, of byte `offset` of `text`.
pub fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

/// The word of `allowed` most like `found`, if any is like it at all.
pub fn nearest(found: &str, allowed: &[String]) -> Option<String> {
    let found = found.to_lowercase();
    allowed
        .iter()
        .map(|word| (strsim::jaro_winkler(&found, word), word))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word.clone())
}
