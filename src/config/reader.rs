//! Reads one stanza, one scalar, one word of a quota file, and notes each mistake at its place. `check.rs` decides what
//! is read.

use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::Problem;
use super::raw::{Scalar, parts};
use super::source::{Lines, Source};
use super::{At, NotInForce};

/// Mistakes told; what is wrong beyond is not looked for.
pub const MOST_TOLD: usize = 100;

/// One file being checked, and where its findings go.
pub struct File<'a> {
    pub source: &'a Source,
    pub lines: &'a Lines,
    pub problems: &'a mut Vec<Problem>,
    pub not_in_force: &'a mut Vec<NotInForce>,
    /// The stanza being read, for [`NotInForce`].
    pub stanza: String,
}

impl File<'_> {
    pub fn at(&self, span: Range<usize>, message: impl Into<String>) -> Problem {
        let Source { path, text } = self.source;
        self.lines.problem(path, text, span, message)
    }

    pub fn push(&mut self, problem: Problem) {
        let place = |problem: &Problem| (problem.line, problem.column);
        let told = |other: &Problem| other.file == problem.file && place(other) == place(&problem);
        // Of two mistakes at one place the second follows from the first.
        if !self.is_full() && !self.problems.iter().any(told) {
            self.problems.push(problem);
        }
    }

    /// Whether so many mistakes were found that one more would not be told.
    pub fn is_full(&self) -> bool {
        self.problems.len() >= MOST_TOLD
    }

    pub fn problem(&mut self, span: Range<usize>, message: impl Into<String>) {
        let problem = self.at(span, message);
        self.push(problem);
    }

    /// Reports a key that was understood and has no effect yet.
    pub fn later(&mut self, span: Range<usize>, key: &'static str) {
        let (stanza, at) = (self.stanza.clone(), self.place(span));
        self.not_in_force.push(NotInForce { key, stanza, at });
    }

    /// [`File::later`] for a key that was written at `span`, with a value whose mechanism comes later.
    pub fn later_if(&mut self, span: Option<Range<usize>>, key: &'static str, later: bool) {
        if let (Some(span), true) = (span, later) {
            self.later(span, key);
        }
    }

    /// Whether a mistake inside `span` was told already: what is left after it was taken out is not judged as well.
    pub fn told_inside(&self, span: Range<usize>) -> bool {
        let text = &self.source.text;
        let range = self.lines.place(text, span.start)..self.lines.place(text, span.end);
        self.problems.iter().any(|problem| {
            problem.file == self.source.path && range.contains(&(problem.line, problem.column))
        })
    }

    /// The beginning of `span`.
    pub fn place(&self, span: Range<usize>) -> At {
        let (line, column) = self.lines.place(&self.source.text, span.start);
        At {
            file: self.source.path.clone(),
            line,
            column,
        }
    }

    /// The sub-tables of `value`; a mistake if it is no table.
    pub fn table<'i>(&mut self, value: Spanned<DeValue<'i>>) -> DeTable<'i> {
        let span = value.span();
        match value.into_inner() {
            DeValue::Table(table) => table,
            other => {
                self.problem(span, format!("found {}, expected a table", other.type_str()));
                DeTable::new()
            }
        }
    }

    /// Reads one stanza. Every mistake of shape is reported: the offending entry is taken out and the rest read again.
    pub fn shape<T: Default + for<'de> Deserialize<'de>>(&mut self, value: Spanned<DeValue<'_>>) -> T {
        let span = value.span();
        let mut table = self.table(value);
        loop {
            let whole = Spanned::new(span.clone(), DeValue::Table(table.clone()));
            let error = match T::deserialize(whole.into_deserializer()) {
                Ok(read) => return read,
                Err(error) => error,
            };
            let place = error.span().unwrap_or(span.clone());
            let (message, allowed) = wording(error.message());
            let found = self
                .source
                .text
                .get(place.clone())
                .unwrap_or_default()
                .to_string();
            let follows = message.ends_with("is missing") && self.told_inside(place.clone());
            if !follows {
                self.push(self.at(place.clone(), message).allow(&found, &allowed));
            }
            if self.is_full() || !take_out(&mut table, &place) {
                return T::default();
            }
        }
    }

    /// Parses one scalar; a mistake at its place otherwise.
    pub fn value<T>(
        &mut self,
        scalar: Option<Scalar>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let scalar = scalar?;
        let (span, text) = parts(&scalar);
        match read(text) {
            Ok(value) => Some(value),
            Err(message) => {
                self.problem(span, message);
                None
            }
        }
    }

    /// One of a few words; a mistake names them and the nearest.
    pub fn word<T: Copy>(&mut self, scalar: Option<Scalar>, words: &[(&str, T)]) -> Option<T> {
        let scalar = scalar?;
        let (span, text) = parts(&scalar);
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let allowed: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        self.push(
            self.at(span, format!("`{text}` is not allowed here"))
                .allow(text, &allowed),
        );
        None
    }

    pub fn parsed<T: FromStr<Err: Display>>(&mut self, scalar: Option<Scalar>) -> Option<T> {
        self.value(scalar, |text| text.parse().map_err(told))
    }
}

/// An error as its one line.
pub fn told(error: impl Display) -> String {
    error.to_string()
}

/// Serde's sentence in our words, and what it says is allowed.
fn wording(message: &str) -> (String, Vec<String>) {
    let ticked = |text: &str| {
        text.split('`')
            .skip(1)
            .step_by(2)
            .map(String::from)
            .collect::<Vec<_>>()
    };
    if let Some(field) = message.strip_prefix("missing field ") {
        return (format!("{field} is missing"), Vec::new());
    }
    let Some((found, expected)) = message.split_once(", expected ") else {
        return (message.to_string(), Vec::new());
    };
    if found.starts_with("unknown field") {
        let key = ticked(found).pop().unwrap_or_default();
        return (format!("there is no key `{key}` here"), ticked(expected));
    }
    let Some(found) = found.strip_prefix("invalid type: ") else {
        return (message.to_string(), Vec::new());
    };
    let ours = |text: &str| match text {
        "map" | "a map" => "a table".to_string(),
        "sequence" | "a sequence" => "a list".to_string(),
        _ => text.to_string(),
    };
    let allowed = match expected {
        "a boolean" => vec!["true".into(), "false".into()],
        _ => Vec::new(),
    };
    (
        format!("found {}, expected {}", ours(found), ours(expected)),
        allowed,
    )
}

/// Removes the innermost entry whose key or value covers `place`. False: there is none.
fn take_out(table: &mut DeTable<'_>, place: &Range<usize>) -> bool {
    let covers = |span: Range<usize>| span.start <= place.start && place.end <= span.end;
    let mut found = None;
    for (key, value) in table.iter_mut() {
        if covers(key.span()) {
            found = Some(key.clone());
        } else if covers(value.span()) {
            if take_out_of(value.get_mut(), place) {
                return true;
            }
            found = Some(key.clone());
        }
    }
    found.is_some_and(|key| table.remove(&key).is_some())
}

/// [`take_out`] for what lies inside a value. False: nothing inside covers `place`.
fn take_out_of(value: &mut DeValue<'_>, place: &Range<usize>) -> bool {
    let covers = |span: Range<usize>| span.start <= place.start && place.end <= span.end;
    match value {
        DeValue::Table(table) => take_out(table, place),
        DeValue::Array(array) => {
            let Some(position) = array.iter().position(|item| covers(item.span())) else {
                return false;
            };
            // Of an array of tables a table stays, without what was wrong in it.
            let inside = array
                .get_mut(position)
                .is_some_and(|item| take_out_of(item.get_mut(), place));
            inside || {
                let all = array.iter().enumerate();
                *array = all
                    .filter(|(place, _)| *place != position)
                    .map(|(_, item)| item.clone())
                    .collect();
                true
            }
        }
        _ => false,
    }
}
