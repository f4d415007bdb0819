//! `[tenants.NAME]`: whom it holds for, on which devices, when; its rules begin as the defaults. `check/device.rs` is next.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;

use super::raw::{self, Scalar, parts};
use super::rules::span;
use crate::config::reader::File;
use crate::config::tenant::CONTAINER_KEYS;
use crate::config::{At, Gpu, Match, Rules, Tenant};

impl File<'_> {
    /// Understands one stanza. `taken`: the alternatives of the tenants before it.
    pub(super) fn tenant(
        &mut self,
        name: &str,
        mut raw: raw::Tenant,
        at: At,
        defaults: &Rules,
        taken: &mut BTreeMap<Match, String>,
    ) -> Tenant {
        let mut raw_rules = raw.rules();
        let memory_at = self.memory_at(&raw_rules);
        let on_idle = span(&raw_rules.on_idle);
        let mut rules = defaults.clone();
        self.rules(&mut raw_rules, &mut rules);
        if let (Some(place), None) = (on_idle, rules.idle_after) {
            self.problem(place, "`on_idle` without `idle_after` would never happen: write how long, for example idle_after = \"2h\"");
        }
        let until = self.value(raw.until, str::parse);
        let hours = self.value(raw.hours, str::parse);
        let gpus = raw.gpus.map(|gpus| self.gpus(gpus));
        let matches = raw.matches.map(|matches| self.matches(name, matches, taken));
        Tenant {
            matches: matches.unwrap_or_default(),
            gpus,
            until,
            hours,
            rules,
            at,
            memory_at,
        }
    }

    fn gpus(&mut self, gpus: Spanned<Vec<Scalar>>) -> Vec<Gpu> {
        let whole = gpus.span();
        let mut read: Vec<Gpu> = Vec::new();
        for gpu in gpus.into_inner() {
            let (place, text) = parts(&gpu);
            match gpu_of(text) {
                Some(gpu) if read.contains(&gpu) => {
                    self.problem(place, format!("device `{text}` stands in the list twice: write it once"));
                }
                Some(gpu) => read.push(gpu),
                None => self.problem(
                    place,
                    format!("`{text}` names no device: write an index, for example \"0\", or a UUID, `GPU-…` or `MIG-…`"),
                ),
            }
        }
        if read.is_empty() && !self.told_inside(whole.clone()) {
            self.problem(
                whole,
                "no device: write at least one, or leave `gpus` out for all",
            );
        }
        read
    }

    fn matches(
        &mut self,
        name: &str,
        matches: Spanned<Vec<Spanned<raw::Match>>>,
        taken: &mut BTreeMap<Match, String>,
    ) -> Vec<Match> {
        let mut found = Vec::new();
        for raw in matches.into_inner() {
            let place = raw.span();
            let raw = raw.into_inner();
            let one = Match {
                user: self.name("user", raw.user),
                group: self.name("group", raw.group),
                cgroup: self.glob(raw.cgroup, |text| {
                    let whole = text.starts_with('/') || text.starts_with('*');
                    whole.then_some(()).ok_or_else(|| {
                        format!("`{text}` is not the path of a cgroup: write for example \"/system.slice/api-*.service\"")
                    })
                }),
                slurm_job: self.glob(raw.slurm_job, |_| Ok(())),
                container: raw.container.map(|container| self.container(container)).unwrap_or_default(),
            };
            if one == Match::default() {
                if self.told_inside(place.clone()) {
                    continue;
                }
                self.problem(
                    place,
                    "an empty `{ }` in `match` would match everybody: name at least one key",
                );
                continue;
            }
            match taken.insert(one.clone(), name.into()) {
                Some(other) => self.equal(place, &one, &other),
                None => found.push(one),
            }
        }
        found
    }

    fn equal(&mut self, place: Range<usize>, one: &Match, other: &str) {
        let message = match one {
            Match { user: Some(user), .. }
                if *one
                    == (Match {
                        user: one.user.clone(),
                        ..Match::default()
                    }) =>
            {
                format!("user `{user}` is matched by tenant `{other}` already")
            }
            _ => format!("the same is matched by tenant `{other}` already"),
        };
        self.problem(place, message);
    }

    /// A user's or group's name or number.
    fn name(&mut self, what: &str, scalar: Option<Scalar>) -> Option<String> {
        self.value(scalar, |text| {
            let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | ':' | ',' | '*');
            if text.is_empty() || text.contains(odd) {
                return Err(format!("`{text}` is not the name or number of a {what}"));
            }
            Ok(text.to_string())
        })
    }

    /// A pattern: `*` is any text, `?` any character, `[abc]` one of these; in a path `*` stays within one component and
    /// `**` does not.
    fn glob(&mut self, scalar: Option<Scalar>, more: impl Fn(&str) -> Result<(), String>) -> Option<String> {
        self.value(scalar, |text| {
            if text.is_empty() || text.contains(char::is_control) {
                return Err(format!("`{text}` is no pattern: write for example \"*\""));
            }
            glob::Pattern::new(text).map_err(|error| {
                let what = "`*`, `?`, `[ab]` and, for whole parts of a path, `**` have a meaning";
                format!("`{text}` is no pattern ({}): {what}", error.msg)
            })?;
            more(text).map(|()| text.to_string())
        })
    }

    fn container(
        &mut self,
        container: Spanned<BTreeMap<Spanned<String>, Scalar>>,
    ) -> BTreeMap<String, String> {
        let whole = container.span();
        let mut read = BTreeMap::new();
        for (key, pattern) in container.into_inner() {
            if !CONTAINER_KEYS.contains(&key.get_ref().as_str()) {
                let problem = self.at(key.span(), format!("there is no key `{}` here", key.get_ref()));
                self.push(problem.allow(key.get_ref(), &CONTAINER_KEYS));
            } else if let Some(pattern) = self.glob(Some(pattern), |_| Ok(())) {
                read.insert(key.into_inner(), pattern);
            }
        }
        if read.is_empty() && !self.told_inside(whole.clone()) {
            let problem = self.at(
                whole,
                "an empty `container` would match every container: write id = \"*\" if that is meant",
            );
            self.push(problem.allow("", &CONTAINER_KEYS));
        }
        read
    }
}

/// A device by index or by UUID, or by the beginning of one.
fn gpu_of(text: &str) -> Option<Gpu> {
    if let Some(index) = crate::config::device::index(text) {
        return Some(Gpu::Index(index));
    }
    let begins = text.starts_with("GPU-") || text.starts_with("MIG-");
    let beginning = text.trim_end_matches('…');
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '/');
    (begins && beginning.chars().all(good)).then(|| Gpu::Uuid(beginning.into()))
}
