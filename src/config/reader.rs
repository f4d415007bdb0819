//! Reads one stanza, one scalar, one word of a quota file, and notes each mistake at its place. `check.rs` decides what
//! is read.

use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Source;
use super::problem::Problem;
use super::raw::{Scalar, parts};

/// One file being checked, and where its findings go.
pub struct File<'a> {
    pub source: &'a Source,
    pub problems: &'a mut Vec<Problem>,
    pub not_in_force: &'a mut Vec<Problem>,
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
    pub fn later(&mut self, span: Range<usize>, key: &str) {
        let problem = self.at(span, format!("`{key}` is understood and not in force yet"));
        self.not_in_force.push(problem);
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

    /// A word of which only some have an effect yet: `None` in `words` marks the others.
    pub fn word_in_force<T: Copy>(
        &mut self,
        key: &str,
        scalar: Option<Scalar>,
        words: &[(&str, Option<T>)],
    ) -> Option<T> {
        let span = scalar.as_ref()?.span();
        let value = self.word(scalar, words)?;
        if value.is_none() {
            self.later(span, key);
        }
        value
    }

    pub fn parsed<T: FromStr<Err: Display>>(&mut self, scalar: Option<Scalar>) -> Option<T> {
        self.value(scalar, |text| text.parse().map_err(told))
    }

    pub fn parsed_later<T: FromStr<Err: Display>>(&mut self, key: &str, scalar: Option<Scalar>) {
        let Some(span) = scalar.as_ref().map(|scalar| scalar.span()) else {
            return;
        };
        if self.parsed::<T>(scalar).is_some() {
            self.later(span, key);
        }
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
            if let DeValue::Table(inner) = value.get_mut()
                && take_out(inner, place)
            {
                return true;
            }
            found = Some(key.clone());
        }
    }
    found.is_some_and(|key| table.remove(&key).is_some())
}
