//! From shape to meaning: every value of `raw.rs` becomes one of `Config`, or a [`Problem`] at its place.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::DeTable;

use super::problem::{Problem, Problems, place};
use super::raw::{self, Scalar, parts};
use super::reader::{File, told};
use super::units::{self, Memory, Ratio};
use super::{Absent, At, Config, Match, MemoryRule, Mode, Overcommit, Per, Rules, Source, Tenant, Unknown};

/// See [`Config::parse`].
pub fn parse(sources: &[Source]) -> Result<Config, Problems> {
    let mut config = Config::default();
    let mut problems = Vec::new();
    let mut tenants = BTreeMap::new();
    for source in sources {
        let mut file = File {
            source,
            problems: &mut problems,
            not_in_force: &mut config.not_in_force,
        };
        let (document, errors) = DeTable::parse_recoverable(&source.text);
        for error in errors {
            file.problem(error.span().unwrap_or(0..0), error.message());
        }
        for (key, value) in document.into_inner() {
            let name = key.get_ref().to_string();
            match name.as_str() {
                "node" => {
                    let node = file.shape(value);
                    file.node(node, &mut config.node);
                }
                "defaults" => {
                    let mut rules: raw::Rules = file.shape(value);
                    if let Some(at) = file.memory_at(&rules) {
                        config.defaults_memory_at = Some(at);
                    }
                    file.rules(&mut rules, &mut config.defaults);
                }
                "tenants" => {
                    for (key, value) in file.table(value) {
                        let name = key.get_ref().to_string();
                        file.tenant_name(&key);
                        if tenants.contains_key(&name) {
                            file.problem(
                                key.span(),
                                format!("tenant `{name}` stands in another file already"),
                            );
                        }
                        let tenant: raw::Tenant = file.shape(value);
                        tenants.insert(name, (source, tenant));
                    }
                }
                "devices" => {
                    for (key, value) in file.table(value) {
                        if key.get_ref().parse::<u32>().is_err() {
                            file.problem(
                                key.span(),
                                format!("`{}` is not the index of a device", key.get_ref()),
                            );
                        }
                        let device = file.shape(value);
                        file.device(device);
                    }
                }
                _ => {
                    let allowed = ["node", "defaults", "tenants", "devices"];
                    let message = format!("there is no table `{name}`");
                    file.push(file.at(key.span(), message).allow(&name, &allowed));
                }
            }
        }
    }
    // After all files, so that a tenant starts from the defaults whichever file they are in.
    let mut taken: BTreeMap<Match, String> = BTreeMap::new();
    for (name, (source, mut tenant)) in tenants {
        let mut file = File {
            source,
            problems: &mut problems,
            not_in_force: &mut config.not_in_force,
        };
        let mut raw_rules = tenant.rules();
        let memory_at = file.memory_at(&raw_rules);
        let mut rules = config.defaults;
        file.rules(&mut raw_rules, &mut rules);
        let matches = file.tenant(&name, tenant, &mut taken);
        config.tenants.insert(
            name,
            Tenant {
                matches,
                rules,
                memory_at,
            },
        );
    }
    let order = |problem: &Problem| {
        let file = sources.iter().position(|source| source.path == problem.file);
        (file, problem.line, problem.column)
    };
    problems.sort_by_key(order);
    config.not_in_force.sort_by_key(order);
    if problems.is_empty() {
        Ok(config)
    } else {
        Err(Problems(problems))
    }
}

impl File<'_> {
    fn node(&mut self, node: raw::Node, into: &mut super::NodeRules) {
        let modes = [("enforce", Mode::Enforce), ("observe", Mode::Observe)];
        set(&mut into.mode, self.word(node.mode, &modes));
        let absents = [("refuse", Absent::Refuse), ("run", Absent::Run)];
        set(&mut into.absent, self.word(node.absent, &absents));
        let overcommits = [("refuse", Overcommit::Refuse), ("allow", Overcommit::Allow)];
        set(&mut into.overcommit, self.word(node.overcommit, &overcommits));
        let unknowns = [
            ("default", Some(Unknown::Default)),
            ("refuse", Some(Unknown::Refuse)),
            ("report", None),
        ];
        set(
            &mut into.unknown,
            self.word_in_force("unknown", node.unknown, &unknowns),
        );
        set(
            &mut into.reserve,
            self.value(node.reserve, |text| match text {
                "off" => Ok(None),
                _ => text.parse().map(Some).map_err(told),
            }),
        );
        let drifts = [
            ("report", None::<()>),
            ("throttle", None),
            ("freeze", None),
            ("refuse", None),
        ];
        self.word_in_force("drift", node.drift, &drifts);
        self.word_in_force(
            "context",
            node.context,
            &[("inside", Some(())), ("outside", None)],
        );
        let http = node.http.as_ref().map(|http| http.span());
        let address = self.value(node.http, |text| match text {
            "off" => Ok(false),
            _ => text.parse::<std::net::SocketAddr>().map(|_| true).map_err(|_| {
                format!("`{text}` is not an address: write for example \"127.0.0.1:9477\", or \"off\"")
            }),
        });
        if let (Some(span), Some(true)) = (http, address) {
            self.later(span, "http");
        }
        if let Some(file) = node.token_file {
            self.later(file.span(), "token_file");
        }
    }

    fn rules(&mut self, raw: &mut raw::Rules, into: &mut Rules) {
        let pers = [
            ("tenant", Some(Per::Tenant)),
            ("user", Some(Per::User)),
            ("job", None),
            ("container", None),
        ];
        set(&mut into.per, self.word_in_force("per", raw.per.take(), &pers));
        match raw.memory.take() {
            Some(raw::Memory::One(one)) => {
                set(&mut into.memory, self.parsed(Some(one)).map(MemoryRule::one));
            }
            Some(raw::Memory::Two(two)) => {
                let place = two.guaranteed.span();
                let guaranteed = self.parsed::<Memory>(Some(two.guaranteed));
                let burst = self.parsed::<Memory>(Some(two.burst));
                if let (Some(guaranteed), Some(burst)) = (guaranteed, burst) {
                    if exceeds(guaranteed, burst) {
                        self.problem(place, "`guaranteed` is more than `burst`: write at most as much");
                    }
                    into.memory = MemoryRule {
                        guaranteed: Some(guaranteed),
                        cap: burst,
                    };
                }
            }
            None => {}
        }
        self.parsed_later::<Ratio>("share", raw.share.take());
        self.parsed_later::<Ratio>("limit", raw.limit.take());
        self.parsed_later::<Memory>("host_memory", raw.host_memory.take());
        for (key, duration) in [
            ("idle_after", raw.idle_after.take()),
            ("latency_guard", raw.latency_guard.take()),
        ] {
            let span = duration.as_ref().map(|duration| duration.span());
            let value = self.value(duration, |text| units::duration(text).map_err(told));
            if let (Some(span), Some(_)) = (span, value) {
                self.later(span, key);
            }
        }
        let later = |words: &[&'static str]| words.iter().map(|word| (*word, None::<()>)).collect::<Vec<_>>();
        self.word_in_force(
            "priority",
            raw.priority.take(),
            &later(&["low", "normal", "high"]),
        );
        self.word_in_force(
            "pool_contents",
            raw.pool_contents.take(),
            &later(&["keep", "zero", "poison"]),
        );
        self.word_in_force("on_idle", raw.on_idle.take(), &later(&["event", "pause", "swap"]));
        self.word_in_force(
            "pool",
            raw.pool.take(),
            &[("preserve", None), ("elide", None), ("off", Some(()))],
        );
        if let Some(starve) = raw.starve.take() {
            self.later(starve.span(), "starve");
        }
        if let Some(steps) = raw.on_full.take() {
            self.on_full(steps);
        }
    }

    /// `on_full`: what happens at the cap, in order. Only `oom` does anything yet.
    fn on_full(&mut self, steps: Spanned<Vec<Scalar>>) {
        let whole = steps.span();
        let mut only_oom = true;
        for step in steps.into_inner() {
            let (span, text) = parts(&step);
            only_oom &= text == "oom";
            let known = [
                "oom",
                "trim",
                "wait:5s",
                "spill:managed",
                "spill:pinned",
                "swap:idle",
            ];
            match text.strip_prefix("wait:").map(units::duration) {
                Some(Err(error)) => self.problem(span, error.to_string()),
                Some(Ok(_)) => {}
                None if known.contains(&text) => {}
                None => {
                    self.push(
                        self.at(span, format!("`{text}` is not allowed here"))
                            .allow(text, &known),
                    );
                }
            }
        }
        if !only_oom {
            self.later(whole, "on_full");
        }
    }

    /// Tenant names end up in account names, paths and labels.
    fn tenant_name(&mut self, key: &Spanned<std::borrow::Cow<'_, str>>) {
        if let Err(message) = super::tenant_name(key.get_ref()) {
            self.problem(key.span(), message);
        }
    }

    /// The alternatives of `match` that can hold; the rest of the stanza.
    fn tenant(&mut self, name: &str, tenant: raw::Tenant, taken: &mut BTreeMap<Match, String>) -> Vec<Match> {
        for (key, value) in [("hours", tenant.hours), ("until", tenant.until)] {
            if let Some(value) = value {
                self.later(value.span(), key);
            }
        }
        if let Some(gpus) = tenant.gpus {
            self.later(gpus.span(), "gpus");
        }
        let Some(matches) = tenant.matches else {
            return Vec::new();
        };
        let whole = matches.span();
        let mut found = Vec::new();
        for raw in matches.into_inner() {
            let others = [&raw.group, &raw.cgroup, &raw.slurm_job]
                .into_iter()
                .flatten()
                .map(|key| key.span());
            let other = others
                .chain(raw.container.as_ref().map(|container| container.span()))
                .next();
            match (raw.user, other) {
                (_, Some(span)) => self.later(span, "match by anything but user"),
                (None, None) => {
                    self.problem(whole.clone(), "an empty `{ }` in `match` would match everybody")
                }
                (Some(user), None) => {
                    let (span, text) = parts(&user);
                    let one = Match { user: text.into() };
                    match taken.insert(one.clone(), name.into()) {
                        Some(other) => {
                            self.problem(
                                span,
                                format!("user `{text}` is matched by tenant `{other}` already"),
                            );
                        }
                        None => found.push(one),
                    }
                }
            }
        }
        found
    }

    fn device(&mut self, device: raw::Device) {
        let modes = [
            ("share", Some(())),
            ("exclusive", None),
            ("mps", None),
            ("mig", None),
        ];
        self.word_in_force("mode", device.mode, &modes);
        self.word_in_force("policy", device.policy, &[("fair", None::<()>), ("fifo", None)]);
        if let Some(mig) = device.mig {
            self.later(mig.span(), "mig");
        }
    }

    /// Where the stanza says how much memory.
    fn memory_at(&self, rules: &raw::Rules) -> Option<At> {
        let scalar = match rules.memory.as_ref()? {
            raw::Memory::One(one) => one,
            raw::Memory::Two(two) => &two.burst,
        };
        let (line, column) = place(&self.source.text, scalar.span().start);
        Some(At {
            file: self.source.path.clone(),
            line,
            column,
        })
    }
}

fn set<T>(into: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *into = value;
    }
}

/// Whether `a` is surely more than `b` on every device.
fn exceeds(a: Memory, b: Memory) -> bool {
    match (a, b) {
        (Memory::Bytes(a), Memory::Bytes(b)) => a > b,
        (Memory::Part(a), Memory::Part(b)) => a > b,
        (Memory::All, Memory::Bytes(_) | Memory::Part(_)) => true,
        _ => false,
    }
}
