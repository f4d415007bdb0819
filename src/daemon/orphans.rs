//! Looks, once a second, whether somebody alive answers for each process that holds a device (`admission/orphan.rs`).

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use cgroup::Membership;

use super::core::Core;
use crate::admission::orphan::{Known, Orphan, orphan};
use crate::admission::process::{self, Identity};
use crate::state::Event;

impl Core {
    pub fn look_for_orphans(&mut self) {
        let holders = self.state.holders();
        let lives =
            |client: &Identity| process::stat(client.pid).is_some_and(|stat| stat.identity == *client);
        self.heads.retain(|client, _| lives(client));
        let found: BTreeMap<_, _> = holders
            .into_iter()
            .filter_map(|holder| Some((holder, self.orphan(holder)?)))
            .collect();
        self.apply(Event::Orphans(found));
    }

    fn orphan(&self, holder: Identity) -> Option<Orphan> {
        let stat = process::stat(holder.pid).filter(|stat| stat.identity == holder)?;
        let launch_over = self
            .heads
            .get(&holder)
            .is_some_and(|head| !self.launches.lives(*head));
        let known = Known {
            launch_over,
            ..Known::default()
        };
        // Most have somebody; only for the others the rest is asked.
        orphan(stat, known)?;
        let pidfd = process::open(holder)?;
        let groups = Membership::of(holder.pid, pidfd.as_fd()).ok().flatten()?;
        let groups = groups.identity(|group, depth| self.mounts.made_by_root(group, depth));
        let known = Known {
            cgroup: groups.group.as_ref().map(|group| group.path.as_str()),
            job: groups.job.as_ref().map(|job| job.what.id),
            ..known
        };
        orphan(stat, known)
    }
}
