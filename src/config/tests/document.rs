//! docs/configuration.md and `config/raw.rs` name the same keys; what the page says of their force is so; its examples are
//! right.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::*;

fn text(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The rows of the page by the heading they stand under: key, and what its last column says.
fn documented() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut found: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut heading = String::new();
    for line in text("docs/configuration.md").lines() {
        if let Some(title) = line.strip_prefix('#') {
            heading = title.trim_start_matches('#').trim().trim_matches('`').to_string();
        }
        let Some(row) = line.strip_prefix("| `") else {
            continue;
        };
        let cells: Vec<&str> = row.split(" | ").collect();
        let [key, _, _, force] = cells[..] else { continue };
        let Some(key) = key.strip_suffix('`') else {
            continue;
        };
        let force = force.trim_end_matches([' ', '|']).to_string();
        found
            .entry(heading.clone())
            .or_default()
            .insert(key.into(), force);
    }
    found
}

/// The keys of each struct of `raw.rs`.
fn written() -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut of, mut renamed) = (String::new(), None);
    for line in text("src/config/raw.rs").lines() {
        if let Some(name) = line.strip_prefix("pub struct ") {
            of = name.trim_end_matches([' ', '{']).to_string();
        }
        if let Some(name) = line.trim().strip_prefix("#[serde(rename = \"") {
            renamed = name.split('"').next().map(String::from);
        }
        if let Some((key, _)) = line
            .strip_prefix("    pub ")
            .and_then(|field| field.split_once(": "))
        {
            found
                .entry(of.clone())
                .or_default()
                .insert(renamed.take().unwrap_or_else(|| key.into()));
        }
    }
    found
}

#[test]
fn the_page_names_every_key_and_no_other() {
    let (page, code) = (documented(), written());
    let rules = code["Rules"].clone();
    assert!(
        code["Tenant"].is_superset(&rules),
        "a tenant has every key of the defaults"
    );
    for (heading, keys) in [
        ("[node]", code["Node"].clone()),
        ("[defaults]", rules.clone()),
        ("memory", code["Two"].clone()),
        ("[tenants.NAME]", &code["Tenant"] - &rules),
        ("match", code["Match"].clone()),
        ("[devices.N]", code["Device"].clone()),
        ("mig", code["Mig"].clone()),
    ] {
        let named: BTreeSet<String> = page[heading].keys().cloned().collect();
        assert_eq!(named, keys, "under {heading}");
    }
}

#[test]
fn what_the_page_says_of_the_force_of_a_key_is_so() {
    let node = [
        "drift = \"report\"",
        "http = \"127.0.0.1:1\"",
        "token_file = \"/t\"",
        "context = \"inside\"",
        "mode = \"observe\"",
        "unknown = \"report\"",
        "absent = \"run\"",
        "reserve = \"3%\"",
        "overcommit = \"allow\"",
    ]
    .join("\n");
    let rules = [
        "per = \"job\"",
        "memory = \"1GiB\"",
        "share = \"1%\"",
        "limit = \"2%\"",
        "priority = \"normal\"",
        "on_full = [\"oom\"]",
        "pool = \"off\"",
        "pool_contents = \"keep\"",
        "host_memory = \"all\"",
        "idle_after = \"1h\"",
        "on_idle = \"event\"",
        "latency_guard = \"1ms\"",
        "starve = false",
    ]
    .join("\n");
    let tenant = "match = [{ user = \"u\", group = \"g\", cgroup = \"/c\", slurm_job = \"1\", container = { id = \"x\" } }]\n\
                  gpus = [0]\nuntil = 2026-12-15\nhours = \"01:00-02:00\"";
    let device = "mode = \"share\"\npolicy = \"fair\"\n[devices.1]\nmig = { layout = [\"1g.18gb\"] }";
    let file = format!("[node]\n{node}\n[defaults]\n{rules}\n[tenants.a]\n{tenant}\n[devices.0]\n{device}\n");
    let later: BTreeSet<(String, &str)> = read(&file)
        .unwrap()
        .not_in_force
        .iter()
        .map(|key| (key.stanza.clone(), key.key))
        .collect();
    let mut said = BTreeSet::new();
    for (heading, stanza) in [
        ("[node]", "node"),
        ("[defaults]", "defaults"),
        ("[tenants.NAME]", "tenants.a"),
        ("[devices.N]", "devices.0"),
    ] {
        for (key, force) in &documented()[heading] {
            let stanza = if key == "mig" { "devices.1" } else { stanza };
            assert!(
                force == "yes" || force == "not yet" || force.starts_with("only `"),
                "{key}: {force}"
            );
            if force == "not yet" {
                said.insert((stanza.to_string(), key.clone()));
            }
        }
    }
    let later: BTreeSet<(String, String)> = later
        .into_iter()
        .map(|(stanza, key)| (stanza, key.into()))
        .collect();
    assert_eq!(later, said);
    for (stanza, line) in [
        ("node", "context = \"outside\""),
        ("node", "drift = \"freeze\""),
        ("defaults", "on_full = [\"trim\", \"oom\"]"),
        ("devices.0", "mode = \"mps\""),
    ] {
        let config = read(&format!("[{stanza}]\n{line}\n")).unwrap();
        assert_eq!(
            config.not_in_force.len(),
            1,
            "{line}: only one of its words is in force"
        );
    }
}

#[test]
fn the_examples_of_the_page_have_no_mistake() {
    let page = text("docs/configuration.md");
    let examples: Vec<&str> = page
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        let config = read(example).unwrap_or_else(|problems| panic!("{problems:?}\n{example}"));
        let problems = config.beyond(&devices(&[80; 4]), EPOCH);
        assert!(problems.is_empty(), "{problems:?}");
    }
}
