//! The quota file read again while clients work.

mod accounts;

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::exit::Exit;
use crate::protocol::reload::Reloaded;
use crate::skip::skip;

/// A node whose quota file can be written.
struct Filed {
    node: TestNode,
    files: tempfile::TempDir,
}

impl Filed {
    fn start(quota: &str) -> Filed {
        Filed::with(quota, |quota| quota)
    }

    fn with(text: &str, change: impl FnOnce(Quota) -> Quota) -> Filed {
        let files = tempfile::tempdir().unwrap();
        let paths = ["stint.toml", "stint.d"].map(|name| files.path().join(name));
        fs::write(&paths[0], text).unwrap();
        fs::create_dir(&paths[1]).unwrap();
        let quota = change(Quota::read(QuotaFiles::named(paths), false).unwrap());
        let node = TestNode::with("", |options| {
            options.config = quota.config().unwrap();
            options.quota = Some(quota);
        });
        Filed { node, files }
    }

    fn path(&self) -> PathBuf {
        self.files.path().join("stint.toml")
    }

    /// Replaces the file as an editor does.
    fn replace(&self, text: &str) {
        let next = self.files.path().join("stint.toml~");
        fs::write(&next, text).unwrap();
        fs::rename(next, self.path()).unwrap();
    }

    fn reload(&self) -> Result<Reloaded, Failure> {
        Connection::open(self.node.path()).unwrap().reload()
    }

    /// The details of `config` events that have `key`.
    fn told(&self, key: &str) -> Vec<serde_json::Value> {
        let events = self.node.events().into_iter();
        events
            .filter_map(|event| event.detail.get(key).cloned())
            .collect()
    }
}

fn quota(cap: &str) -> String {
    format!(
        "[node]\nreserve = \"off\"\n[defaults]\nper = \"tenant\"\nmemory = {{ guaranteed = \"1MiB\", burst = \"{cap}\" }}\n"
    )
}

#[test]
fn a_reload_changes_caps_of_clients_at_work_and_ends_nobody() {
    let filed = Filed::start(&quota("256MiB"));
    let mut client = filed.node.client();
    client.tell("attach 1");
    assert_eq!(client.tell("reserve 209715200"), "ok");
    filed.replace(&quota("100MiB"));
    let reloaded = filed.reload().unwrap();
    assert_eq!(reloaded.changed, ["defaults.memory.burst: 256MiB → 100MiB"]);
    assert_eq!(reloaded.accounts, ["default"]);
    assert_eq!(client.tell("reserve 512"), "refused");
    assert_eq!(filed.node.used("default"), 200 * MIB);
    filed.replace(&quota("300MiB"));
    filed.reload().unwrap();
    assert_eq!(client.tell(&format!("reserve {}", 100 * MIB)), "ok");
    assert_eq!(client.tell("reserve 512"), "refused");
    assert_eq!(filed.reload().unwrap().changed, Vec::<String>::new());
}

#[test]
fn a_bad_file_changes_nothing_and_every_mistake_is_answered_and_logged() {
    let filed = Filed::start(&quota("256MiB"));
    let mut client = filed.node.client();
    client.tell("attach 1");
    filed.replace("[node]\nmode = \"obsreve\"\n[defaults]\nmemory = 6\n");
    let failure = filed.reload().unwrap_err();
    assert_eq!(failure.exit, Exit::BAD_CONFIG);
    for part in [
        "the rules stay as they were",
        "stint.toml:2:8: `obsreve` is not allowed here; did you mean `observe`?",
        "stint.toml:4:10: `6` has no unit",
    ] {
        assert!(failure.message.contains(part), "{failure}");
    }
    let told = filed.told("errors");
    assert!(
        told.iter().all(|errors| errors.as_array().unwrap().len() == 2) && !told.is_empty(),
        "{told:?}"
    );
    assert_eq!(filed.node.caps("default"), [256 * MIB; 2]);
    for wrong in [
        "[defaults]\nmemory = \"2GiB\"\n",
        "[tenants.a]\nmemory = \"60%\"\n[tenants.b]\nmemory = \"60%\"\n",
    ] {
        filed.replace(wrong);
        assert_eq!(filed.reload().unwrap_err().exit, Exit::BAD_CONFIG, "{wrong}");
    }
    fs::remove_file(filed.path()).unwrap();
    assert!(
        filed
            .reload()
            .unwrap_err()
            .message
            .contains("stint.toml: cannot be read")
    );
    assert_eq!(filed.node.caps("default"), [256 * MIB; 2]);
    filed.replace(&quota("256MiB"));
    assert_eq!(filed.reload().unwrap().changed, Vec::<String>::new());
}

#[test]
fn a_changed_file_is_noticed_however_it_was_written() {
    let filed = Filed::start(&quota("256MiB"));
    let mut client = filed.node.client();
    client.tell("attach 1");
    let becomes = |cap: u64| {
        until("the change is in force", || {
            filed.node.caps("default")[0] == cap * MIB
        })
    };
    filed.replace(&quota("200MiB"));
    becomes(200);
    fs::write(filed.path(), quota("150MiB")).unwrap();
    becomes(150);
    let drop_in = filed.files.path().join("stint.d/10-more.toml");
    fs::write(&drop_in, "[defaults]\nmemory = \"120MiB\"\n").unwrap();
    becomes(120);
    fs::remove_file(&drop_in).unwrap();
    becomes(150);
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("quota");
    fs::write(&target, quota("140MiB")).unwrap();
    fs::remove_file(filed.path()).unwrap();
    std::os::unix::fs::symlink(&target, filed.path()).unwrap();
    becomes(140);
    fs::write(&target, quota("130MiB")).unwrap();
    becomes(130);
    // A mistake is told once, not with every look.
    fs::write(&target, "[nod]\n").unwrap();
    until("the mistake is told", || !filed.told("errors").is_empty());
    fs::write(filed.files.path().join("stint.d/notes.txt"), "x").unwrap();
    fs::write(&target, quota("110MiB")).unwrap();
    becomes(110);
    let errors = filed.told("errors");
    let of_the_table = errors
        .iter()
        .filter(|errors| errors.to_string().contains("there is no table `nod`"));
    assert_eq!(of_the_table.count(), 1, "{errors:?}");
}

#[test]
fn mode_reserve_and_the_policy_of_absent_daemons_change_live() {
    let filed = Filed::start(&quota("256MiB"));
    let mut client = filed.node.client();
    client.tell("attach 1");
    assert_eq!(client.tell(&format!("reserve {}", 256 * MIB)), "ok");
    assert_eq!(client.tell("reserve 512"), "refused");
    let policy = || fs::read_to_string(filed.node.path().join("attach/policy")).unwrap();
    assert_eq!(policy().trim(), "absent = \"refuse\"");
    let observing = quota("256MiB").replace("[node]", "[node]\nmode = \"observe\"\nabsent = \"run\"");
    filed.replace(&observing);
    filed.reload().unwrap();
    assert_eq!(
        client.tell(&format!("reserve {}", 64 * MIB)),
        "ok",
        "observed, not refused"
    );
    assert_eq!(filed.node.status().mode, crate::config::Mode::Observe);
    assert_eq!(policy().trim(), "absent = \"run\"");
    filed.replace(&quota("all").replace("\"off\"", "\"50%\""));
    filed.reload().unwrap();
    assert_eq!(
        filed.node.caps("default"),
        [GIB / 2; 2],
        "what is kept back is nobody's"
    );
    assert_eq!(filed.node.status().devices[0].memory.reserved_bytes, GIB / 2);
    assert_eq!(client.tell(&format!("reserve {}", 192 * MIB)), "ok");
    assert_eq!(client.tell("reserve 512"), "refused", "enforced again");
}

#[test]
fn a_daemon_told_to_observe_goes_on_observing() {
    let filed = Filed::with(&quota("256MiB"), |quota| Quota {
        observe: true,
        ..quota
    });
    filed.replace(&quota("100MiB"));
    filed.reload().unwrap();
    assert_eq!(filed.node.status().mode, crate::config::Mode::Observe);
}

#[test]
fn a_stanza_ends_by_itself() {
    let until_text = |after: Duration| {
        let end = jiff::Timestamp::try_from(std::time::SystemTime::now() + after).unwrap();
        format!(
            "{}[tenants.lab]\nmemory = \"200MiB\"\nuntil = \"{end}\"\n",
            quota("100MiB")
        )
    };
    let filed = Filed::start(&until_text(Duration::from_secs(3600)));
    let mut client = filed.node.client();
    client.tell(r#"launch {"tenant":"lab"}"#);
    client.tell("attach 1");
    assert_eq!(filed.node.caps("lab"), [200 * MIB; 2]);
    filed.replace(&until_text(Duration::from_secs(2)));
    filed.reload().unwrap();
    until("the stanza has ended", || {
        filed.node.caps("lab") == [100 * MIB; 2]
    });
    let told = filed.told("message");
    assert!(
        told.contains(&"[tenants.lab] is not in force any more".into()),
        "{told:?}"
    );
}

#[test]
fn a_tenant_gets_nothing_on_devices_it_may_not_use() {
    let lab = |gpus: &str| format!("{}[tenants.lab]\nmemory = \"200MiB\"\n{gpus}\n", quota("100MiB"));
    let filed = Filed::start(&lab("gpus = [\"1\"]"));
    let mut client = filed.node.client();
    client.tell(r#"launch {"tenant":"lab"}"#);
    assert_eq!(client.tell("attach 1"), "Admitted 2 devices cap 0");
    assert_eq!(filed.node.caps("lab"), [0, 200 * MIB]);
    assert_eq!(client.tell("reserve 512"), "refused");
    filed.replace(&lab("gpus = [\"GPU-00000000-0000-0000-0000-000000000000\"]"));
    filed.reload().unwrap();
    assert_eq!(filed.node.caps("lab"), [200 * MIB, 0]);
    assert_eq!(client.tell("reserve 512"), "ok");
}

#[test]
fn who_may_not_change_values_may_not_reload_and_a_node_without_a_file_says_so() {
    if rustix::process::geteuid().is_root() {
        use std::os::unix::fs::PermissionsExt;
        let filed = Filed::start(&quota("256MiB"));
        fs::set_permissions(filed.node.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let mut other = filed.node.client();
        assert_eq!(other.tell("reload"), "ok");
        other.tell("become 65534");
        let refused = other.tell("reload");
        assert!(
            refused.starts_with("77 only root, the daemon's user and group stint may"),
            "{refused}"
        );
    } else {
        skip("reload by others", "only root can become another user");
    }
    let node = TestNode::start(CAP);
    let failure = Connection::open(node.path()).unwrap().reload().unwrap_err();
    assert!(
        failure.exit == Exit::FAILED && failure.message.contains("has no quota file"),
        "{failure}"
    );
}
