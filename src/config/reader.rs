//! Reads one stanza, one scalar, one word of a quota file, and notes each mistake at its place. `check.rs` decides what
//! is read.

use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Problem, place};
use super::raw::{Scalar, parts};
use super::{At, NotInForce, Source};

/// One file being checked, and where its findings go.
pub struct File<'a> {
    pub source: &'a Source,
    pub problems: &'a mut Vec<Problem>,
    pub not_in_force: &'a mut Vec<NotInForce>,
    /// The stanza being read, for [`NotInForce`].
    pub stanza: String,
}

impl File<'_> {
    pub fn at(&self, span: Range<usize>, message: impl Into<String>) -> Problem {
        Problem::at(&self.source.path, &self.source.text, span, message)
    }

    pub fn push(&mut self, problem: Problem) {
        self.problems.push(problem);
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
        let range = place(&self.source.text, span.start)..place(&self.source.text, span.end);
        self.problems.iter().any(|problem| {
            problem.file == self.source.path && range.contains(&(problem.line, problem.column))
        })
    }

    /// The beginning of `span`.
    pub fn place(&self, span: Range<usize>) -> At {
        let (line, column) = place(&self.source.text, span.start);
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
            self.push(self.at(place.clone(), message).allow(&found, &allowed));
            if !take_out(&mut table, &place) {
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

/// Serde's sentence for an unknown key, split into ours and the keys it names. Other sentences pass unchanged.
fn wording(message: &str) -> (String, Vec<String>) {
    let ticked = |text: &str| {
        text.split('`')
            .skip(1)
            .step_by(2)
            .map(String::from)
            .collect::<Vec<_>>()
    };
    match message.split_once(", expected ") {
        Some((found, expected)) if found.starts_with("unknown field") => {
            let key = ticked(found).pop().unwrap_or_default();
            (format!("there is no key `{key}` here"), ticked(expected))
        }
        _ => (message.to_string(), Vec::new()),
    }
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
