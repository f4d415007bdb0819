//! What is wrong in a quota file: place, finding, what is allowed, nearest spelling.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub file: PathBuf,
    /// From 1; 0: the file as a whole.
    pub line: usize,
    /// From 1, in characters; 0 where `line` is.
    pub column: usize,
    pub message: String,
    pub allowed: Vec<String>,
    pub suggestion: Option<String>,
}

impl Problem {
    /// A mistake of the file as a whole.
    pub fn of_file(file: &Path, message: impl Into<String>) -> Problem {
        Problem {
            file: file.into(),
            line: 0,
            column: 0,
            message: shown(&message.into()),
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
        write!(f, "{}", self.file.display())?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(suggestion) = &self.suggestion {
            write!(f, "; did you mean `{suggestion}`?")?;
        }
        if !self.allowed.is_empty() {
            write!(f, " (allowed: {})", self.allowed.join(", "))?;
        }
        Ok(())
    }
}

/// Longest message, in characters: a value of a megabyte is not repeated whole.
const LONGEST: usize = 400;

/// `message` on one line, as a terminal may show it, without its middle where it is long.
fn shown(message: &str) -> String {
    let plain = |c: char| {
        if c.is_control() {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    let length = message.chars().count();
    if length <= LONGEST {
        return message.chars().map(plain).collect();
    }
    let begin = message.chars().take(LONGEST / 2);
    let end = message.chars().skip(length - LONGEST / 2);
    begin
        .map(plain)
        .chain(std::iter::once(" … ".into()))
        .chain(end.map(plain))
        .collect()
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

/// What is longer is no mistyped word: the daemon, too, is asked for the nearest, by anybody, and looking costs time.
const LONGEST_MEANT: usize = 256;

/// The word of `allowed` most like `found`, if any is like it at all.
pub fn nearest(found: &str, allowed: &[String]) -> Option<String> {
    if found.len() > LONGEST_MEANT {
        return None;
    }
    let found = found.to_lowercase();
    allowed
        .iter()
        .map(|word| (strsim::jaro_winkler(&found, word), word))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word.clone())
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_word_longer_than_any_name_is_like_none() {
        let allowed = ["default".to_string()];
        assert_eq!(nearest("defualt", &allowed).as_deref(), Some("default"));
        assert_eq!(nearest(&format!("default{}", "x".repeat(300)), &allowed), None);
    }
}
