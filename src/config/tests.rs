//! The quota file as people write it, right and wrong.

mod corpus;
mod document;

use super::units::{Bytes, Memory};
use super::*;

const EPOCH: SystemTime = SystemTime::UNIX_EPOCH;

/// Devices of so many GiB each.
fn devices(sizes: &[u64]) -> Vec<Capacity> {
    let device = |(index, gib): (usize, &u64)| Capacity {
        index: index as u32,
        uuid: format!("GPU-{index}"),
        total: Bytes(gib << 30),
    };
    sizes.iter().enumerate().map(device).collect()
}

fn read(text: &str) -> Result<Config, Vec<String>> {
    let source = Source {
        path: "stint.toml".into(),
        text: text.into(),
    };
    Config::parse(&[source]).map_err(|problems| problems.0.iter().map(Problem::to_string).collect())
}

fn bytes(text: &str) -> Memory {
    text.parse().unwrap()
}

fn user(name: &str) -> Match {
    Match {
        user: Some(name.into()),
        ..Match::default()
    }
}

fn group(name: &str) -> Match {
    Match {
        group: Some(name.into()),
        ..Match::default()
    }
}

#[test]
fn a_node_without_a_file_caps_nothing_and_shows_everything() {
    let config = read("").unwrap();
    assert_eq!(config, Config::default());
    assert_eq!(config.defaults.memory, MemoryRule::ALL);
    assert_eq!(config.node.mode, Mode::Enforce);
    assert_eq!(config.node.reserve_on(Bytes(1000)), Bytes(20));
}

#[test]
fn the_contracts_example_is_understood_and_what_has_no_effect_yet_is_said() {
    let config = read(
        r#"
[node]
mode = "enforce"
unknown = "default"
absent = "refuse"
reserve = "2%"
drift = "report"
http = "127.0.0.1:9477"
token_file = "/etc/stint/token"
overcommit = "refuse"
context = "inside"
[defaults]
per = "user"
memory = "6GiB"
share = "10%"
priority = "normal"
[tenants.training]
match = [{ user = "alice" }, { group = "phd" }]
memory = { guaranteed = "16GiB", burst = "40GiB" }
share = "50%"
limit = "80%"
priority = "low"
on_full = ["trim", "wait:5s", "oom"]
pool = "elide"
pool_contents = "keep"
host_memory = "all"
idle_after = "2h"
on_idle = "event"
hours = "22:00-06:00"
[tenants.api]
match = [{ cgroup = "/system.slice/api-*.service" }, { container = { label = "stint.tenant=api" } }, { slurm_job = "*" }]
per = "container"
gpus = ["0", "GPU-1b2c", "MIG-3"]
priority = "high"
latency_guard = "2ms"
starve = false
until = "2026-12-15"
[devices.7]
mode = "exclusive"
policy = "fair"
[devices.6.mig]
layout = ["3g.71gb", "2g.35gb", "1g.18gb"]
"#,
    )
    .unwrap();
    let training = &config.tenants["training"];
    assert_eq!(training.matches, [user("alice"), group("phd")]);
    assert_eq!(
        training.rules.memory,
        MemoryRule {
            guaranteed: Some(bytes("16GiB")),
            cap: bytes("40GiB")
        }
    );
    assert_eq!(
        config.tenants["api"].rules.memory,
        MemoryRule::one(bytes("6GiB")),
        "from [defaults]"
    );
    let later: Vec<String> = config.not_in_force.iter().map(NotInForce::to_string).collect();
    for key in [
        "http",
        "token_file",
        "share",
        "limit",
        "priority",
        "on_full",
        "latency_guard",
        "starve",
        "mode",
        "policy",
        "mig",
        "idle_after",
        "host_memory",
        "on_idle",
    ] {
        assert!(
            later.iter().any(|line| line.contains(&format!("`{key}`"))),
            "{key}: {later:#?}"
        );
    }
    assert!(
        !later.iter().any(|line| line.starts_with("stint.toml:18:")),
        "the group match: {later:#?}"
    );
}

#[test]
fn every_mistake_is_told_with_its_place_and_the_nearest_spelling() {
    let errors = read(
        "[node]\nmode = \"enforced\"\nreserv = \"2%\"\n[defaults]\nmemory = 6\nmemry = \"1GiB\"\npear = \"x\"\n\
         [tenants.a]\nmemory = \"0\"\nmatch = [{ usr = \"bob\" }]\n[tenant.b]\n[devices.x]\n",
    )
    .unwrap_err();
    let expect = [
        "stint.toml:2:8: `enforced` is not allowed here; did you mean `enforce`? (allowed: enforce, observe)",
        "stint.toml:3:1: there is no key `reserv` here; did you mean `reserve`?",
        "stint.toml:5:10: `6` has no unit: write a unit",
        "stint.toml:6:1: there is no key `memry` here; did you mean `memory`?",
        "stint.toml:7:1: there is no key `pear` here; did you mean `per`?",
        "stint.toml:9:10: `0` is zero",
        "stint.toml:10:12: there is no key `usr` here; did you mean `user`?",
        "stint.toml:11:2: there is no table `tenant`; did you mean `tenants`?",
        "stint.toml:12:10: `x` is not the index of a device",
    ];
    assert_eq!(errors.len(), expect.len(), "{errors:#?}");
    for (error, line) in errors.iter().zip(expect) {
        assert!(error.starts_with(line), "{line}\nnot in {errors:#?}");
    }
}

#[test]
fn values_of_the_wrong_shape_are_told_too() {
    for (text, part) in [
        ("[node\n", "stint.toml:1:"),
        ("node = 3\n", "expected a table"),
        ("[defaults]\nmemory = [1]\n", "2:10"),
        (
            "[defaults]\nmemory = { guaranteed = \"4GiB\" }\n",
            "`burst` is missing",
        ),
        (
            "[defaults]\nmemory = { guaranteed = \"4GiB\", burst = \"2GiB\" }\n",
            "more than `burst`",
        ),
        ("[defaults]\nmemory = \"\"\n", "is empty"),
        ("[defaults]\nmemory = -1\n", "is negative"),
        ("[defaults]\nmemory = \"12 GiB\"\n", "write `12GiB`"),
        ("[defaults]\nmemory = 1e9\n", "more than the whole"),
        ("[node]\nhttp = \"here\"\n", "not an address"),
        ("[tenants.a]\nmatch = [{}]\n", "match everybody"),
        ("[tenants.a]\non_full = [\"wait:5\"]\n", "not a duration"),
        ("[tenants.\"a b\"]\n", "letters"),
        (
            "[tenants.a]\nmatch=[{user=\"u\"}]\n[tenants.b]\nmatch=[{user=\"u\"}]\n",
            "tenant `a` already",
        ),
    ] {
        let errors = read(text).expect_err(text);
        assert_eq!(errors.len(), 1, "{text}: {errors:#?}");
        assert!(errors[0].contains(part), "{text}: {errors:#?}");
    }
}

#[test]
fn drop_ins_add_tenants_and_change_single_keys() {
    let source = |path: &str, text: &str| Source {
        path: path.into(),
        text: text.into(),
    };
    let first = source(
        "a.toml",
        "[node]\nmode = \"observe\"\n[defaults]\nmemory = \"1GiB\"\n[tenants.a]\n",
    );
    let second = source(
        "b.toml",
        "[node]\nabsent = \"run\"\n[defaults]\nmemory = \"2GiB\"\n[tenants.b]\n",
    );
    let config = Config::parse(&[first.clone(), second]).unwrap();
    assert_eq!(
        (config.node.mode, config.node.absent),
        (Mode::Observe, Absent::Run)
    );
    assert_eq!(config.tenants["a"].rules.memory.cap, bytes("2GiB"));
    let twice = Config::parse(&[first.clone(), source("c.toml", "[tenants.a]\n")]).unwrap_err();
    assert!(
        twice.to_string().starts_with("c.toml:1:10: tenant `a`"),
        "{twice}"
    );
}

#[test]
fn more_than_a_device_has_is_an_error_once_devices_are_known() {
    let file =
        "[defaults]\nmemory = \"50%\"\n[tenants.a]\nmemory = { guaranteed = \"1GiB\", burst = \"100GiB\" }\n";
    let config = read(file).unwrap();
    let beyond = |gib| config.beyond(&devices(&[gib, gib]), EPOCH);
    assert!(beyond(100).is_empty());
    let problems = beyond(80);
    assert_eq!(problems.len(), 1, "once, not of each device: {problems:?}");
    assert!(
        problems[0]
            .to_string()
            .starts_with("stint.toml:4:41: 107374182400 bytes are more than device 0")
    );
}

#[test]
fn guarantees_that_cannot_all_be_kept_are_an_error_unless_overcommit_is_allowed() {
    let file = |node: &str, more: &str| {
        format!(
            "{node}[defaults]\nmemory = \"60GiB\"\n[tenants.a]\nmemory = \"40GiB\"\n[tenants.b]\nmemory = \"50%\"\n[tenants.c]\n{more}"
        )
    };
    let beyond = |text: &str| -> Vec<String> {
        let problems = read(text).unwrap().beyond(&devices(&[80]), EPOCH);
        problems.iter().map(Problem::to_string).collect()
    };
    let told = beyond(&file("", ""));
    assert_eq!(told.len(), 1, "{told:?}");
    let line = "stint.toml:6:10: 85899345920 bytes of device 0 are guaranteed together to a, b, of which 84181359002 can be";
    assert!(told[0].starts_with(line), "{told:?}");
    for fits in [
        file("[node]\novercommit = \"allow\"\n", ""),
        file("[node]\nreserve = \"off\"\n", ""),
        file("", "").replace("\"50%\"", "{ guaranteed = \"10GiB\", burst = \"50%\" }"),
        file("", "").replace("\"50%\"", "\"50%\"\nuntil = \"1969-12-31\""),
        file("", "").replace("\"50%\"", "\"50%\"\ngpus = [\"1\"]"),
    ] {
        assert_eq!(beyond(&fits), Vec::<String>::new(), "{fits}");
    }
}

#[test]
fn a_stanza_past_its_until_or_outside_its_hours_is_as_if_it_were_not_there() {
    let config = read(
        "[defaults]\nmemory = \"1GiB\"\n[tenants.a]\nmemory = \"2GiB\"\nuntil = 2026-12-15\nhours = \"22:00-06:00\"\n",
    )
    .unwrap();
    let at = |text: &str| SystemTime::try_from(text.parse::<jiff::Timestamp>().unwrap()).unwrap();
    let memory = |now| config.rules_of("a", now).memory.cap.to_string();
    for (now, cap) in [
        ("2026-12-14T20:00:00Z", "1GiB"),
        ("2026-12-14T22:00:00Z", "2GiB"),
        ("2026-12-15T23:59:59Z", "2GiB"),
        ("2026-12-16T00:00:00Z", "1GiB"),
        ("2026-12-16T23:00:00Z", "1GiB"),
    ] {
        assert_eq!(memory(at(now)), cap, "{now}");
        assert_eq!(
            config.in_force(at(now)).count(),
            usize::from(cap == "2GiB"),
            "{now}"
        );
    }
}

#[test]
fn devices_the_file_names_in_vain_are_told_and_are_no_mistake() {
    let config = read("[tenants.a]\ngpus = [\"0\", \"gpu-1\", \"GPU-1\", \"3\"]\n[devices.5]\n");
    assert!(config.is_err(), "a UUID begins GPU- or MIG-");
    let config = read("[tenants.a]\ngpus = [\"0\", \"GPU-1\", \"3\"]\n[devices.5]\n").unwrap();
    let told = config.named_in_vain(&devices(&[80, 80]));
    assert_eq!(
        told,
        [
            "stint.toml:1:10: `gpus` of [tenants.a] names device 3, which is not there",
            "[devices.5] describes a device that is not there"
        ]
    );
    let may: Vec<bool> = devices(&[80; 4])
        .iter()
        .map(|device| config.tenants["a"].may_use(device.index, &device.uuid))
        .collect();
    assert_eq!(may, [true, true, false, true]);
}
