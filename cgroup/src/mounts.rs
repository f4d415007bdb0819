//! `/proc/self/mountinfo`: where the hierarchies lie in the file system, and who may make groups where.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::membership::{Cgroup, Hierarchy};
use crate::{ancestor, components};

/// How this host lays out control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Version 2 alone.
    Unified,
    /// Version 1 with controllers, and version 2 beside it.
    Hybrid,
    /// Version 1 alone.
    Legacy,
    /// None is mounted.
    Absent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    /// `None`: version 2; else controllers and names of a version 1 hierarchy.
    legacy: Option<Vec<String>>,
    /// The group seen at `point`.
    root: String,
    point: PathBuf,
}

/// The mounted hierarchies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mounts(Vec<Mount>);

impl Mounts {
    /// Those of the calling process.
    pub fn read() -> io::Result<Mounts> {
        Ok(Mounts::parse(&String::from_utf8_lossy(&fs::read(
            "/proc/self/mountinfo",
        )?)))
    }

    /// Lines of proc_pid_mountinfo(5). Those of other file systems are left out.
    pub fn parse(text: &str) -> Mounts {
        Mounts(text.lines().filter_map(mount).collect())
    }

    pub fn layout(&self) -> Layout {
        let unified = self.0.iter().any(|mount| mount.legacy.is_none());
        let legacy = self.0.iter().any(|mount| mount.legacy.is_some());
        match (unified, legacy) {
            (true, false) => Layout::Unified,
            (true, true) => Layout::Hybrid,
            (false, true) => Layout::Legacy,
            (false, false) => Layout::Absent,
        }
    }

    /// The directory of `group`; `None` where it is not to be seen from here.
    pub fn directory(&self, group: &Cgroup) -> Option<PathBuf> {
        self.0.iter().find_map(|mount| {
            let same = match (&group.hierarchy, &mount.legacy) {
                (Hierarchy::Unified, None) => true,
                (Hierarchy::Legacy(name), Some(names)) => names.contains(name),
                _ => false,
            };
            let below = below(&mount.root, &group.path).filter(|_| same)?;
            // `..` stands for a group outside our cgroup namespace.
            let leads_out = components(below).any(|part| part == "..");
            (!leads_out).then(|| mount.point.join(below.trim_start_matches('/')))
        })
    }

    /// Whether only root can have made what lies in the first `depth` components of `group`'s path: every directory in
    /// which one of them was made is root's, and no other may write there. A user whose part of the tree was delegated can
    /// give a group any name, also that of somebody's container.
    pub fn made_by_root(&self, group: &Cgroup, depth: usize) -> bool {
        (0..depth).all(|above| {
            let parent = Cgroup {
                hierarchy: group.hierarchy.clone(),
                path: ancestor(&group.path, above),
            };
            let directory = self.directory(&parent);
            directory
                .and_then(|directory| fs::symlink_metadata(directory).ok())
                .is_some_and(|found| found.is_dir() && found.uid() == 0 && found.mode() & 0o022 == 0)
        })
    }
}

/// What of `path` lies below the group `root`.
fn below<'a>(root: &str, path: &'a str) -> Option<&'a str> {
    if root == "/" {
        return Some(path);
    }
    let rest = path.strip_prefix(root)?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, point) = (unescaped(before.next()?), unescaped(before.next()?));
    let mut after = after.split(' ');
    let kind = after.next()?;
    let options = after.nth(1)?;
    let legacy = match kind {
        "cgroup2" => None,
        "cgroup" => Some(options.split(',').map(str::to_owned).collect()),
        _ => return None,
    };
    Some(Mount {
        legacy,
        root,
        point: point.into(),
    })
}

/// Space, tab, newline and backslash are written as `\` and three octal digits.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let code = rest
            .get(at + 1..at + 4)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        out.push_str(&rest[..at]);
        match code.filter(u8::is_ascii) {
            Some(code) => {
                out.push(char::from(code));
                rest = &rest[at + 4..];
            }
            None => {
                out.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
";
    const UNIFIED: &str = "29 22 0:25 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    fn group(hierarchy: Option<&str>, path: &str) -> Cgroup {
        Cgroup {
            hierarchy: hierarchy.map_or(Hierarchy::Unified, |name| Hierarchy::Legacy(name.into())),
            path: path.into(),
        }
    }

    #[test]
    fn the_three_layouts_are_told_apart() {
        assert_eq!(Mounts::parse(UNIFIED).layout(), Layout::Unified);
        assert_eq!(Mounts::parse(HYBRID).layout(), Layout::Hybrid);
        let legacy: String = HYBRID.lines().take(3).map(|line| format!("{line}\n")).collect();
        assert_eq!(Mounts::parse(&legacy).layout(), Layout::Legacy);
        assert_eq!(Mounts::parse("").layout(), Layout::Absent);
    }

    #[test]
    fn a_group_is_found_in_its_own_hierarchy() {
        let mounts = Mounts::parse(HYBRID);
        let directory = |hierarchy, path| {
            mounts
                .directory(&group(hierarchy, path))
                .map(|path| path.display().to_string())
        };
        assert_eq!(
            directory(None, "/a/b").as_deref(),
            Some("/sys/fs/cgroup/unified/a/b")
        );
        assert_eq!(
            directory(Some("cpuacct"), "/a").as_deref(),
            Some("/sys/fs/cgroup/cpu,cpuacct/a")
        );
        assert_eq!(
            directory(Some("name=systemd"), "/").as_deref(),
            Some("/sys/fs/cgroup/systemd/")
        );
        assert_eq!(directory(Some("memory"), "/a"), None, "not mounted");
        assert_eq!(directory(None, "/../x"), None, "outside our cgroup namespace");
    }

    #[test]
    fn a_mount_of_a_part_shows_that_part() {
        let mounts = Mounts::parse("1 0 0:1 /docker/abc /sys/fs/cgroup\\040x rw - cgroup2 cgroup2 rw\n");
        let directory = |path| mounts.directory(&group(None, path));
        assert_eq!(directory("/docker/abc/x"), Some("/sys/fs/cgroup x/x".into()));
        assert_eq!(directory("/docker/abcd"), None);
    }

    #[test]
    fn a_group_below_a_directory_of_another_user_proves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("a/b/c");
        fs::create_dir_all(&made).unwrap();
        let mounts = Mounts(vec![Mount {
            legacy: None,
            root: "/".into(),
            point: dir.path().into(),
        }]);
        let deep = group(None, "/a/b/c");
        let root = fs::metadata(dir.path()).unwrap().uid() == 0;
        let open = |path: &str, mode| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            fs::set_permissions(dir.path().join(path), mode).unwrap();
        };
        for part in ["a", "a/b", "a/b/c"] {
            open(part, 0o755);
        }
        assert_eq!(mounts.made_by_root(&deep, 3), root);
        open("a", 0o775);
        assert!(
            !mounts.made_by_root(&deep, 3),
            "a group of users may make groups in /a"
        );
        assert_eq!(mounts.made_by_root(&deep, 1), root, "/a itself was made in /");
        open("a", 0o755);
        if root {
            std::os::unix::fs::chown(dir.path().join("a/b"), Some(1000), None).unwrap();
            assert!(!mounts.made_by_root(&deep, 3));
            assert!(mounts.made_by_root(&deep, 2));
        }
        assert!(
            !mounts.made_by_root(&group(None, "/a/x/y"), 3),
            "what is not there proves nothing"
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_apart(text in "(?s).{0,300}", point in "[ -~]{0,30}") {
            let _ = Mounts::parse(&text).layout();
            let _ = Mounts::parse(&format!("1 0 0:1 / {point} rw - cgroup2 x rw")).directory(&group(None, &text));
        }
    }
}
