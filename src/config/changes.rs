//! What differs between two quota files, key by key: what a reload tells.

use serde_json::Value;

use super::Config;

impl Config {
    /// Every key that has another value in `new`, one line each: `tenants.a.memory.burst: 8GiB → 6GiB`. Tenants and devices
    /// that came or went are one line; what a tenant has from `[defaults]` is told there.
    pub fn changes(&self, new: &Config) -> Vec<String> {
        // A configuration is plain values: there is nothing that could not be shown.
        let shown = |config: &Config| serde_json::to_value(config).unwrap_or_default();
        let (mut was, mut is) = (shown(self), shown(new));
        leave_out_inherited(&mut was, &mut is);
        let mut lines = Vec::new();
        compare("", &was, &is, &mut lines);
        lines
    }
}

/// Takes out of each tenant what it has from `[defaults]` before and after.
fn leave_out_inherited(was: &mut Value, is: &mut Value) {
    let defaults = [was["defaults"].clone(), is["defaults"].clone()];
    let (Some(before), Some(after)) = (was["tenants"].as_object_mut(), is["tenants"].as_object_mut()) else {
        return;
    };
    for (name, old) in before {
        let (Some(old), Some(new)) = (
            old.as_object_mut(),
            after.get_mut(name).and_then(Value::as_object_mut),
        ) else {
            continue;
        };
        let keys: Vec<String> = old.keys().cloned().collect();
        for key in keys {
            let inherited = old.get(&key) == defaults[0].get(&key) && new.get(&key) == defaults[1].get(&key);
            if inherited {
                old.remove(&key);
                new.remove(&key);
            }
        }
    }
}

fn compare(path: &str, old: &Value, new: &Value, lines: &mut Vec<String>) {
    let (Value::Object(was), Value::Object(is)) = (old, new) else {
        if old != new {
            lines.push(format!("{path}: {} → {}", told(old), told(new)));
        }
        return;
    };
    let stanzas = matches!(path, "tenants" | "devices");
    let gone = was.keys().filter(|key| !is.contains_key(*key));
    for key in gone {
        let (below, value) = (below(path, key), told(&was[key]));
        lines.push(if stanzas {
            format!("{below}: gone")
        } else {
            format!("{below}: {value} → none")
        });
    }
    for (key, new) in is {
        let path = below(path, key);
        match was.get(key) {
            Some(old) => compare(&path, old, new, lines),
            None if stanzas => lines.push(format!("{path}: new")),
            None => lines.push(format!("{path}: none → {}", told(new))),
        }
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.into()
    } else {
        format!("{path}.{key}")
    }
}

fn told(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Source};

    fn config(text: &str) -> Config {
        let source = Source {
            path: "q.toml".into(),
            text: text.into(),
        };
        Config::parse(&[source]).unwrap()
    }

    #[test]
    fn what_changed_is_told_key_by_key() {
        let old = config(
            "[defaults]\nmemory = \"8GiB\"\nidle_after = \"2h\"\n[tenants.a]\n[tenants.b]\nmatch = [{ user = \"u\" }]\n",
        );
        let new = config(
            "[node]\nmode = \"observe\"\n[defaults]\nmemory = \"6GiB\"\nidle_after = \"90m\"\n[tenants.b]\nper = \"tenant\"\n[tenants.c]\n",
        );
        let lines = [
            "defaults.idle_after: 2h → 1h 30m",
            "defaults.memory.burst: 8GiB → 6GiB",
            "defaults.memory.guaranteed: 8GiB → 6GiB",
            "node.mode: enforce → observe",
            "tenants.a: gone",
            "tenants.b.match: [{\"user\":\"u\"}] → []",
            "tenants.b.per: user → tenant",
            "tenants.c: new",
        ];
        assert_eq!(old.changes(&new), lines);
        assert_eq!(new.changes(&new), Vec::<String>::new());
    }
}
