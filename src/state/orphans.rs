//! Processes that hold a device and for which nobody alive answers.

use std::collections::BTreeMap;

use super::NodeState;
use crate::admission::orphan::Orphan;
use crate::admission::process::Identity;
use crate::events::{self, Kind};
use crate::protocol::node;

impl NodeState {
    /// Processes that hold memory of a device, clients and others, as far as they are told apart from later ones of the
    /// same number.
    pub fn holders(&self) -> Vec<Identity> {
        let on_device = |pid: u32| {
            let mut listed = self.looks.iter().flat_map(|look| look.processes.iter().flatten());
            listed.any(|process| process.pid == pid)
        };
        let clients = self
            .clients
            .values()
            .filter(|client| !self.held_by(client).is_empty() || on_device(client.identity.pid));
        let strangers = self.strangers.iter().filter_map(|((pid, _), stranger)| {
            let pid = *pid;
            stranger.start_time.map(|start_time| Identity { pid, start_time })
        });
        let mut found: Vec<Identity> = clients.map(|client| client.identity).chain(strangers).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Takes in who is an orphan now.
    pub(super) fn orphaned(&mut self, found: BTreeMap<Identity, Orphan>) -> Vec<events::Event> {
        let fresh = found
            .iter()
            .filter(|(identity, _)| !self.orphans.contains_key(identity));
        let line = |(identity, orphan): (&Identity, &Orphan)| {
            let event = events::Event::new(Kind::State).pid(identity.pid);
            event
                .detail("what", "nobody answers for it any more")
                .detail("why", orphan.why)
        };
        let lines = fresh.map(line).collect();
        self.orphans = found;
        lines
    }

    /// What the document says of an orphan.
    pub(super) fn orphan(&self, identity: Identity) -> Option<node::Orphan> {
        let orphan = self.orphans.get(&identity)?;
        Some(node::Orphan {
            why: orphan.why.into(),
            spared: orphan.spared.map(Into::into),
            start_time: identity.start_time,
        })
    }
}
