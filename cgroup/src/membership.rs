//! `/proc/PID/cgroup`: one path per hierarchy. What the paths mean together is in `identity.rs`.

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

/// Hierarchies by how much they say of a process, best first: the unified one and systemd's hold every process of a host
/// with systemd, `memory` and those after it what container runtimes and batch systems make on a host without.
const ORDER: [&str; 9] = [
    "name=systemd",
    "memory",
    "pids",
    "devices",
    "freezer",
    "cpuset",
    "cpuacct",
    "cpu",
    "blkio",
];

/// One tree of groups.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hierarchy {
    /// Version 2, the line `0::`.
    Unified,
    /// Version 1, by its first controller or its name, for example `memory` or `name=systemd`.
    Legacy(String),
}

/// A group: a path in a hierarchy, beginning with `/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cgroup {
    pub hierarchy: Hierarchy,
    pub path: String,
}

/// All groups of one process, those of the hierarchies that say most first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Membership(Vec<Cgroup>);

impl Membership {
    /// The groups of process `pid`. `None`: the process behind `pidfd` has ended, so that what was read may be about
    /// another one with its number.
    pub fn of(pid: u32, pidfd: BorrowedFd<'_>) -> io::Result<Option<Membership>> {
        // A path is text unless somebody chose other bytes; those match nothing.
        let bytes = match fs::read(format!("/proc/{pid}/cgroup")) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok((!ended(pidfd)?).then(|| Membership::parse(&String::from_utf8_lossy(&bytes))))
    }

    /// Lines of proc_pid_cgroup(5), `ID:CONTROLLERS:PATH`. Others are left out.
    pub fn parse(text: &str) -> Membership {
        let mut groups: Vec<Cgroup> = text.lines().filter_map(line).collect();
        groups.sort_by_key(|group| rank(&group.hierarchy));
        Membership(groups)
    }

    /// The groups, those of the hierarchies that say most first.
    pub fn groups(&self) -> impl Iterator<Item = &Cgroup> {
        self.0.iter()
    }

    /// The group that names the process: the first that is not the root of its hierarchy.
    pub fn named(&self) -> Option<&Cgroup> {
        self.groups()
            .find(|group| group.path != "/")
            .or_else(|| self.groups().next())
    }
}

fn line(line: &str) -> Option<Cgroup> {
    let mut fields = line.splitn(3, ':');
    let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    number.parse::<u32>().ok()?;
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let hierarchy = match controllers.split(',').next()? {
        "" => Hierarchy::Unified,
        first => Hierarchy::Legacy(first.into()),
    };
    path.starts_with('/').then(|| Cgroup {
        hierarchy,
        path: path.into(),
    })
}

fn rank(hierarchy: &Hierarchy) -> usize {
    match hierarchy {
        Hierarchy::Unified => 0,
        Hierarchy::Legacy(name) => {
            let place = ORDER.iter().position(|known| known == name);
            1 + place.unwrap_or(ORDER.len())
        }
    }
}

fn ended(pidfd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    Ok(poll(&mut fds, Some(&now))? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_hierarchy_that_says_most_names_the_process() {
        let named = |text: &str| {
            let membership = Membership::parse(text);
            let group = membership.named().unwrap();
            (group.hierarchy.clone(), group.path.clone())
        };
        let legacy = |name: &str, path: &str| (Hierarchy::Legacy(name.into()), path.to_owned());
        assert_eq!(
            named("0::/system.slice/a.service\n"),
            (Hierarchy::Unified, "/system.slice/a.service".into())
        );
        assert_eq!(
            named("9:name=systemd:/\n8:pids:/\n4:memory:/process_api/08fb\n0::/\n"),
            legacy("memory", "/process_api/08fb")
        );
        assert_eq!(
            named("12:cpu,cpuacct:/x\n1:name=systemd:/user.slice\n"),
            legacy("name=systemd", "/user.slice")
        );
        assert_eq!(named("3:cpuset:/\n0::/\n"), (Hierarchy::Unified, "/".into()));
        assert_eq!(
            named("7:misc:/a:b\n"),
            legacy("misc", "/a:b"),
            "a colon in a path"
        );
    }

    #[test]
    fn a_group_removed_under_its_process_keeps_its_name() {
        let membership = Membership::parse("0::/a/b (deleted)\n");
        assert_eq!(membership.named().unwrap().path, "/a/b");
    }

    #[test]
    fn this_process_has_groups_and_an_ended_one_has_none() {
        let pidfd = |pid: u32| {
            let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
            rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap()
        };
        let own = pidfd(std::process::id());
        assert!(Membership::of(std::process::id(), own.as_fd()).unwrap().is_some());
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let ended = pidfd(child.id());
        child.wait().unwrap();
        // The number of a living process, the descriptor of an ended one: what a recycled number looks like.
        assert_eq!(Membership::of(std::process::id(), ended.as_fd()).unwrap(), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken_apart(text in "(?s).{0,200}") {
            let membership = Membership::parse(&text);
            proptest::prop_assert!(membership.groups().all(|group| group.path.starts_with('/')));
        }
    }
}
