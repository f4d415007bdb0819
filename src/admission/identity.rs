//! Which tenant and account a process belongs to: a decision on what the kernel says of it, never on what it says itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use super::container::Facts;
use super::launches::Launches;
use super::matching::tenant_of;
use super::process::Identity;
use crate::config::units::{Memory, Ratio};
use crate::config::{Config, DEFAULT_TENANT, MemoryRule, Per, Rules, Unknown, tenant_name};
use crate::exit::{Exit, Failure};
use crate::protocol::Launch;

/// What the kernel says of a process that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub identity: Identity,
    /// Whom it is billed to: its real user; in a user namespace the one who made that.
    pub uid: u32,
    /// Name of the user, or its number where it has none.
    pub user: String,
    pub groups: Vec<u32>,
    /// Those groups the quota file names that it is in, as written there.
    pub in_groups: Vec<String>,
    /// Itself, its parent, and so on.
    pub chain: Vec<Identity>,
    /// Path of the control group that names it.
    pub cgroup: Option<String>,
    pub container: Option<InContainer>,
    pub job: Option<InJob>,
}

/// The container a process is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InContainer {
    /// Short enough for an account's name: twelve digits of the id, or the name where that is the id.
    pub name: String,
    pub facts: Arc<Facts>,
    /// Of its control group.
    pub directory: Option<PathBuf>,
}

/// The batch job a process is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InJob {
    pub id: u64,
    /// Of its control group.
    pub directory: Option<PathBuf>,
}

/// Where a process belongs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Place {
    pub tenant: String,
    pub account: String,
    pub memory: MemoryRule,
    /// A launch asked for that memory: what the quota file says later does not concern it.
    pub asked: bool,
    /// The account whose cap this one's was taken from: what a user without authority asked for is part of what it has.
    pub carved_from: Option<String>,
    /// Made for a launch: gone with its last client.
    pub passing: bool,
    /// The account of a container or job: gone with this directory of its control group, which nobody has who has clients.
    pub lives_in: Option<PathBuf>,
}

/// Where a process belongs by the quota file and the launches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Belongs {
    To(Place),
    /// It matches nobody, and `unknown = "report"`: it runs without a cap.
    Unmanaged,
    /// It matches nobody, and the node turns such away.
    Nowhere,
}

/// That, and what an administrator should hear of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub belongs: Belongs,
    pub notes: Vec<String>,
}

impl Verdict {
    /// The place, where there is one.
    pub fn place(self) -> Option<Place> {
        match self.belongs {
            Belongs::To(place) => Some(place),
            Belongs::Unmanaged | Belongs::Nowhere => None,
        }
    }
}

/// Who may name any tenant and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authority {
    /// The daemon's own user.
    pub daemon: u32,
    /// Group `stint`, where the host has one.
    pub group: Option<u32>,
}

impl Authority {
    /// Whether `peer` may name any tenant and value.
    pub fn over(self, peer: &Peer) -> bool {
        peer.uid == 0
            || peer.uid == self.daemon
            || self.group.is_some_and(|group| peer.groups.contains(&group))
    }
}

/// Launches inside launches, of which each has a part of what the one around it has.
const DEEPEST: usize = 16;

/// Where `peer` belongs at `now`.
pub fn place_of(config: &Config, launches: &Launches, peer: &Peer, now: SystemTime) -> Verdict {
    if let Some(place) = launches.of(peer) {
        return Verdict {
            belongs: Belongs::To(place.clone()),
            notes: Vec::new(),
        };
    }
    let matching = tenant_of(config, peer, now);
    let belongs = match (matching.tenant, config.node.unknown) {
        (Some((name, tenant)), _) => Belongs::To(standing(name, &tenant.rules, peer)),
        (None, Unknown::Default) => Belongs::To(standing(DEFAULT_TENANT, &config.defaults, peer)),
        (None, Unknown::Report) => Belongs::Unmanaged,
        (None, Unknown::Refuse) => Belongs::Nowhere,
    };
    Verdict {
        belongs,
        notes: matching.notes,
    }
}

/// A place by the quota file alone. Who is in no job or container has its user's account there.
fn standing(tenant: &str, rules: &Rules, peer: &Peer) -> Place {
    // A colon is in no user's name: no user can have the account of a job.
    let (whose, lives_in) = match (rules.per, &peer.job, &peer.container) {
        (Per::Tenant, ..) => (None, None),
        (Per::Job, Some(job), _) => (Some(format!("job:{}", job.id)), job.directory.clone()),
        (Per::Container, _, Some(container)) => (
            Some(format!("container:{}", container.name)),
            container.directory.clone(),
        ),
        (Per::User | Per::Job | Per::Container, ..) => (Some(peer.user.clone()), None),
    };
    let of_a_group = matches!(&whose, Some(whose) if whose.contains(':'));
    Place {
        account: whose.map_or_else(|| tenant.to_string(), |whose| format!("{tenant}/{whose}")),
        tenant: tenant.into(),
        memory: rules.memory,
        asked: false,
        carved_from: None,
        // Where the group cannot be seen from here, its end cannot either.
        passing: of_a_group && lives_in.is_none(),
        lives_in,
    }
}

/// Where the clients of a launch belong. Exit 77: the peer may not name that tenant. Whether what it asks of its own
/// account is there is for who knows the cap in force (`daemon/accounts.rs`).
pub fn place_of_launch(
    config: &Config,
    launches: &Launches,
    authority: Authority,
    peer: &Peer,
    asked: &Launch,
    now: SystemTime,
) -> Result<Place, Failure> {
    let belongs = place_of(config, launches, peer, now).belongs;
    // Who would have no cap is free to take any.
    let unmanaged = belongs == Belongs::Unmanaged;
    let own = match belongs {
        Belongs::To(place) => Some(place),
        Belongs::Unmanaged => Some(standing(DEFAULT_TENANT, &config.defaults, peer)),
        Belongs::Nowhere => None,
    };
    let memory = match &asked.memory {
        Some(text) => Some(text.parse::<Memory>().map_err(Failure::usage)?),
        None => None,
    };
    if authority.over(peer) {
        return granted(config, own, peer, asked.tenant.as_deref(), memory, now);
    }
    let own = own.ok_or_else(|| {
        Failure::not_permitted(format!(
            "user {} belongs to no tenant of this node: ask its administrator",
            peer.user
        ))
    })?;
    if let Some(tenant) = &asked.tenant
        && *tenant != own.tenant
    {
        return Err(Failure::not_permitted(format!(
            "tenant {tenant} is not yours ({}): only root, the daemon's user and group stint may name another",
            own.tenant
        )));
    }
    match memory {
        None => Ok(own),
        Some(asked) => Ok(Place {
            account: part_of(&own.account, peer)?,
            memory: MemoryRule::one(asked),
            asked: true,
            carved_from: (!unmanaged).then(|| own.account.clone()),
            passing: true,
            lives_in: None,
            ..own
        }),
    }
}

/// Checks what a launch asks of mechanisms that do not exist yet, and names those keys.
pub fn not_in_force(asked: &Launch) -> Result<Vec<&'static str>, Failure> {
    for part in [&asked.share, &asked.limit].into_iter().flatten() {
        part.parse::<Ratio>().map_err(Failure::usage)?;
    }
    if let Some(word) = &asked.priority
        && !["low", "normal", "high"].contains(&word.as_str())
    {
        return Err(Failure::usage(format!(
            "`{word}` is no priority: write low, normal or high"
        )));
    }
    let keys = [
        ("share", &asked.share),
        ("limit", &asked.limit),
        ("priority", &asked.priority),
    ];
    Ok(keys
        .into_iter()
        .filter(|(_, value)| value.is_some())
        .map(|(key, _)| key)
        .collect())
}

/// A launch by somebody with authority.
fn granted(
    config: &Config,
    own: Option<Place>,
    peer: &Peer,
    tenant: Option<&str>,
    memory: Option<Memory>,
    now: SystemTime,
) -> Result<Place, Failure> {
    let Some(name) = tenant else {
        let own = own.unwrap_or_else(|| standing(DEFAULT_TENANT, &config.defaults, peer));
        return Ok(match memory {
            None => own,
            Some(asked) => Place {
                account: part_of(&own.account, peer)?,
                memory: MemoryRule::one(asked),
                asked: true,
                carved_from: None,
                passing: true,
                lives_in: None,
                ..own
            },
        });
    };
    tenant_name(name).map_err(|message| Failure::new(Exit::USAGE, message))?;
    let mut place = match config.tenant(name, now) {
        Some(tenant) => standing(name, &tenant.rules, peer),
        None if name == DEFAULT_TENANT => standing(name, &config.defaults, peer),
        None => Place {
            passing: true,
            ..standing(
                name,
                &Rules {
                    per: Per::Tenant,
                    ..config.defaults.clone()
                },
                peer,
            )
        },
    };
    if let Some(asked) = memory {
        place.memory = MemoryRule::one(asked);
        place.asked = true;
        place.passing = true;
        place.lives_in = None;
    }
    Ok(place)
}

/// Name of the account of one launch inside another account. An error: it lies in too many already.
fn part_of(account: &str, peer: &Peer) -> Result<String, Failure> {
    if account.matches('#').count() >= DEEPEST {
        return Err(Failure::failed(format!(
            "launches inside launches go {DEEPEST} deep at most: start this one from further out"
        )));
    }
    Ok(format!("{account}#{}", peer.identity.pid))
}

#[cfg(test)]
mod tests;
