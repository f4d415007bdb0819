//! `stint set`: changes what a tenant or account has, at once and without a restart of anything. The daemon checks and
//! decides (`src/daemon/set.rs`); this file reads the words and tells what changed, in exact bytes.

use std::collections::BTreeMap;
use std::path::Path;

use crate::config::units::{self, Bytes};
use crate::exit::{Exit, Failure};
use crate::protocol::set::{Account, Changed, Device, Set};
use crate::{output, status};

/// Changes hold above the quota file until they are dropped (`KEY=default`), end by themselves (`--for`), or the tenant made
/// by `run -t` ends. A cap below what is in use ends nobody: allocations are refused until less is in use.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  stint set lab memory=8GiB\n  stint set lab memory.guaranteed=4GiB memory.burst=16GiB --for 2h\n  \
                        stint set default/alice memory=default\n\nRoot, the daemon's user and group stint may set anything; \
                        others may lower the memory of their own account, and drop that again."
)]
pub struct Args {
    /// A tenant (each of its accounts), or one account, for example `lab` or `default/alice`
    #[arg(value_name = "TENANT")]
    pub target: String,
    /// memory=8GiB, memory.burst=, memory.guaranteed=, share=, limit=, priority=, on_full=trim,wait:5s,oom, pool=; `default` drops it
    #[arg(value_name = "KEY=VALUE", required = true, value_parser = key_value)]
    pub values: Vec<(String, String)>,
    /// Ends by itself after this time, for example `2h`
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub period: Option<String>,
    /// Schema `stint.set/v1`
    #[arg(long)]
    pub json: bool,
}

/// Runs the verb.
pub fn main(args: Args, run_dir: Option<&Path>) -> Result<Exit, Failure> {
    let mut values = BTreeMap::new();
    for (key, value) in args.values {
        if values.insert(key.clone(), value).is_some() {
            return Err(Failure::usage(format!("`{key}` is given twice")));
        }
    }
    let changed = status::connect(run_dir)?.set(Set {
        target: args.target,
        values,
        period: args.period,
    })?;
    if args.json {
        output::json(&changed)?;
    } else {
        output::line(&text(&changed))?;
    }
    Ok(Exit::OK)
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is no KEY=VALUE: write for example memory=8GiB"))?;
    Ok((key.into(), value.into()))
}

fn duration(text: &str) -> Result<String, units::QuantityError> {
    units::duration(text).map(|_| text.into())
}

fn text(changed: &Changed) -> String {
    let of = |account| self::account(&changed.target, account);
    let mut lines: Vec<String> = changed.accounts.iter().flat_map(of).collect();
    lines.extend(changed.until.as_ref().map(|until| format!("until {until}")));
    for key in &changed.not_in_force {
        lines.push(format!("`{key}` is kept and not in force yet"));
    }
    lines.join("\n")
}

fn account(target: &str, account: &Account) -> Vec<String> {
    let who = match &account.account {
        Some(account) => account.clone(),
        None if target == account.tenant => format!("tenant {target} (no account of it is open yet)"),
        None => format!("account {target} (not open yet)"),
    };
    account
        .devices
        .iter()
        .map(|device| format!("{who}: {}", line(device)))
        .collect()
}

fn line(device: &Device) -> String {
    let amount = |bytes: u64| format!("{bytes} bytes ({})", Bytes(bytes));
    let change = |before: u64, after: u64| {
        if before == after {
            format!("stays {}", amount(after))
        } else {
            format!("{} -> {}", amount(before), amount(after))
        }
    };
    let (before, after) = (device.before, device.after);
    let mut text = format!(
        "device {}: cap {}",
        device.index,
        change(before.cap_bytes, after.cap_bytes)
    );
    if before.guaranteed_bytes != after.guaranteed_bytes {
        text += &format!(
            ", guaranteed {}",
            change(before.guaranteed_bytes, after.guaranteed_bytes)
        );
    }
    match device.used_bytes {
        Some(used) if used > after.cap_bytes => {
            text += &format!(
                "; {used} bytes are in use, {} above it: nobody is ended, allocations are refused until less is in use",
                used - after.cap_bytes
            );
        }
        _ => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::set::{Amounts, SCHEMA};

    #[test]
    fn the_change_is_told_in_exact_bytes() {
        let amounts = |cap_bytes| Amounts {
            cap_bytes,
            guaranteed_bytes: 0,
        };
        let changed = Changed {
            schema: SCHEMA.into(),
            target: "lab".into(),
            until: Some("2026-01-01T00:00:00.000Z".into()),
            accounts: vec![Account {
                tenant: "lab".into(),
                account: Some("lab".into()),
                devices: vec![Device {
                    index: 3,
                    before: amounts(8 << 30),
                    after: amounts(4 << 30),
                    used_bytes: Some((4 << 30) + 7),
                }],
            }],
            not_in_force: vec!["share".into()],
        };
        assert_eq!(
            text(&changed),
            "lab: device 3: cap 8589934592 bytes (8 GiB) -> 4294967296 bytes (4 GiB); 4294967303 bytes are in use, 7 above it: \
             nobody is ended, allocations are refused until less is in use\nuntil 2026-01-01T00:00:00.000Z\n\
             `share` is kept and not in force yet"
        );
    }

    #[test]
    fn what_is_not_open_yet_is_named_as_it_was_asked_for() {
        let changed = |target: &str| Changed {
            schema: SCHEMA.into(),
            target: target.into(),
            until: None,
            accounts: vec![Account {
                tenant: "lab".into(),
                account: None,
                devices: vec![Device {
                    index: 0,
                    before: Amounts::default(),
                    after: Amounts::default(),
                    used_bytes: None,
                }],
            }],
            not_in_force: Vec::new(),
        };
        let (of_tenant, of_account) = (text(&changed("lab")), text(&changed("lab/alice")));
        assert!(
            of_tenant.starts_with("tenant lab (no account of it is open yet): device 0"),
            "{of_tenant}"
        );
        assert!(
            of_account.starts_with("account lab/alice (not open yet): device 0"),
            "{of_account}"
        );
    }

    #[test]
    fn words_without_a_value_are_told() {
        assert!(key_value("memory").unwrap_err().contains("KEY=VALUE"));
        assert_eq!(key_value("a=b=c"), Ok(("a".into(), "b=c".into())));
    }
}
