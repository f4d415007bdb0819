//! `stint why`: the rule in force for a tenant, account or process, and what was refused last, in one sentence each. The
//! daemon knows (`src/daemon/why.rs`); this file finds the words.

use std::path::Path;

use crate::config::Mode;
use crate::config::units::Bytes;
use crate::exit::{Exit, Failure};
use crate::protocol::node::Refusal;
use crate::protocol::why::{Account, Device, Origin, Process, Standing, Why};
use crate::{output, status};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A tenant, an account such as `default/alice`, or the number of a process
    #[arg(value_name = "TENANT|PID")]
    pub subject: String,
    /// Schema `stint.why/v1`
    #[arg(long)]
    pub json: bool,
}

/// Runs the verb.
pub fn main(args: &Args, run_dir: Option<&Path>) -> Result<Exit, Failure> {
    let why = status::connect(run_dir)?.why(&args.subject)?;
    if args.json {
        output::json(&why)?;
    } else {
        output::line(&sentences(&why).join("\n"))?;
    }
    Ok(Exit::OK)
}

fn sentences(why: &Why) -> Vec<String> {
    let mut said: Vec<String> = why.process.iter().map(process).collect();
    for account in &why.accounts {
        // What is not open yet is named as it was asked for.
        let open = account.account.clone();
        let account = &Account {
            account: open.or_else(|| Some(why.subject.clone())),
            ..account.clone()
        };
        said.push(rule(account, why.mode));
        said.push(refusal(account));
        said.extend(
            account
                .not_in_force
                .iter()
                .map(|key| format!("{}: {key}.", name(account))),
        );
    }
    said
}

fn name(account: &Account) -> &str {
    account.account.as_deref().unwrap_or(&account.tenant)
}

fn amount(bytes: u64) -> String {
    match Bytes(bytes) {
        small @ Bytes(..1024) => small.to_string(),
        large => format!("{bytes} bytes ({large})"),
    }
}

/// Who it is, and what it is to the node.
fn process(process: &Process) -> String {
    let who = match (&process.command, &process.user) {
        (Some(command), Some(user)) => format!("pid {} ({command}, user {user})", process.pid),
        (Some(command), None) => format!("pid {} ({command})", process.pid),
        (None, Some(user)) => format!("pid {} (user {user})", process.pid),
        (None, None) => format!("pid {}", process.pid),
    };
    let since = process.since.as_deref().unwrap_or("an unknown time");
    let held: Vec<String> = process
        .devices
        .iter()
        .map(|held| {
            let bytes = held.used_bytes.map_or("an unknown amount".into(), amount);
            format!("{bytes} of device {}", held.index)
        })
        .collect();
    let held = if held.is_empty() {
        "no memory".into()
    } else {
        held.join(", ")
    };
    match process.state {
        Standing::Client => format!("{who} is a client since {since} and holds {held}."),
        Standing::Unattached => format!(
            "{who} holds {held} and is nobody's client, first seen at {since}: no cap binds it; start it with `stint run`, or \
             see that its program loads libcuda.so.1 through the loader and not by a path or statically."
        ),
        Standing::Denied => format!(
            "{who} was turned away at {since} ({}): {}.",
            process.reason.as_deref().unwrap_or("unknown reason"),
            process.message.as_deref().unwrap_or("nothing else is known")
        ),
        Standing::None => format!("{who} runs, holds no device, and did not ask to be a client."),
    }
}

/// What the account has, of what is in use, and who said so.
fn rule(account: &Account, mode: Mode) -> String {
    let rule = &account.rule;
    let until = rule
        .until
        .as_ref()
        .map_or("until it is dropped".into(), |until| format!("until {until}"));
    let mut from = match rule.from {
        Origin::Set => format!("set by {} {until}", rule.by.as_deref().unwrap_or("somebody")),
        Origin::Launch => "asked for by `stint run --memory`".into(),
        Origin::Tenant => "from the tenant's stanza".into(),
        Origin::Defaults => "from [defaults]".into(),
        Origin::Nothing => "because no quota file says anything else".into(),
    };
    if let Some(at) = &rule.at {
        from += &format!(" at {at}");
    }
    if let Some(part_of) = &rule.part_of {
        from += &format!(", part of what {part_of} has");
    }
    if let Some(lowered) = &rule.lowered_to {
        from += &format!(", lowered to {lowered} by its owner");
    }
    let guaranteed = match &rule.guaranteed {
        Some(guaranteed) if *guaranteed != rule.memory => format!(", {guaranteed} of it guaranteed"),
        _ => String::new(),
    };
    let binds = match mode {
        Mode::Enforce => "the cap",
        Mode::Observe => "the node only observes and refuses nothing; the cap would be",
    };
    format!(
        "{}: {binds} is {}{guaranteed} per device, {from}: {}.",
        name(account),
        rule.memory,
        account.devices.iter().map(device).collect::<Vec<_>>().join("; ")
    )
    .replace("would be is", "would be")
}

fn device(device: &Device) -> String {
    let cap = amount(device.cap_bytes);
    if device.drained {
        let used = device
            .used_bytes
            .map_or(String::new(), |used| format!(", {} still in use", amount(used)));
        return format!("device {}: drained, cap {cap}{used}", device.index);
    }
    match device.used_bytes {
        Some(used) if used > device.cap_bytes => format!(
            "device {}: {} of {cap} in use, {} too much, so that every allocation is refused until less is",
            device.index,
            amount(used),
            amount(used - device.cap_bytes)
        ),
        Some(used) => format!("device {}: {} of {cap} in use", device.index, amount(used)),
        None => format!("device {}: {cap}", device.index),
    }
}

/// What was refused last, and how to get it.
fn refusal(account: &Account) -> String {
    let Some(Refusal {
        at,
        pid,
        device,
        asked_bytes,
        used_bytes,
        cap_bytes,
        reason,
    }) = &account.last_refusal
    else {
        return format!("{}: nothing was refused.", name(account));
    };
    let who = match pid {
        0 => "a client that has gone".to_string(),
        pid => format!("pid {pid}"),
    };
    format!(
        "{}: at {at} {who} was refused {} on device {device}, where {} of {} were in use ({reason}); {}.",
        name(account),
        amount(*asked_bytes),
        amount(*used_bytes),
        amount(*cap_bytes),
        raise(account, *device, reason, used_bytes.saturating_add(*asked_bytes))
    )
}

/// What helps against a refusal.
fn raise(account: &Account, device: u32, reason: &str, needed: u64) -> String {
    if reason != "cap" {
        return "the cap was not the reason: wait until others have freed memory, or use another device"
            .into();
    }
    if let Some(device) = account.devices.iter().find(|on| on.index == device && on.drained) {
        return format!(
            "the device is drained: use another, or have an administrator open it: `stint drain --undo --gpu {}`",
            device.index
        );
    }
    let mib = needed.div_ceil(1 << 20);
    let now = account
        .devices
        .iter()
        .map(|device| device.cap_bytes)
        .min()
        .unwrap_or(0);
    if now >= needed {
        return "it would fit now".into();
    }
    let file = match (&account.rule.from, &account.rule.at) {
        (Origin::Tenant | Origin::Defaults, Some(at)) => format!(" or a larger `memory` at {at}"),
        _ => String::new(),
    };
    let lowered = if account.rule.lowered_to.is_some() {
        format!("first `stint set {} memory=default`, then ", name(account))
    } else {
        String::new()
    };
    format!(
        "free some, or have an administrator raise it: {lowered}`stint set {} memory.burst={mib}MiB`{file}",
        name(account)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::why::{Holding, Rule, SCHEMA};

    fn account() -> Account {
        Account {
            tenant: "lab".into(),
            account: Some("lab/alice".into()),
            rule: Rule {
                memory: "8GiB".into(),
                guaranteed: Some("2GiB".into()),
                from: Origin::Tenant,
                at: Some("/etc/stint/stint.toml:12:10".into()),
                by: None,
                until: None,
                part_of: None,
                lowered_to: None,
            },
            devices: vec![Device {
                index: 0,
                cap_bytes: 8 << 30,
                guaranteed_bytes: 2 << 30,
                drained: false,
                used_bytes: Some(7 << 30),
            }],
            last_refusal: Some(Refusal {
                at: "2026-01-01T00:00:00.000Z".into(),
                pid: 77,
                device: 0,
                asked_bytes: 2 << 30,
                used_bytes: 7 << 30,
                cap_bytes: 8 << 30,
                reason: "cap".into(),
            }),
            not_in_force: Vec::new(),
        }
    }

    fn why(account: Account, process: Option<Process>) -> Why {
        Why {
            schema: SCHEMA.into(),
            subject: "x".into(),
            mode: Mode::Enforce,
            process,
            accounts: vec![account],
        }
    }

    #[test]
    fn one_sentence_says_the_rule_and_one_the_refusal() {
        assert_eq!(
            sentences(&why(account(), None)),
            [
                "lab/alice: the cap is 8GiB, 2GiB of it guaranteed per device, from the tenant's stanza at \
                 /etc/stint/stint.toml:12:10: device 0: 7516192768 bytes (7 GiB) of 8589934592 bytes (8 GiB) in use.",
                "lab/alice: at 2026-01-01T00:00:00.000Z pid 77 was refused 2147483648 bytes (2 GiB) on device 0, where \
                 7516192768 bytes (7 GiB) of 8589934592 bytes (8 GiB) were in use (cap); free some, or have an administrator \
                 raise it: `stint set lab/alice memory.burst=9216MiB` or a larger `memory` at /etc/stint/stint.toml:12:10."
            ]
        );
    }

    #[test]
    fn a_set_value_says_by_whom_and_until_when() {
        let mut changed = account();
        changed.rule = Rule {
            memory: "all".into(),
            guaranteed: None,
            from: Origin::Set,
            at: None,
            by: Some("root".into()),
            until: Some("2026-01-01T02:00:00.000Z".into()),
            ..changed.rule
        };
        changed.devices[0].cap_bytes = 140 << 30;
        let said = sentences(&why(changed, None));
        assert!(
            said[0].contains("set by root until 2026-01-01T02:00:00.000Z"),
            "{said:?}"
        );
        assert!(said[1].ends_with("(cap); it would fit now."), "{said:?}");
    }

    #[test]
    fn a_drained_device_is_no_matter_of_caps() {
        let mut drained = account();
        drained.devices[0].drained = true;
        let said = sentences(&why(drained, None));
        assert!(said[0].ends_with(
            "device 0: drained, cap 8589934592 bytes (8 GiB), 7516192768 bytes (7 GiB) still in use."
        ));
        assert!(said[1].ends_with("`stint drain --undo --gpu 0`."), "{said:?}");
    }

    #[test]
    fn an_unattached_process_is_told_with_what_helps() {
        let process = Process {
            pid: 5,
            state: Standing::Unattached,
            user: Some("bob".into()),
            command: Some("train".into()),
            since: Some("2026-01-01T00:00:00.000Z".into()),
            devices: vec![Holding {
                index: 1,
                used_bytes: None,
            }],
            reason: None,
            message: None,
        };
        let said = super::process(&process);
        assert!(said.starts_with(
            "pid 5 (train, user bob) holds an unknown amount of device 1 and is nobody's client"
        ));
        assert!(said.contains("stint run"));
    }
}
