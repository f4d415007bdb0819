//! The quota file as written: names and shapes only, every scalar with its place. Unknown keys are errors. What the
//! values mean is decided in `config/check.rs`.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{self, MapAccess, Visitor};
use toml::Spanned;

/// A scalar in its written form, whatever its TOML type: a number without a unit deserves a better error than "expected
/// a string".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(pub String);

pub type Scalar = Spanned<Text>;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    pub mode: Option<Scalar>,
    pub unknown: Option<Scalar>,
    pub absent: Option<Scalar>,
    pub reserve: Option<Scalar>,
    pub drift: Option<Scalar>,
    pub http: Option<Scalar>,
    pub token_file: Option<Scalar>,
    pub overcommit: Option<Scalar>,
    pub context: Option<Scalar>,
}

/// `[defaults]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    pub per: Option<Scalar>,
    pub memory: Option<Memory>,
    pub share: Option<Scalar>,
    pub limit: Option<Scalar>,
    pub priority: Option<Scalar>,
    pub on_full: Option<Spanned<Vec<Scalar>>>,
    pub pool: Option<Scalar>,
    pub pool_contents: Option<Scalar>,
    pub host_memory: Option<Scalar>,
    pub idle_after: Option<Scalar>,
    pub on_idle: Option<Scalar>,
    pub latency_guard: Option<Scalar>,
    pub starve: Option<Spanned<bool>>,
}

/// `[tenants.NAME]`: the keys of [`Rules`], and whom and when they hold for. Spelt out, because `flatten` would lose
/// the places of the values.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    #[serde(rename = "match")]
    pub matches: Option<Spanned<Vec<Spanned<Match>>>>,
    pub gpus: Option<Spanned<Vec<Scalar>>>,
    pub hours: Option<Scalar>,
    pub until: Option<Scalar>,
    pub per: Option<Scalar>,
    pub memory: Option<Memory>,
    pub share: Option<Scalar>,
    pub limit: Option<Scalar>,
    pub priority: Option<Scalar>,
    pub on_full: Option<Spanned<Vec<Scalar>>>,
    pub pool: Option<Scalar>,
    pub pool_contents: Option<Scalar>,
    pub host_memory: Option<Scalar>,
    pub idle_after: Option<Scalar>,
    pub on_idle: Option<Scalar>,
    pub latency_guard: Option<Scalar>,
    pub starve: Option<Spanned<bool>>,
}

impl Tenant {
    /// Splits off the keys shared with `[defaults]`.
    pub fn rules(&mut self) -> Rules {
        Rules {
            per: self.per.take(),
            memory: self.memory.take(),
            share: self.share.take(),
            limit: self.limit.take(),
            priority: self.priority.take(),
            on_full: self.on_full.take(),
            pool: self.pool.take(),
            pool_contents: self.pool_contents.take(),
            host_memory: self.host_memory.take(),
            idle_after: self.idle_after.take(),
            on_idle: self.on_idle.take(),
            latency_guard: self.latency_guard.take(),
            starve: self.starve.take(),
        }
    }
}

/// One alternative of `match`: all keys given must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Match {
    pub user: Option<Scalar>,
    pub group: Option<Scalar>,
    pub cgroup: Option<Scalar>,
    pub slurm_job: Option<Scalar>,
    pub container: Option<Spanned<BTreeMap<Spanned<String>, Scalar>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    pub mode: Option<Scalar>,
    pub policy: Option<Scalar>,
    pub mig: Option<Spanned<Mig>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mig {
    pub layout: Spanned<Vec<Scalar>>,
}

/// `memory = "8GiB"` or `memory = { guaranteed = "4GiB", burst = "8GiB" }`.
#[derive(Debug)]
pub enum Memory {
    One(Scalar),
    Two(Two),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Two {
    pub guaranteed: Scalar,
    pub burst: Scalar,
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a single value")
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Text, E> {
        Ok(Text(value.into()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Text, E> {
        Ok(Text(value.to_string()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Text, E> {
        Ok(Text(value.to_string()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Text, E> {
        Ok(Text(format!("{value:?}")))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Text, E> {
        Ok(Text(value.to_string()))
    }

    /// A date of TOML's own; any other table is none.
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Text, A::Error> {
        let date = toml::value::Datetime::deserialize(de::value::MapAccessDeserializer::new(map));
        match date {
            Ok(date) => Ok(Text(date.to_string())),
            Err(_) => Err(de::Error::invalid_type(de::Unexpected::Map, &self)),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

impl<'de> Deserialize<'de> for Memory {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Memory, D::Error> {
        struct Shape;
        impl<'de> Visitor<'de> for Shape {
            type Value = Result<Text, Two>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an amount of memory, or { guaranteed = …, burst = … }")
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
                TextVisitor.visit_str(value).map(Ok)
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
                TextVisitor.visit_i64(value).map(Ok)
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
                TextVisitor.visit_f64(value).map(Ok)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Two::deserialize(de::value::MapAccessDeserializer::new(map)).map(Err)
            }
        }
        struct Seed(Result<Text, Two>);
        impl<'de> Deserialize<'de> for Seed {
            fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Seed, D::Error> {
                deserializer.deserialize_any(Shape).map(Seed)
            }
        }
        let spanned = Spanned::<Seed>::deserialize(deserializer)?;
        let span = spanned.span();
        Ok(match spanned.into_inner().0 {
            Ok(text) => Memory::One(Spanned::new(span, text)),
            Err(two) => Memory::Two(two),
        })
    }
}

/// Where a scalar stands, and its text.
pub fn parts(scalar: &Scalar) -> (Range<usize>, &str) {
    (scalar.span(), &scalar.get_ref().0)
}
