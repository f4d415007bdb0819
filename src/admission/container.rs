//! What a container is known by: id and pod from its control group, name, image and labels from the files in which its
//! runtime keeps them. Only files that root alone can have written count.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cgroup::Container;
use rustix::fs::{Mode, OFlags, open};
use serde::Deserialize;
use serde_json::Value;

/// A longer file is not read: whoever says hello waits for all of them.
const LONGEST: u64 = 2 << 20;
/// Containers of which it is known what was read; then all are forgotten.
const MOST_KNOWN: usize = 1024;

/// Where runtimes keep what they know, below `/`; `ID` stands for the container's.
const FILES: [(&str, Reader); 8] = [
    ("var/lib/docker/containers/ID/config.v2.json", docker),
    (
        "run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json",
        bundle,
    ),
    (
        "run/containerd/io.containerd.runtime.v2.task/default/ID/config.json",
        bundle,
    ),
    (
        "run/containerd/io.containerd.runtime.v2.task/moby/ID/config.json",
        bundle,
    ),
    (
        "run/containers/storage/overlay-containers/ID/userdata/config.json",
        bundle,
    ),
    (
        "var/lib/containers/storage/overlay-containers/ID/userdata/config.json",
        bundle,
    ),
    (
        "var/lib/containers/storage/vfs-containers/ID/userdata/config.json",
        bundle,
    ),
    (
        "var/lib/containers/storage/overlay-containers/containers.json",
        podman,
    ),
];

type Reader = fn(&[u8], &str, &mut Facts) -> serde_json::Result<()>;

/// What tells that a file has changed: device, inode, length, and times of its content and of itself.
type Stamp = [Option<(u64, u64, u64, [i64; 4])>; FILES.len()];

/// What was read of containers, each of which sends many processes: it holds until a file changes.
#[derive(Debug, Default)]
pub struct Known(BTreeMap<String, (Stamp, Arc<Facts>)>);

impl Known {
    /// [`Facts::read`], where that is not known.
    pub fn read(&mut self, container: &Container, root: &Path, owner: u32) -> Arc<Facts> {
        let stamp = FILES.map(|(file, _)| {
            let found = std::fs::symlink_metadata(path(root, file, container)).ok()?;
            let times = [
                found.mtime(),
                found.mtime_nsec(),
                found.ctime(),
                found.ctime_nsec(),
            ];
            Some((found.dev(), found.ino(), found.len(), times))
        });
        if let Some((before, facts)) = self.0.get(&container.id)
            && *before == stamp
            && facts.is_of(container)
        {
            return facts.clone();
        }
        if self.0.len() >= MOST_KNOWN {
            self.0.clear();
        }
        // The stamp is older than what is read: a change in between shows in the next one.
        let facts = Arc::new(Facts::read(container, root, owner));
        self.0.insert(container.id.clone(), (stamp, facts.clone()));
        facts
    }
}

fn path(root: &Path, file: &str, container: &Container) -> PathBuf {
    root.join(file.replace("ID", &container.id))
}

/// What a container is known by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Values by key of `container = { … }`; a label is `KEY=VALUE`.
    known: BTreeMap<&'static str, Vec<String>>,
    /// Why nothing that a runtime tells is known, where it is not.
    pub unread: Option<String>,
}

impl Facts {
    /// What the path of its control group tells.
    pub fn of(container: &Container) -> Facts {
        let mut facts = Facts::default();
        facts.add("id", &container.id);
        if let Some(pod) = &container.pod {
            facts.add("pod", pod);
        }
        if matches!(container.kind, cgroup::Kind::Lxc | cgroup::Kind::Nspawn) {
            facts.add("name", &container.id);
        }
        facts
    }

    /// The same, and what files below `root` (`/`) tell that belong to user `owner` (root).
    pub fn read(container: &Container, root: &Path, owner: u32) -> Facts {
        let mut facts = Facts::of(container);
        let is_digits = container.id.len() >= 12 && container.id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_digits {
            return facts; // LXC and nspawn keep no such files
        }
        let mut refused = None;
        let mut read = false;
        for (file, reader) in FILES {
            let path = path(root, file, container);
            let before = facts.clone();
            let told = text(&path, owner).and_then(|text| match text {
                Some(text) => reader(&text, &container.id, &mut facts).map_err(|error| error.to_string()),
                None => Ok(()),
            });
            match told {
                Ok(()) => read |= facts != before,
                Err(why) => refused = Some(format!("{}: {why}", path.display())),
            }
        }
        if !read {
            let nothing = || format!("no file of its runtime ({}) tells of it", container.kind.as_str());
            facts.unread = Some(refused.unwrap_or_else(nothing));
        }
        facts
    }

    /// Whether its group tells the same as when this was read.
    fn is_of(&self, container: &Container) -> bool {
        let now = Facts::of(container);
        now.known
            .iter()
            .all(|(key, values)| values.iter().all(|value| self.values(key).contains(value)))
    }

    /// The values of a key; empty: not known.
    pub fn values(&self, key: &str) -> &[String] {
        self.known.get(key).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, key: &'static str, value: &str) {
        let values = self.known.entry(key).or_default();
        if !value.is_empty() && !values.iter().any(|known| known == value) {
            values.push(value.into());
        }
    }

    fn add_text(&mut self, key: &'static str, value: &Value) {
        if let Some(text) = value.as_str() {
            self.add(key, text);
        }
    }

    fn add_labels(&mut self, labels: &Value) {
        for (key, value) in labels.as_object().into_iter().flatten() {
            if let Some(value) = value.as_str() {
                self.add("label", &format!("{key}={value}"));
            }
        }
    }
}

/// A file of `owner`'s that nobody else can write. `None`: there is none.
fn text(path: &Path, owner: u32) -> Result<Option<Vec<u8>>, String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let found = file.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() || found.uid() != owner || found.mode() & 0o022 != 0 {
        return Err("others than root can write it".into());
    }
    if found.len() > LONGEST {
        return Err(format!("it has {} bytes, more than {LONGEST}", found.len()));
    }
    let mut bytes = Vec::new();
    let read = file.take(LONGEST).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    Ok(Some(bytes))
}

/// Docker's own file, of which the rest is passed over unread, as in the others.
fn docker(text: &[u8], _: &str, facts: &mut Facts) -> serde_json::Result<()> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "PascalCase", default)]
    struct Docker {
        name: Value,
        config: Config,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "PascalCase", default)]
    struct Config {
        image: Value,
        labels: Value,
    }
    let Docker { name, config } = serde_json::from_slice(text)?;
    if let Some(name) = name.as_str() {
        facts.add("name", name.trim_start_matches('/'));
    }
    facts.add_text("image", &config.image);
    facts.add_labels(&config.labels);
    kubernetes(&config.labels, facts);
    Ok(())
}

/// The `config.json` of an OCI bundle: what runtimes want to find again is in its annotations.
fn bundle(text: &[u8], _: &str, facts: &mut Facts) -> serde_json::Result<()> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Bundle {
        annotations: Value,
    }
    let Bundle { annotations } = serde_json::from_slice(text)?;
    facts.add_labels(&annotations);
    kubernetes(&annotations, facts);
    // CRI-O keeps the labels as JSON in one annotation.
    let labels = annotations["io.kubernetes.cri-o.Labels"].as_str();
    if let Some(labels) = labels.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        facts.add_labels(&labels);
    }
    Ok(())
}

/// What Kubernetes' runtimes call a container's name, pod and namespace.
fn kubernetes(values: &Value, facts: &mut Facts) {
    for (key, name) in [
        ("name", "io.kubernetes.cri.container-name"),
        ("name", "io.kubernetes.container.name"),
        ("name", "nerdctl/name"),
        ("pod", "io.kubernetes.cri.sandbox-name"),
        ("pod", "io.kubernetes.pod.name"),
        ("namespace", "io.kubernetes.cri.sandbox-namespace"),
        ("namespace", "io.kubernetes.pod.namespace"),
        ("image", "io.kubernetes.cri.image-name"),
        ("image", "io.kubernetes.cri-o.ImageName"),
    ] {
        facts.add_text(key, &values[name]);
    }
}

/// The list that podman's storage keeps of all containers. Labels are in a database of podman's and are not read.
fn podman(text: &[u8], id: &str, facts: &mut Facts) -> serde_json::Result<()> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct One {
        id: Value,
        names: Value,
        metadata: Value,
    }
    let all: Vec<One> = serde_json::from_slice(text)?;
    for one in all.iter().filter(|one| one.id == id) {
        for name in one.names.as_array().into_iter().flatten() {
            facts.add_text("name", name);
        }
        let more = one.metadata.as_str();
        if let Some(more) = more.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
            facts.add_text("image", &more["image-name"]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    const ID: &str = "3f1c0a4b5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708";

    fn container() -> Container {
        Container {
            kind: cgroup::Kind::Docker,
            id: ID.into(),
            pod: None,
        }
    }

    fn read(root: &Path) -> Facts {
        Facts::read(&container(), root, rustix::process::geteuid().as_raw())
    }

    fn with(file: &str, text: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(file.replace("ID", ID));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        root
    }

    #[test]
    fn what_runtimes_keep_is_found() {
        let dockers =
            r#"{"Name":"/api","Config":{"Image":"lab/api:3","Labels":{"stint.tenant":"api","n":""}}}"#;
        let facts = read(with(FILES[0].0, dockers).path());
        assert_eq!(facts.values("name"), ["api"]);
        assert_eq!(facts.values("image"), ["lab/api:3"]);
        assert_eq!(facts.values("label"), ["n=", "stint.tenant=api"]);
        assert_eq!(
            (facts.values("id"), &facts.unread),
            (&[ID.to_string()][..], &None)
        );

        let containerds = r#"{"annotations":{"io.kubernetes.cri.container-name":"server","io.kubernetes.cri.sandbox-name":"web-0",
            "io.kubernetes.cri.sandbox-namespace":"shop","io.kubernetes.cri.image-name":"r/x@sha256:1"}}"#;
        let facts = read(with(FILES[1].0, containerds).path());
        let of = |key| facts.values(key).join(" ");
        assert_eq!(
            (of("name"), of("pod"), of("namespace"), of("image")),
            (
                "server".into(),
                "web-0".into(),
                "shop".into(),
                "r/x@sha256:1".into()
            )
        );

        let crios = r#"{"annotations":{"io.kubernetes.container.name":"s","io.kubernetes.cri-o.Labels":"{\"app\":\"x\"}"}}"#;
        let facts = read(with(FILES[4].0, crios).path());
        assert!(facts.values("label").contains(&"app=x".into()), "{facts:?}");

        let podmans = format!(
            r#"[{{"id":"0","names":["no"]}},{{"id":"{ID}","names":["lab"],"metadata":"{{\"image-name\":\"d/python\"}}"}}]"#
        );
        let facts = read(with(FILES[7].0, &podmans).path());
        assert_eq!(
            (facts.values("name").join(" "), facts.values("image").join(" ")),
            ("lab".into(), "d/python".into())
        );
    }

    #[test]
    fn nothing_is_believed_that_others_could_have_written() {
        let root = with(FILES[0].0, r#"{"Name":"/api"}"#);
        let path = root.path().join(FILES[0].0.replace("ID", ID));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let facts = read(root.path());
        assert!(facts.values("name").is_empty());
        assert!(facts.unread.unwrap().contains("others than root can write it"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let stranger = Facts::read(&container(), root.path(), 12_345);
        assert!(stranger.values("name").is_empty() && stranger.unread.is_some());
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert!(read(root.path()).unread.is_some());
    }

    #[test]
    fn what_cannot_be_read_says_so() {
        let facts = read(tempfile::tempdir().unwrap().path());
        assert_eq!(
            facts.unread.unwrap(),
            "no file of its runtime (docker) tells of it"
        );
        let facts = read(with(FILES[0].0, "{").path());
        assert!(facts.unread.unwrap().contains("config.v2.json"));
    }

    #[test]
    fn a_container_is_read_once_until_one_of_its_files_changes() {
        let root = with(FILES[0].0, r#"{"Name":"/api"}"#);
        let owner = rustix::process::geteuid().as_raw();
        let mut known = Known::default();
        let first = known.read(&container(), root.path(), owner);
        assert_eq!(first.values("name"), ["api"]);
        assert!(
            Arc::ptr_eq(&first, &known.read(&container(), root.path(), owner)),
            "not read again"
        );
        let path = root.path().join(FILES[0].0.replace("ID", ID));
        fs::write(&path, r#"{"Name":"/ap2"}"#).unwrap();
        assert_eq!(
            known.read(&container(), root.path(), owner).values("name"),
            ["ap2"]
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(
            known.read(&container(), root.path(), owner).unread.is_some(),
            "its owner's alone no more"
        );
        let pod = Container {
            pod: Some("web-0".into()),
            ..container()
        };
        assert_eq!(known.read(&pod, root.path(), owner).values("pod"), ["web-0"]);
        // Whoever makes containers cannot make the daemon read for long.
        let long = format!(r#"{{"Name":"/api","x":"{}"}}"#, "y".repeat(LONGEST as usize));
        let facts = read(with(FILES[0].0, &long).path());
        assert!(facts.unread.unwrap().ends_with("more than 2097152"));
    }

    proptest::proptest! {
        #[test]
        fn any_file_is_taken(text in "(?s).{0,200}", key in "[a-zA-Z.]{0,12}", value in "[ -~]{0,12}") {
            for text in [text, format!(r#"{{"annotations":{{"{key}":1}},"Config":[{key:?}],"{key}":{value:?}}}"#), format!("[{value:?}]")] {
                for (_, reader) in FILES {
                    let _ = reader(text.as_bytes(), ID, &mut Facts::default());
                }
            }
        }
    }
}
