//! Which tenant of the quota file means a process. `identity.rs` makes an account's name of the answer.

use std::time::SystemTime;

use glob::{MatchOptions, Pattern};

use super::identity::Peer;
use crate::config::{Config, Match, Tenant};

/// What a look through the tenants gave.
#[derive(Debug)]
pub struct Matching<'a> {
    /// `None`: nobody means this process.
    pub tenant: Option<(&'a str, &'a Tenant)>,
    /// What an administrator should hear of: matches of the same weight, matches that could not be decided.
    pub notes: Vec<String>,
}

/// The tenant in force at `now` whose match weighs most: one by container more than one by job, then cgroup, user, group;
/// of two that begin alike the one with more keys. Between equals the one with the lower cap.
pub fn tenant_of<'a>(config: &'a Config, peer: &Peer, now: SystemTime) -> Matching<'a> {
    let mut notes = Vec::new();
    let mut best: Option<(u8, &str, &Tenant)> = None;
    for (name, tenant) in config.in_force(now) {
        let holding = tenant
            .matches
            .iter()
            .filter(|one| holds(one, peer, name, &mut notes));
        let Some(found) = holding.map(weight).max() else {
            continue;
        };
        best = match best {
            Some((before, other, rules)) if before == found => {
                let (kept, lost) = if rules.rules.memory.cap.surely_exceeds(tenant.rules.memory.cap) {
                    ((found, name, tenant), other)
                } else {
                    ((before, other, rules), name)
                };
                notes.push(format!(
                    "tenants {} and {lost} match pid {} (user {}) with the same weight: the lower cap counts, that of {}",
                    kept.1, peer.identity.pid, peer.user, kept.1
                ));
                Some(kept)
            }
            Some((before, ..)) if before > found => best,
            _ => Some((found, name, tenant)),
        };
    }
    Matching {
        tenant: best.map(|(_, name, tenant)| (name, tenant)),
        notes,
    }
}

/// Kinds of keys, the strongest in the highest bit.
fn weight(one: &Match) -> u8 {
    let bits = [
        one.group.is_some(),
        one.user.is_some(),
        one.cgroup.is_some(),
        one.slurm_job.is_some(),
        !one.container.is_empty(),
    ];
    bits.iter()
        .enumerate()
        .map(|(bit, set)| u8::from(*set) << bit)
        .sum()
}

/// Whether all keys of `one` hold.
fn holds(one: &Match, peer: &Peer, tenant: &str, notes: &mut Vec<String>) -> bool {
    let user = |user: &String| *user == peer.user || user.parse() == Ok(peer.uid);
    let group = |group: &String| {
        let listed = peer.in_groups.contains(group);
        listed || group.parse().is_ok_and(|number| peer.groups.contains(&number))
    };
    let job = |glob: &String| peer.job.as_ref().is_some_and(|job| is(glob, &job.id.to_string()));
    one.user.as_ref().is_none_or(user)
        && one.group.as_ref().is_none_or(group)
        && one.slurm_job.as_ref().is_none_or(job)
        && one.cgroup.as_ref().is_none_or(|glob| in_cgroup(glob, peer))
        && (one.container.is_empty() || in_container(one, peer, tenant, notes))
}

/// Whether the process is in a group that `glob` names, or below one. `*` stays within one component of a path.
fn in_cgroup(glob: &str, peer: &Peer) -> bool {
    let (Ok(pattern), Some(path)) = (Pattern::new(glob), &peer.cgroup) else {
        return false;
    };
    let options = MatchOptions {
        require_literal_separator: true,
        ..MatchOptions::default()
    };
    let ends = path
        .match_indices('/')
        .skip(1)
        .map(|(end, _)| end)
        .chain([path.len()]);
    ends.into_iter()
        .any(|end| pattern.matches_with(&path[..end], options))
}

fn in_container(one: &Match, peer: &Peer, tenant: &str, notes: &mut Vec<String>) -> bool {
    let Some(container) = &peer.container else {
        return false;
    };
    let facts = &container.facts;
    one.container.iter().all(|(key, glob)| {
        let held = facts.values(key).iter().any(|value| is(glob, value));
        if let (false, true, Some(why)) = (held, facts.values(key).is_empty(), &facts.unread) {
            notes.push(format!(
                "tenant {tenant} matches containers by {key}, which is not known of container {}: {why}; the match does not hold",
                container.name
            ));
        }
        held
    })
}

fn is(glob: &str, text: &str) -> bool {
    Pattern::new(glob).is_ok_and(|pattern| pattern.matches(text))
}
