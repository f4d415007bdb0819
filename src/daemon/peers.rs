//! Who a process is: everything `admission/identity.rs` decides on, as kernel and host tell it. Never waits: where a name is
//! still being looked up, whoever needs it is served when it is known.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::SystemTime;

use cgroup::{Found, Membership};

use super::core::Core;
use crate::admission::container::Facts;
use crate::admission::identity::{InContainer, InJob, Peer};
use crate::admission::users::{NotKnown, User};
use crate::admission::{namespace, process};
use crate::state::Event;

/// Hexadecimal digits of a container's id that name its account.
const SHORT: usize = 12;
/// Notes kept so that none is told twice; then all are forgotten.
const MOST_NOTES: usize = 1024;

/// Why a process cannot be told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unidentified {
    Ended,
    /// A name is being looked up.
    Asked,
    /// A lookup failed.
    Failed(String),
}

impl From<NotKnown> for Unidentified {
    fn from(why: NotKnown) -> Unidentified {
        match why {
            NotKnown::Asked => Unidentified::Asked,
            NotKnown::Failed(error) => Unidentified::Failed(error),
        }
    }
}

impl Core {
    /// Everything about the process behind `pidfd`, and the program it is.
    pub fn identify(&mut self, pid: u32, pidfd: &OwnedFd) -> Result<(Peer, [u64; 3]), Unidentified> {
        let ended = || Unidentified::Ended;
        let stat = process::stat(pid).ok_or_else(ended)?;
        let (mut uid, groups) = process::credentials(pid).ok_or_else(ended)?;
        let owner = maker(pid);
        uid = owner.unwrap_or(uid);
        let membership = Membership::of(pid, pidfd.as_fd())
            .ok()
            .flatten()
            .unwrap_or_default();
        let found = membership.identity(|group, depth| self.mounts.made_by_root(group, depth));
        let chain = process::chain(stat);
        if process::ended(pidfd.as_fd()) {
            return Err(Unidentified::Ended);
        }
        let user = self.users.user(uid)?.clone();
        let peer = Peer {
            identity: stat.identity,
            uid,
            in_groups: self.groups_named(&user, &groups, owner.is_some())?,
            user: user.name,
            groups,
            chain,
            cgroup: found.group.map(|group| group.path),
            container: found.container.map(|container| self.in_container(container)),
            job: found.job.map(|job| InJob {
                id: job.what.id,
                directory: self.mounts.directory(&job.group),
            }),
        };
        Ok((peer, stat.image))
    }

    /// The groups the quota file names that a process is in. In a user namespace a process can drop groups: there the
    /// user's entry in the host's files counts as well.
    fn groups_named(
        &mut self,
        user: &User,
        groups: &[u32],
        in_namespace: bool,
    ) -> Result<Vec<String>, Unidentified> {
        let matches = self.config.in_force(SystemTime::now());
        let named: Vec<String> = matches
            .flat_map(|(_, tenant)| &tenant.matches)
            .filter_map(|one| one.group.clone())
            .collect();
        let mut found = Vec::new();
        for name in named {
            let Some(group) = self.users.group(&name)? else {
                continue;
            };
            let listed = || user.group == Some(group.number) || group.members.contains(&user.name);
            if groups.contains(&group.number) || (in_namespace && listed()) {
                found.push(name);
            }
        }
        Ok(found)
    }

    fn in_container(&mut self, found: Found<cgroup::Container>) -> InContainer {
        let Found { what, group } = found;
        let asks_more = self.config.in_force(SystemTime::now()).any(|(_, tenant)| {
            let mut keys = tenant.matches.iter().flat_map(|one| one.container.keys());
            keys.any(|key| key != "id")
        });
        let facts = if asks_more {
            self.containers.read(&what, Path::new("/"), 0)
        } else {
            Facts::of(&what).into()
        };
        let is_digits = what.id.len() > SHORT && what.id.bytes().all(|byte| byte.is_ascii_hexdigit());
        InContainer {
            name: if is_digits {
                what.id[..SHORT].into()
            } else {
                what.id
            },
            facts,
            directory: self.mounts.directory(&group),
        }
    }

    /// Tells an administrator what was noticed while a process was placed, each thing once.
    pub fn note(&mut self, notes: Vec<String>) {
        for what in notes {
            if self.noted.len() >= MOST_NOTES {
                self.noted.clear();
            }
            if self.noted.insert(what.clone()) {
                self.apply(Event::Fault { what });
            }
        }
    }
}

/// Who made the user namespace a process is in, where that is below ours. Where we may not look, the process is its own
/// user's; root may look anywhere.
fn maker(pid: u32) -> Option<u32> {
    namespace::owner(pid).ok().flatten().filter(|owner| *owner != 0)
}

/// The user a process is billed to; `None`: it has gone.
pub fn billed_to(pid: u32) -> Option<u32> {
    let (uid, _) = process::credentials(pid)?;
    Some(maker(pid).unwrap_or(uid))
}
