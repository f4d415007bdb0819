//! A whole daemon on a fixed list of devices, with clients that are processes of their own (`src/daemon/tests/client.rs`).

mod callers;
mod chronicle;
mod client;
mod descriptors;
mod drain;
mod fuzzed;
mod launches;
mod losses;
mod names;
mod reload;
mod restarts;
mod set;
mod settings;
mod slots;
mod steps;
mod why;

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::*;
use crate::config::Source as QuotaFile;
use crate::device::Device;
use crate::protocol::Connection;
use crate::protocol::node::Node;
use crate::skip::skip;
use client::Process;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn options(run_dir: &Path, quota: &str) -> Options {
    let device = |index: u32| Device {
        index,
        uuid: format!("GPU-00000000-0000-0000-0000-{index:012}"),
        name: "test".into(),
        total_bytes: GIB,
        pci_bus_id: None,
        numa_node: None,
        sm_count: None,
    };
    let config = Config::parse(&[QuotaFile {
        path: "stint.toml".into(),
        text: quota.into(),
    }])
    .unwrap();
    let inventory = Inventory {
        devices: vec![device(0), device(1)],
        ..Inventory::default()
    };
    Options {
        keeping: Keeping::Found,
        ..Options::new(run_dir, Driver::Sim, config, Source::Fixed(inventory))
    }
}

/// A keeper in a thread of this process; it ends when its last daemon ends for good, or nobody needs it.
fn keeper(run_dir: &Path) {
    let place = run_dir.to_path_buf();
    std::thread::spawn(move || crate::keeper::serve(&place, None));
    until("the keeper listens", || crate::keeper::answers(run_dir));
}

struct TestNode {
    dir: tempfile::TempDir,
    daemon: Option<Daemon>,
}

impl TestNode {
    fn start(quota: &str) -> TestNode {
        TestNode::with(quota, |_| {})
    }

    fn with(quota: &str, change: impl FnOnce(&mut Options)) -> TestNode {
        let dir = tempfile::tempdir().unwrap();
        let mut options = options(dir.path(), quota);
        change(&mut options);
        keeper(dir.path());
        let daemon = Some(Daemon::start(options).unwrap());
        TestNode { dir, daemon }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn client(&self) -> Process {
        Process::start(self.path())
    }

    fn status(&self) -> Node {
        Connection::open(self.path()).unwrap().status().unwrap()
    }

    /// Bytes account `account` uses on device 0.
    fn used(&self, account: &str) -> u64 {
        let node = self.status();
        let tenant = node.tenants.iter().find(|tenant| tenant.account == account);
        tenant.map_or(0, |tenant| tenant.devices[0].memory.used_bytes)
    }

    /// Caps of account `account`, on each device.
    fn caps(&self, account: &str) -> Vec<u64> {
        let node = self.status();
        let tenant = node.tenants.iter().find(|tenant| tenant.account == account);
        let devices = &tenant.unwrap().devices;
        devices.iter().map(|device| device.memory.cap_bytes).collect()
    }

    fn events(&self) -> Vec<crate::events::Event> {
        let events = Connection::open(self.path()).unwrap().events(false).unwrap();
        events.map(Result::unwrap).collect()
    }

    fn restart(&mut self, quota: &str) {
        self.daemon.take().unwrap().stop().unwrap();
        self.daemon = Some(Daemon::start(options(self.path(), quota)).unwrap());
    }
}

/// Lets other users reach the node.
fn open_to_all(node: &TestNode) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(node.path(), PermissionsExt::from_mode(0o755)).unwrap();
}

/// Waits for a condition; the watchdog only tells a hang from a slow machine.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let watchdog = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < watchdog, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

const CAP: &str = "[node]\nreserve = \"off\"\n[defaults]\nper = \"tenant\"\nmemory = { guaranteed = \"1MiB\", burst = \"256MiB\" }\n";

#[test]
fn clients_of_an_account_share_its_cap_on_each_device() {
    let node = TestNode::start(CAP);
    let (mut a, mut b) = (node.client(), node.client());
    assert_eq!(a.tell("attach 1"), "Admitted 2 devices cap 268435456");
    assert_eq!(b.tell("attach 1"), "Admitted 2 devices cap 268435456");
    assert_eq!(a.tell("reserve 200000000"), "ok");
    assert_eq!(b.tell("reserve 200000000"), "refused");
    assert_eq!(b.tell("reserve 60000000"), "ok");
    let status = node.status();
    assert_eq!(status.schema, "stint.node/v1");
    assert_eq!(status.tenants.len(), 1);
    let tenant = &status.tenants[0];
    assert_eq!(
        (tenant.name.as_str(), tenant.account.as_str()),
        ("default", "default")
    );
    let charges = [200_000_000u64, 60_000_000].map(|bytes| bytes.next_multiple_of(512));
    assert_eq!(tenant.devices[0].memory.used_bytes, charges.iter().sum::<u64>());
    assert_eq!(tenant.devices[1].memory.used_bytes, 0);
    let mut shown: Vec<(u32, u64)> = tenant
        .clients
        .iter()
        .map(|client| (client.pid, client.used_bytes))
        .collect();
    let mut expected = vec![(a.pid(), charges[0]), (b.pid(), charges[1])];
    shown.sort_unstable();
    expected.sort_unstable();
    assert_eq!(shown, expected);
}

#[test]
fn what_the_dead_held_is_back_before_the_next_is_admitted() {
    let node = TestNode::start(CAP);
    for _ in 0..20 {
        let mut client = node.client();
        client.tell("attach 1");
        // The whole cap: the next one gets it only if nothing of this is left.
        assert_eq!(client.tell("reserve 268435456"), "ok");
        client.kill();
    }
    let kinds: Vec<_> = node.events().into_iter().map(|event| event.kind).collect();
    use crate::events::Kind::{Admitted, Left, Reclaimed};
    for life in kinds[..kinds.len() - kinds.len() % 3].chunks(3) {
        assert_eq!(life, [Admitted, Left, Reclaimed]);
    }
    until("the last one is reclaimed without anybody asking", || {
        node.used("default") == 0
    });
    assert!(
        std::fs::metadata(node.path().join("state")).unwrap().len() < 64 << 10,
        "the record does not grow with them"
    );
}

#[test]
fn silent_and_hostile_peers_stall_nobody() {
    let node = TestNode::start(CAP);
    let mut silent = Vec::new();
    for n in 0..200 {
        let socket = client::connect(node.path());
        if n % 2 == 0 {
            let nonsense = vec![n as u8; 200];
            let _ = rustix::net::send(&socket, &nonsense, rustix::net::SendFlags::NOSIGNAL);
        }
        silent.push(socket);
    }
    let _admin = UnixStream::connect(node.path().join("stint.sock")).unwrap();
    let mut client = node.client();
    assert!(client.tell("attach 1").starts_with("Admitted"));
    // They connected before the client did, so they have been dealt with.
    let left = silent.iter().filter(|socket| client::is_open(socket)).count();
    assert!((1..=64).contains(&left), "{left} silent connections of one user");
}

#[test]
fn silence_is_counted_to_who_is_billed_for_it() {
    if !rustix::process::geteuid().is_root() {
        return skip(
            "silence under another number",
            "only root can become another user",
        );
    }
    let node = TestNode::start(CAP);
    open_to_all(&node);
    let mut one = node.client();
    for number in [65534, 65533, 65532] {
        assert_eq!(one.tell(&format!("hush {number}")), "ok");
    }
    let mut client = node.client();
    assert!(
        client.tell("attach 1").starts_with("Admitted"),
        "it came after them"
    );
    assert_eq!(one.tell("hushed"), "64", "not for each number it has had");
}

#[test]
fn a_kernel_without_peer_descriptors_is_helped_by_a_challenge() {
    let node = TestNode::with(CAP, |options| options.peer_identity = PeerIdentity::Challenge);
    let mut client = node.client();
    assert!(client.tell("attach 1").starts_with("Admitted"));
    assert_eq!(client.tell("reserve 268435456"), "ok");
    client.kill();
    let mut client = node.client();
    client.tell("attach 1");
    assert_eq!(client.tell("reserve 268435456"), "ok");
}

#[test]
fn an_observer_sees_everything_and_is_no_client() {
    let node = TestNode::start(CAP);
    let mut observer = node.client();
    assert_eq!(observer.tell("observe"), "Admitted 2 devices cap 268435456");
    assert!(node.status().tenants[0].clients.is_empty());
    assert!(node.events().is_empty());
}

#[test]
fn a_daemon_that_ends_leaves_its_policy_and_no_sockets() {
    let mut node = TestNode::start("[node]\nabsent = \"run\"\n");
    let attach = node.path().join("attach");
    assert!(attach.join("attach.sock").exists());
    node.daemon.take().unwrap().stop().unwrap();
    assert!(!attach.join("attach.sock").exists() && !node.path().join("stint.sock").exists());
    assert_eq!(
        std::fs::read_to_string(attach.join("policy")).unwrap(),
        "absent = \"run\"\n"
    );
}

#[test]
fn no_more_is_guaranteed_than_the_devices_have() {
    let quota = "[node]\nreserve = \"off\"\n[defaults]\nmemory = \"60%\"\n[tenants.a]\n[tenants.b]\n";
    let node = TestNode::start(quota);
    let (mut first, mut second) = (node.client(), node.client());
    assert!(first.tell(r#"launch {"tenant":"a"}"#).starts_with("a a/root"));
    let refused = second.tell(r#"launch {"tenant":"b"}"#);
    assert!(
        refused.starts_with("1 account b/root would be guaranteed 644245094 bytes of device 0"),
        "{refused}"
    );
    first.kill();
    assert!(second.tell(r#"launch {"tenant":"b"}"#).starts_with("b b/root"));
    let overcommitted = TestNode::start(&quota.replace("[defaults]", "overcommit = \"allow\"\n[defaults]"));
    for tenant in ["a", "b"] {
        let mut head = overcommitted.client();
        assert!(
            head.tell(&format!(r#"launch {{"tenant":"{tenant}"}}"#))
                .starts_with(tenant)
        );
    }
}

#[test]
fn refusals_reach_the_log_and_those_who_follow_it() {
    let node = TestNode::start(CAP);
    let mut client = node.client();
    client.tell("attach 1");
    let mut follower = Connection::open(node.path()).unwrap().events(true).unwrap();
    let admitted = follower.next().unwrap().unwrap();
    assert_eq!((admitted.kind, admitted.seq), (crate::events::Kind::Admitted, 1));
    client.tell("post 7");
    let refused = follower.next().unwrap().unwrap();
    assert_eq!((refused.kind, refused.seq), (crate::events::Kind::Refused, 2));
    assert_eq!(refused.detail["asked_bytes"], 7);
    assert_eq!(refused.pid, Some(client.pid()));
    let status = node.status();
    let last = status.tenants[0].last_refusal.as_ref().unwrap();
    assert_eq!(
        (last.asked_bytes, last.pid, last.reason.as_str()),
        (7, client.pid(), "cap")
    );
    assert_eq!(status.tenants[0].devices[0].memory.refusals_total, 1);
}

#[test]
fn an_observing_node_refuses_nothing() {
    let node =
        TestNode::start(&format!("{CAP}[tenants.x]\n").replace("[node]", "[node]\nmode = \"observe\""));
    let mut client = node.client();
    assert_eq!(client.tell("attach 1"), "Admitted 2 devices cap 268435456");
    assert_eq!(client.tell("reserve 500000000"), "ok");
    let status = node.status();
    assert!(!status.tenants[0].enforced);
}

#[test]
fn a_node_that_refuses_the_unknown_says_so() {
    let node = TestNode::start("[node]\nunknown = \"refuse\"\n");
    let mut client = node.client();
    assert_eq!(client.tell("attach 1"), "Denied");
    let event = &node.events()[0];
    assert_eq!(
        (event.kind, event.pid),
        (crate::events::Kind::Refused, Some(client.pid()))
    );
    assert_eq!(event.detail["reason"], "unknown");
}

#[test]
fn a_cap_above_a_device_is_an_error_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let failure = Daemon::start(options(dir.path(), "[defaults]\nmemory = \"2GiB\"\n")).unwrap_err();
    assert_eq!(failure.exit, Exit::BAD_CONFIG);
    assert!(
        failure.message.starts_with("stint.toml:2:10: 2147483648 bytes"),
        "{failure}"
    );
}

#[test]
fn sabotage_takes_out_what_it_says() {
    let node = TestNode::with(CAP, |options| {
        options.sabotage = Sabotage {
            caps: true,
            reclaim: true,
            ..Sabotage::default()
        }
    });
    let mut client = node.client();
    client.tell("attach 1");
    assert_eq!(client.tell("reserve 500000000"), "ok");
    assert_eq!(
        node.status().tenants[0].devices[0].memory.cap_bytes,
        256 * MIB,
        "what was granted"
    );
    client.kill();
    let mut next = node.client();
    next.tell("attach 1");
    assert_eq!(next.tell("reserve 1000000000"), "refused");
}

#[test]
fn a_refusal_binds_nobody_else_unless_that_is_sabotaged() {
    for isolation in [false, true] {
        let node = TestNode::with(CAP, |options| options.sabotage.isolation = isolation);
        let (mut greedy, mut neighbour) = (node.client(), node.client());
        for (client, tenant) in [(&mut greedy, "greedy"), (&mut neighbour, "neighbour")] {
            client.tell(&format!(r#"launch {{"tenant":"{tenant}","memory":"64MiB"}}"#));
            client.tell("attach 1");
        }
        greedy.tell("post 500000000");
        until("the refusal is heard of", || {
            let refused = crate::events::Kind::Refused;
            node.events().iter().any(|event| event.kind == refused)
        });
        let expected = if isolation { "refused" } else { "ok" };
        assert_eq!(neighbour.tell("reserve 1000000"), expected);
    }
}

#[test]
fn a_request_that_makes_no_sense_is_answered() {
    use std::io::{BufRead, BufReader};
    let node = TestNode::start("");
    let mut caller = UnixStream::connect(node.path().join("stint.sock")).unwrap();
    caller
        .write_all(b"hello\n{\"request\":\"fly\"}\n{\"request\":\"status\"}\n")
        .unwrap();
    let mut lines = BufReader::new(caller).lines().map(Result::unwrap);
    for _ in 0..2 {
        assert!(lines.next().unwrap().starts_with(r#"{"error":{"exit":64"#));
    }
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with(r#"{"ok":{"schema":"stint.node/v1""#)
    );
}
