//! Which tenant and account a process belongs to: a decision on what the kernel says of it, never on what it says itself.

use std::collections::BTreeMap;

use super::process::Identity;
use crate::config::units::{Bytes, Memory, Ratio};
use crate::config::{Config, DEFAULT_TENANT, Match, MemoryRule, Per, Rules, Unknown, tenant_name};
use crate::exit::{Exit, Failure};
use crate::protocol::Launch;

/// What the kernel says of a process that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub identity: Identity,
    pub uid: u32,
    /// Name of the user, or its number where it has none.
    pub user: String,
    pub groups: Vec<u32>,
    /// Itself, its parent, and so on.
    pub chain: Vec<Identity>,
}

/// Where a process belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// The launches whose head still lives.
#[derive(Debug, Default)]
pub struct Launches(BTreeMap<Identity, Place>);

impl Launches {
    pub fn add(&mut self, head: Identity, place: Place) {
        self.0.insert(head, place);
    }

    pub fn remove(&mut self, head: Identity) -> Option<Place> {
        self.0.remove(&head)
    }

    /// Launches that place their clients in `account`.
    pub fn count(&self, account: &str) -> usize {
        self.0.values().filter(|place| place.account == account).count()
    }

    /// The nearest launch a process descends from.
    fn of(&self, peer: &Peer) -> Option<&Place> {
        peer.chain.iter().find_map(|ancestor| self.0.get(ancestor))
    }
}

/// Where `peer` belongs; `None`: the node turns it away, because it matches no tenant.
pub fn place_of(config: &Config, launches: &Launches, peer: &Peer) -> Option<Place> {
    if let Some(place) = launches.of(peer) {
        return Some(place.clone());
    }
    let matching = config.tenants.iter().find(|(_, tenant)| {
        let is_user = |user: &str| user == peer.user || user.parse() == Ok(peer.uid);
        tenant
            .matches
            .iter()
            .any(|one| *one == only_user(one) && one.user.as_deref().is_some_and(is_user))
    });
    match matching {
        Some((name, tenant)) => Some(standing(name, &tenant.rules, peer)),
        None if config.node.unknown != Unknown::Refuse => {
            Some(standing(DEFAULT_TENANT, &config.defaults, peer))
        }
        None => None,
    }
}

/// The part of a match that is understood today.
fn only_user(one: &Match) -> Match {
    Match {
        user: one.user.clone(),
        ..Match::default()
    }
}

/// A place by the quota file alone.
fn standing(tenant: &str, rules: &Rules, peer: &Peer) -> Place {
    let account = match rules.per {
        Per::Tenant => tenant.to_string(),
        Per::User | Per::Job | Per::Container => format!("{tenant}/{}", peer.user),
    };
    Place {
        tenant: tenant.into(),
        account,
        memory: rules.memory,
        asked: false,
        carved_from: None,
        passing: false,
    }
}

/// Where the clients of a launch belong. Exit 77: the peer may not ask for that.
pub fn place_of_launch(
    config: &Config,
    launches: &Launches,
    authority: Authority,
    peer: &Peer,
    asked: &Launch,
) -> Result<Place, Failure> {
    let own = place_of(config, launches, peer);
    let memory = match &asked.memory {
        Some(text) => Some(text.parse::<Memory>().map_err(Failure::usage)?),
        None => None,
    };
    if authority.over(peer) {
        return granted(config, own, peer, asked.tenant.as_deref(), memory);
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
        Some(asked) if surely_more(asked, own.memory.cap) => Err(Failure::not_permitted(format!(
            "you may only lower what you have: {} was asked, the cap of {} is {}",
            told(asked),
            own.account,
            told(own.memory.cap)
        ))),
        Some(asked) => Ok(Place {
            account: part_of(&own.account, peer),
            memory: MemoryRule::one(asked),
            asked: true,
            carved_from: Some(own.account.clone()),
            passing: true,
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
) -> Result<Place, Failure> {
    let Some(name) = tenant else {
        let own = own.unwrap_or_else(|| standing(DEFAULT_TENANT, &config.defaults, peer));
        return Ok(match memory {
            None => own,
            Some(asked) => Place {
                account: part_of(&own.account, peer),
                memory: MemoryRule::one(asked),
                asked: true,
                carved_from: None,
                passing: true,
                ..own
            },
        });
    };
    tenant_name(name).map_err(|message| Failure::new(Exit::USAGE, message))?;
    let mut place = match config.tenants.get(name) {
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
    }
    Ok(place)
}

/// Name of the account of one launch inside another account.
fn part_of(account: &str, peer: &Peer) -> String {
    format!("{account}#{}", peer.identity.pid)
}

/// Whether `asked` is more than `have` on every device. Where only a device can tell, carving finds out.
fn surely_more(asked: Memory, have: Memory) -> bool {
    match (asked, have) {
        (_, Memory::All) => false,
        (Memory::Bytes(asked), Memory::Bytes(have)) => asked > have,
        (Memory::Part(asked), Memory::Part(have)) => asked > have,
        (Memory::All, _) => true,
        _ => false,
    }
}

fn told(memory: Memory) -> String {
    match memory {
        Memory::Bytes(Bytes(bytes)) => format!("{bytes} bytes"),
        Memory::Part(part) => part.to_string(),
        Memory::All => "all".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    const AUTHORITY: Authority = Authority {
        daemon: 500,
        group: Some(77),
    };

    fn config(text: &str) -> Config {
        Config::parse(&[Source {
            path: "stint.toml".into(),
            text: text.into(),
        }])
        .unwrap()
    }

    fn peer(uid: u32, user: &str) -> Peer {
        let chain: Vec<Identity> = [900, 800, 700].map(|pid| Identity { pid, start_time: 5 }).into();
        Peer {
            identity: chain[0],
            uid,
            user: user.into(),
            groups: vec![uid],
            chain,
        }
    }

    fn ask(tenant: Option<&str>, memory: Option<&str>) -> Launch {
        Launch {
            tenant: tenant.map(Into::into),
            memory: memory.map(Into::into),
            ..Launch::default()
        }
    }

    const FILE: &str = "[defaults]\nmemory=\"6GiB\"\n[tenants.lab]\nper=\"tenant\"\nmatch=[{user=\"alice\"},{user=\"1002\"}]\n\
                        memory=\"8GiB\"\n";

    #[test]
    fn users_are_matched_by_name_or_number_and_others_have_an_account_each() {
        let config = config(FILE);
        let place = |uid, user| place_of(&config, &Launches::default(), &peer(uid, user)).unwrap();
        assert_eq!(place(1001, "alice").account, "lab");
        assert_eq!(place(1002, "bob").account, "lab");
        assert_eq!(place(1003, "carol").account, "default/carol");
        assert_eq!(
            place(1003, "carol").memory,
            MemoryRule::one("6GiB".parse().unwrap())
        );
    }

    #[test]
    fn a_node_that_refuses_the_unknown_takes_only_those_it_names() {
        let config = config(&format!("[node]\nunknown=\"refuse\"\n{FILE}"));
        assert!(place_of(&config, &Launches::default(), &peer(1003, "carol")).is_none());
        assert!(place_of(&config, &Launches::default(), &peer(1001, "alice")).is_some());
    }

    #[test]
    fn a_launch_claims_its_descendants_and_no_later_process_of_the_same_number() {
        let config = config(FILE);
        let mut launches = Launches::default();
        let granted = place_of_launch(
            &config,
            &launches,
            AUTHORITY,
            &peer(0, "root"),
            &ask(Some("x"), None),
        )
        .unwrap();
        assert_eq!((granted.account.as_str(), granted.passing), ("x", true));
        launches.add(
            Identity {
                pid: 700,
                start_time: 5,
            },
            granted.clone(),
        );
        assert_eq!(
            place_of(&config, &launches, &peer(1003, "carol")).unwrap(),
            granted
        );
        launches.remove(Identity {
            pid: 700,
            start_time: 5,
        });
        launches.add(
            Identity {
                pid: 700,
                start_time: 6,
            },
            granted,
        );
        assert_eq!(
            place_of(&config, &launches, &peer(1003, "carol")).unwrap().tenant,
            "default"
        );
    }

    #[test]
    fn only_those_with_authority_name_tenants_and_raise_values() {
        let config = config(FILE);
        let launches = Launches::default();
        let try_it =
            |peer: &Peer, launch: &Launch| place_of_launch(&config, &launches, AUTHORITY, peer, launch);
        let mut trusted = peer(1003, "carol");
        trusted.groups.push(77);
        for peer in [peer(0, "root"), peer(500, "stintd"), trusted] {
            let place = try_it(&peer, &ask(Some("lab"), Some("50GiB"))).unwrap();
            assert_eq!(
                (place.account.as_str(), place.memory.cap),
                ("lab", "50GiB".parse().unwrap())
            );
        }
        let carol = peer(1003, "carol");
        for refused in [
            ask(Some("lab"), None),
            ask(None, Some("7GiB")),
            ask(None, Some("all")),
        ] {
            assert_eq!(
                try_it(&carol, &refused).unwrap_err().exit,
                Exit::NOT_PERMITTED,
                "{refused:?}"
            );
        }
        let lowered = try_it(&carol, &ask(None, Some("2GiB"))).unwrap();
        assert_eq!(lowered.carved_from.as_deref(), Some("default/carol"));
        assert_eq!(lowered.account, "default/carol#900");
        assert_eq!(
            try_it(&carol, &ask(Some("default"), None)).unwrap().account,
            "default/carol"
        );
        assert_eq!(
            try_it(&carol, &ask(None, Some("0"))).unwrap_err().exit,
            Exit::USAGE
        );
    }
}
