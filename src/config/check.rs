//! From shape to meaning: every value of `raw.rs` becomes one of `Config`, or a [`Problem`] at its place. This file goes
//! through the files and their tables; `check/node.rs`, `check/rules.rs`, `check/tenant.rs` and `check/device.rs` through one
//! stanza each.

mod device;
mod node;
mod rules;
mod tenant;

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Problem, Problems};
use super::raw;
use super::reader::{File, MOST_TOLD};
use super::source::Lines;
use super::{Config, Match, NotInForce, Source};

/// What was read of a tenant, to be understood when the defaults of all files are known.
struct Pending {
    /// Place of its file among the sources.
    source: usize,
    at: super::At,
    raw: raw::Tenant,
}

/// See [`Config::parse`].
pub fn parse(sources: &[Source]) -> Result<Config, Problems> {
    let mut config = Config::default();
    let mut problems = Vec::new();
    let mut not_in_force = Vec::new();
    let mut tenants = BTreeMap::new();
    let lines: Vec<Lines> = sources.iter().map(|source| Lines::of(&source.text)).collect();
    for (index, (source, lines)) in sources.iter().zip(&lines).enumerate() {
        let mut file = File {
            source,
            lines,
            problems: &mut problems,
            not_in_force: &mut not_in_force,
            stanza: String::new(),
        };
        let (document, errors) = DeTable::parse_recoverable(&source.text);
        for error in errors.iter().take(MOST_TOLD) {
            file.problem(error.span().unwrap_or(0..0), error.message());
        }
        if !errors.is_empty() {
            // What was meant by the rest cannot be told.
            continue;
        }
        for (key, value) in document.into_inner() {
            if file.is_full() {
                break;
            }
            file.top(index, key, value, &mut config, &mut tenants);
        }
    }
    // After all files, so that a tenant starts from the defaults whichever file they are in.
    let mut taken: BTreeMap<Match, String> = BTreeMap::new();
    for (name, pending) in tenants {
        let mut file = File {
            source: &sources[pending.source],
            lines: &lines[pending.source],
            problems: &mut problems,
            not_in_force: &mut not_in_force,
            stanza: format!("tenants.{name}"),
        };
        let tenant = file.tenant(&name, pending.raw, pending.at, &config.defaults, &mut taken);
        config.tenants.insert(name, tenant);
    }
    let order = |at: &std::path::Path| sources.iter().position(|source| source.path == at);
    problems.sort_by_key(|problem: &Problem| (order(&problem.file), problem.line, problem.column));
    not_in_force.sort_by_key(|key: &NotInForce| (order(&key.at.file), key.at.line, key.at.column));
    config.not_in_force = not_in_force;
    if problems.len() == MOST_TOLD
        && let Some(last) = problems.last()
    {
        let message = format!("{MOST_TOLD} mistakes: what may be wrong beyond them was not looked for");
        problems.push(Problem::of_file(&last.file, message));
    }
    if problems.is_empty() {
        Ok(config)
    } else {
        Err(Problems(problems))
    }
}

impl File<'_> {
    /// One table of the top level.
    fn top(
        &mut self,
        source: usize,
        key: Spanned<std::borrow::Cow<'_, str>>,
        value: Spanned<DeValue<'_>>,
        config: &mut Config,
        tenants: &mut BTreeMap<String, Pending>,
    ) {
        let name = key.get_ref().to_string();
        self.stanza.clone_from(&name);
        match name.as_str() {
            "node" => {
                let node = self.shape(value);
                self.node(node, &mut config.node);
            }
            "defaults" => {
                let mut rules: raw::Rules = self.shape(value);
                if let Some(at) = self.memory_at(&rules) {
                    config.defaults_memory_at = Some(at);
                }
                self.rules(&mut rules, &mut config.defaults);
            }
            "tenants" => {
                for (key, value) in self.table(value) {
                    let name = key.get_ref().to_string();
                    if let Err(message) = super::tenant_name(&name) {
                        self.problem(key.span(), message);
                    }
                    self.once(&key, tenants.contains_key(&name), "tenant");
                    let at = self.place(key.span());
                    let raw = self.shape(value);
                    tenants.insert(name, Pending { source, at, raw });
                }
            }
            "devices" => {
                for (key, value) in self.table(value) {
                    let name = key.get_ref().to_string();
                    self.stanza = format!("devices.{name}");
                    let index = super::device::index(&name);
                    if index.is_none() {
                        let message =
                            format!("`{name}` is not the index of a device: write for example [devices.0]");
                        self.problem(key.span(), message);
                    }
                    let index = index.unwrap_or_default();
                    self.once(&key, config.devices.contains_key(&index), "device");
                    let raw = self.shape(value);
                    let device = self.device(raw);
                    config.devices.insert(index, device);
                }
            }
            _ => {
                let allowed = ["node", "defaults", "tenants", "devices"];
                let message = format!("there is no table `{name}`");
                self.push(self.at(key.span(), message).allow(&name, &allowed));
            }
        }
    }

    /// A stanza that stands in two files is a mistake: neither would be the whole of it.
    fn once(&mut self, key: &Spanned<std::borrow::Cow<'_, str>>, known: bool, what: &str) {
        if known {
            let message = format!("{what} `{}` stands in another file already", key.get_ref());
            self.problem(key.span(), message);
        }
    }
}
