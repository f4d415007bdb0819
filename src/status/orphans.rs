//! One sentence for each process for which nobody alive answers: who, how much, since when, why.

use std::time::SystemTime;

use super::view::{UNKNOWN, age, bytes};
use crate::protocol::node::{Client, Node, Orphan, Unattached};

/// Those of `node`, seen at `now`.
pub fn sentences(node: &Node, now: SystemTime) -> Vec<String> {
    let clients = node.tenants.iter().flat_map(|tenant| &tenant.clients);
    let others = node.unattached.iter();
    let of_client = |client: &Client| {
        let who = format!("pid {} ({}, {})", client.pid, client.user, client.command);
        client
            .orphan
            .as_ref()
            .map(|orphan| sentence(&who, Some(client.used_bytes), &client.started_at, orphan, now))
    };
    let of_other = |other: &Unattached| {
        let known = |text: &Option<String>| text.clone().unwrap_or(UNKNOWN.into());
        let who = format!(
            "pid {} ({}, {})",
            other.pid,
            known(&other.user),
            known(&other.command)
        );
        other
            .orphan
            .as_ref()
            .map(|orphan| sentence(&who, other.used_bytes, &other.since, orphan, now))
    };
    clients
        .filter_map(of_client)
        .chain(others.filter_map(of_other))
        .collect()
}

fn sentence(who: &str, used: Option<u64>, since: &str, orphan: &Orphan, now: SystemTime) -> String {
    let then = match &orphan.spared {
        Some(spared) => format!("left alone: {spared}"),
        None => "`stint reap` ends it".into(),
    };
    let (used, age) = (bytes(used), age(since, now).unwrap_or(UNKNOWN.into()));
    format!(
        "orphan: {who} holds {used}, known for {age}: {}; {then}",
        orphan.why
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::view::tests::{node, now};

    #[test]
    fn an_orphan_is_named_with_its_user_its_age_and_its_bytes() {
        let mut node = node();
        assert!(sentences(&node, now()).is_empty());
        let orphan = |spared: Option<&str>| Orphan {
            why: "its session's leader has ended".into(),
            spared: spared.map(Into::into),
            start_time: 1,
        };
        node.tenants[0].clients[0].orphan = Some(orphan(None));
        node.unattached[0].orphan = Some(orphan(Some("it ignores SIGHUP")));
        assert_eq!(
            sentences(&node, now()),
            [
                "orphan: pid 4711 (alice, python3) holds 1 GiB, known for 2 h: its session's leader has ended; `stint reap` ends it",
                "orphan: pid 99 (-, train) holds -, known for 2 h: its session's leader has ended; left alone: it ignores SIGHUP",
            ]
        );
    }
}
