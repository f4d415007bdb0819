//! What `stint set` changed: values above the quota file, each until it is dropped, ends by itself, or is replaced. A pure
//! value; the daemon keeps it (`daemon/set.rs`) and asks it for the rule of an account (`daemon/regrant.rs`).

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::config::nearest;
use crate::config::units::{self, Memory, Ratio};
use crate::config::{MemoryRule, Pool};

/// A key `set` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Key {
    /// Cap and guarantee alike, as one value in the quota file.
    #[serde(rename = "memory")]
    Memory,
    #[serde(rename = "memory.guaranteed")]
    Guaranteed,
    /// The cap alone.
    #[serde(rename = "memory.burst")]
    Burst,
    #[serde(rename = "share")]
    Share,
    #[serde(rename = "limit")]
    Limit,
    #[serde(rename = "priority")]
    Priority,
    #[serde(rename = "on_full")]
    OnFull,
    #[serde(rename = "pool")]
    Pool,
}

impl Key {
    pub const ALL: [Key; 8] = [
        Key::Memory,
        Key::Guaranteed,
        Key::Burst,
        Key::Share,
        Key::Limit,
        Key::Priority,
        Key::OnFull,
        Key::Pool,
    ];

    /// As written on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Key::Memory => "memory",
            Key::Guaranteed => "memory.guaranteed",
            Key::Burst => "memory.burst",
            Key::Share => "share",
            Key::Limit => "limit",
            Key::Priority => "priority",
            Key::OnFull => "on_full",
            Key::Pool => "pool",
        }
    }

    /// Whether it has an effect yet.
    pub fn in_force(self) -> bool {
        self.is_memory() || self == Key::Pool
    }

    pub fn is_memory(self) -> bool {
        matches!(self, Key::Memory | Key::Guaranteed | Key::Burst)
    }

    /// The key of that name; else a sentence with the nearest.
    pub fn named(name: &str) -> Result<Key, String> {
        let names: Vec<String> = Key::ALL.iter().map(|key| key.as_str().to_string()).collect();
        let found = Key::ALL.into_iter().find(|key| key.as_str() == name);
        found.ok_or_else(|| {
            let meant =
                nearest(name, &names).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            format!("there is no key `{name}`{meant} (allowed: {})", names.join(", "))
        })
    }

    /// What is wrong with `text` as a value of this key.
    pub fn check(self, text: &str) -> Result<(), String> {
        let told = |error: units::QuantityError| error.to_string();
        match self {
            Key::Memory | Key::Guaranteed | Key::Burst => text.parse::<Memory>().map(drop).map_err(told),
            Key::Share | Key::Limit => text.parse::<Ratio>().map(drop).map_err(told),
            Key::Priority if ["low", "normal", "high"].contains(&text) => Ok(()),
            Key::Priority => Err(format!("`{text}` is no priority: write low, normal or high")),
            Key::Pool if Pool::named(text).is_some() => Ok(()),
            Key::Pool => Err(format!(
                "`{text}` is no way to pool: write preserve, elide or off"
            )),
            Key::OnFull => text.split(',').try_for_each(on_full_step),
        }
    }
}

fn on_full_step(step: &str) -> Result<(), String> {
    let words = ["oom", "trim", "spill:managed", "spill:pinned", "swap:idle"];
    match step.strip_prefix("wait:") {
        Some(time) => units::duration(time).map(drop).map_err(|error| error.to_string()),
        None if words.contains(&step) => Ok(()),
        None => Err(format!(
            "`{step}` is not allowed here (allowed: {}, wait:5s)",
            words.join(", ")
        )),
    }
}

/// One value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// As written, checked.
    pub text: String,
    /// Who wrote it.
    pub by: String,
    pub at: SystemTime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<SystemTime>,
}

impl Setting {
    fn memory(&self) -> Option<Memory> {
        self.text.parse().ok()
    }
}

type Settings = BTreeMap<Key, Setting>;

/// What holds above the quota file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overrides {
    /// By those with authority, for a tenant or an account.
    #[serde(default)]
    set: BTreeMap<String, Settings>,
    /// By the owner of an account for itself: these only lower.
    #[serde(default)]
    lowered: BTreeMap<String, Settings>,
}

/// What ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Tenant or account.
    pub target: String,
    pub key: Key,
    pub setting: Setting,
}

impl Overrides {
    /// Whether anything is set for `target`, a tenant or an account, by anybody.
    pub fn mentions(&self, target: &str) -> bool {
        self.set.contains_key(target) || self.lowered.contains_key(target)
    }

    /// What is set for exactly `target` by those with authority.
    pub fn of(&self, target: &str) -> impl Iterator<Item = (Key, &Setting)> {
        self.set
            .get(target)
            .into_iter()
            .flatten()
            .map(|(key, setting)| (*key, setting))
    }

    /// What is set for exactly `target` and `key` by those with authority.
    pub fn get(&self, target: &str, key: Key) -> Option<&Setting> {
        self.set.get(target)?.get(&key)
    }

    /// The cap set for exactly `target` by those with authority.
    pub fn cap(&self, target: &str) -> Option<&Setting> {
        self.get(target, Key::Memory)
            .or_else(|| self.get(target, Key::Burst))
    }

    /// By which its owner lowered an account's cap.
    pub fn lowering(&self, account: &str) -> Option<&Setting> {
        self.lowered.get(account)?.get(&Key::Memory)
    }

    /// Sets a value, `None` drops it. One value of memory replaces the two, and the other way round.
    pub fn set(&mut self, target: &str, key: Key, setting: Option<Setting>) {
        change(&mut self.set, target, key, setting);
    }

    /// The same by the owner of an account for itself.
    pub fn lower(&mut self, account: &str, key: Key, setting: Option<Setting>) {
        change(&mut self.lowered, account, key, setting);
    }

    /// Drops what the owner of `account` said of `key`: somebody with authority spoke since.
    pub fn overrule(&mut self, account: &str, key: Key) {
        if key.is_memory() {
            change(&mut self.lowered, account, Key::Memory, None);
        }
    }

    /// What holds without the owner's own lowering.
    pub fn forget_lowering(&mut self, account: &str) {
        self.lowered.remove(account);
    }

    /// Forgets a tenant or account that is no more.
    pub fn forget(&mut self, target: &str) {
        self.set.remove(target);
        self.lowered.remove(target);
    }

    /// Forgets all but what is set for targets that `remain`.
    pub fn retain(&mut self, remain: impl Fn(&str) -> bool) {
        for all in [&mut self.set, &mut self.lowered] {
            all.retain(|target, _| remain(target));
        }
    }

    /// Takes out what is over at `now`.
    pub fn expire(&mut self, now: SystemTime) -> Vec<Ended> {
        let mut ended = Vec::new();
        for all in [&mut self.set, &mut self.lowered] {
            for (target, settings) in all.iter_mut() {
                let over = |setting: &Setting| setting.until.is_some_and(|until| until <= now);
                for (key, setting) in settings.extract_if(.., |_, setting| over(setting)) {
                    let target = target.clone();
                    ended.push(Ended { target, key, setting });
                }
            }
            all.retain(|_, settings| !settings.is_empty());
        }
        ended
    }

    /// `rule` as changed for exactly `target`; `None`: nothing is set for it.
    pub fn memory(&self, target: &str, rule: MemoryRule) -> Option<MemoryRule> {
        let settings = self.set.get(target)?;
        let of = |key| settings.get(&key).and_then(Setting::memory);
        if let Some(one) = of(Key::Memory) {
            return Some(MemoryRule::one(one));
        }
        let (guaranteed, burst) = (of(Key::Guaranteed), of(Key::Burst));
        if guaranteed.is_none() && burst.is_none() {
            return None;
        }
        Some(MemoryRule {
            guaranteed: guaranteed.or(rule.guaranteed),
            cap: burst.unwrap_or(rule.cap),
        })
    }

    /// What is set of `key` for exactly `target` by those with authority, as written.
    pub fn text(&self, target: &str, key: Key) -> Option<&str> {
        let setting = self.set.get(target)?.get(&key)?;
        Some(&setting.text)
    }

    /// The most the owner of `account` lets itself have.
    pub fn own_cap(&self, account: &str) -> Option<Memory> {
        self.lowering(account)?.memory()
    }
}

fn change(all: &mut BTreeMap<String, Settings>, target: &str, key: Key, setting: Option<Setting>) {
    let settings = all.entry(target.into()).or_default();
    match key {
        Key::Memory => settings.retain(|other, _| !other.is_memory()),
        Key::Guaranteed | Key::Burst => drop(settings.remove(&Key::Memory)),
        _ => {}
    }
    match setting {
        Some(setting) => drop(settings.insert(key, setting)),
        None => drop(settings.remove(&key)),
    }
    if settings.is_empty() {
        all.remove(target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn setting(text: &str, until: Option<u64>) -> Option<Setting> {
        Some(Setting {
            text: text.into(),
            by: "root".into(),
            at: at(0),
            until: until.map(at),
        })
    }

    fn memory(text: &str) -> Memory {
        text.parse().unwrap()
    }

    #[test]
    fn one_value_replaces_the_two_and_the_other_way_round() {
        let mut overrides = Overrides::default();
        let file = MemoryRule::one(memory("6GiB"));
        overrides.set("a", Key::Burst, setting("8GiB", None));
        let burst = MemoryRule {
            guaranteed: Some(memory("6GiB")),
            cap: memory("8GiB"),
        };
        assert_eq!(overrides.memory("a", file), Some(burst));
        overrides.set("a", Key::Memory, setting("2GiB", None));
        assert_eq!(overrides.memory("a", file), Some(MemoryRule::one(memory("2GiB"))));
        overrides.set("a", Key::Guaranteed, setting("1GiB", None));
        let guaranteed = MemoryRule {
            guaranteed: Some(memory("1GiB")),
            cap: memory("6GiB"),
        };
        assert_eq!(overrides.memory("a", file), Some(guaranteed));
        overrides.set("a", Key::Memory, None);
        assert_eq!(overrides.memory("a", file), None);
        assert_eq!(overrides, Overrides::default(), "nothing is left behind");
    }

    #[test]
    fn a_value_ends_at_its_time_and_not_before() {
        let mut overrides = Overrides::default();
        overrides.set("a", Key::Memory, setting("2GiB", Some(10)));
        overrides.lower("a/x", Key::Memory, setting("1GiB", Some(20)));
        overrides.set("a", Key::Share, setting("20%", None));
        assert!(overrides.expire(at(9)).is_empty());
        let ended = overrides.expire(at(10));
        assert_eq!(
            (ended.len(), ended[0].target.as_str(), ended[0].key),
            (1, "a", Key::Memory)
        );
        assert_eq!(overrides.own_cap("a/x"), Some(memory("1GiB")));
        assert_eq!(overrides.expire(at(20)).len(), 1);
        assert!(overrides.mentions("a") && !overrides.mentions("a/x"));
    }

    #[test]
    fn who_has_authority_has_the_last_word() {
        let mut overrides = Overrides::default();
        overrides.lower("a/x", Key::Memory, setting("1GiB", None));
        overrides.overrule("a/x", Key::Share);
        assert!(overrides.lowering("a/x").is_some());
        overrides.overrule("a/x", Key::Burst);
        assert_eq!(overrides.lowering("a/x"), None);
    }

    #[test]
    fn keys_and_values_are_checked_with_the_nearest_spelling() {
        assert_eq!(Key::named("memory.burst"), Ok(Key::Burst));
        let error = Key::named("memroy").unwrap_err();
        assert!(error.contains("did you mean `memory`?"), "{error}");
        for (key, good, wrong) in [
            (Key::Memory, "50%", "8"),
            (Key::Share, "30%", "130%"),
            (Key::Limit, "0.5", "0"),
            (Key::Priority, "low", "urgent"),
            (Key::OnFull, "trim,wait:5s,oom", "trim,wait"),
            (Key::Pool, "elide", "yes"),
        ] {
            assert_eq!(key.check(good), Ok(()));
            assert!(key.check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_record_of_it_reads_back_the_same() {
        let mut overrides = Overrides::default();
        overrides.set("a", Key::Burst, setting("8GiB", Some(10)));
        overrides.lower("a/x", Key::Memory, setting("1GiB", None));
        let text = serde_json::to_string(&overrides).unwrap();
        assert!(text.contains("\"memory.burst\""), "{text}");
        assert_eq!(serde_json::from_str::<Overrides>(&text).unwrap(), overrides);
    }
}
