//! Tells when groups are removed. A group can only be removed when it is empty, so its processes are gone by then.
//!
//! The kernel reports the removal to whoever watches the directory above (measured on Linux 6.18, both versions: a watch on
//! the group's own directory stays silent), so one watch per parent serves all its groups, on every layout.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// A watched directory and the groups in it, each with its inode.
#[derive(Debug)]
struct Parent {
    path: PathBuf,
    groups: BTreeMap<OsString, u64>,
}

/// Watches over groups.
#[derive(Debug)]
pub struct Watch {
    inotify: OwnedFd,
    parents: BTreeMap<i32, Parent>,
}

impl Watch {
    pub fn new() -> io::Result<Watch> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Watch {
            inotify,
            parents: BTreeMap::new(),
        })
    }

    /// Readable when [`Watch::gone`] may have something to say.
    pub fn ready(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Watches over the group with this directory, once however often it is asked. `false`: there is none (any more).
    pub fn add(&mut self, directory: &Path) -> io::Result<bool> {
        let (Some(above), Some(name)) = (directory.parent(), directory.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let flags = WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::ONLYDIR;
        let number = match inotify::add_watch(&self.inotify, above, flags) {
            Ok(number) => number,
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        // Looked at after the watch began: a removal before is seen here, one after is reported.
        let inode = inode(directory);
        let parent = self.parents.entry(number).or_insert_with(|| Parent {
            path: above.into(),
            groups: BTreeMap::new(),
        });
        if let Some(inode) = inode {
            parent.groups.insert(name.into(), inode);
        }
        self.drop_if_empty(number);
        Ok(inode.is_some())
    }

    /// Ends the watch over a group.
    pub fn remove(&mut self, directory: &Path) {
        let (Some(above), Some(name)) = (directory.parent(), directory.file_name()) else {
            return;
        };
        let number = self.parents.iter().find(|(_, parent)| parent.path == above);
        if let Some(number) = number.map(|(number, _)| *number) {
            if let Some(parent) = self.parents.get_mut(&number) {
                parent.groups.remove(name);
            }
            self.drop_if_empty(number);
        }
    }

    /// Directories of the groups that were removed since the last call. Never waits.
    pub fn gone(&mut self) -> Vec<PathBuf> {
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut named: BTreeSet<(i32, OsString)> = BTreeSet::new();
        let mut lost = false;
        let mut reader = inotify::Reader::new(&self.inotify, &mut space);
        // Ends with EAGAIN, when all was read.
        while let Ok(event) = reader.next() {
            lost |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            if let Some(name) = event.file_name() {
                named.insert((event.wd(), OsStr::from_bytes(name.to_bytes()).into()));
            }
        }
        let mut gone = Vec::new();
        let numbers: Vec<i32> = self.parents.keys().copied().collect();
        for number in numbers {
            if let Some(parent) = self.parents.get_mut(&number) {
                parent.groups.retain(|name, inode_before| {
                    let path = parent.path.join(name);
                    let reported = named.contains(&(number, name.clone()));
                    let ended = reported || (lost && inode(&path) != Some(*inode_before));
                    if ended {
                        gone.push(path);
                    }
                    !ended
                });
            }
            self.drop_if_empty(number);
        }
        gone
    }

    fn drop_if_empty(&mut self, number: i32) {
        if let Entry::Occupied(parent) = self.parents.entry(number)
            && parent.get().groups.is_empty()
        {
            parent.remove();
            let _ = inotify::remove_watch(&self.inotify, number); // the directory is gone itself: so is the watch
        }
    }
}

fn inode(directory: &Path) -> Option<u64> {
    fs::symlink_metadata(directory).ok().map(|found| found.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn told(watch: &Watch) -> bool {
        let mut fds = [PollFd::new(watch, PollFlags::IN)];
        poll(&mut fds, Some(&Default::default())).unwrap() > 0
    }

    impl AsFd for Watch {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.ready()
        }
    }

    #[test]
    fn a_removed_group_is_named_once_and_its_neighbour_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        for group in [&a, &b] {
            fs::create_dir(group).unwrap();
        }
        let mut watch = Watch::new().unwrap();
        assert!(watch.add(&a).unwrap() && watch.add(&b).unwrap() && watch.add(&a).unwrap());
        assert!(!watch.add(&dir.path().join("never")).unwrap());
        assert!(!watch.add(&dir.path().join("never/there")).unwrap());
        assert!(watch.gone().is_empty());
        fs::remove_dir(&a).unwrap();
        fs::create_dir(&a).unwrap(); // another one of the same name
        assert!(told(&watch));
        assert_eq!(watch.gone(), [a]);
        assert!(watch.gone().is_empty());
        watch.remove(&b);
        fs::remove_dir(&b).unwrap();
        assert!(watch.gone().is_empty());
        assert!(watch.parents.is_empty());
    }

    /// The real thing where this user may make groups, which root in most places may.
    #[test]
    fn the_kernel_reports_the_removal_of_a_control_group() {
        let mounts = crate::Mounts::read().unwrap();
        let root = |hierarchy| {
            mounts.directory(&crate::Cgroup {
                hierarchy,
                path: "/".into(),
            })
        };
        let legacy = |name: &str| root(crate::Hierarchy::Legacy(name.into()));
        let mut watched = 0;
        for top in [
            root(crate::Hierarchy::Unified),
            legacy("name=systemd"),
            legacy("memory"),
        ] {
            let Some(group) = top.map(|top| top.join(format!("stint-watch-{}", std::process::id()))) else {
                continue;
            };
            if fs::create_dir(&group).is_err() {
                continue;
            }
            let mut watch = Watch::new().unwrap();
            assert!(watch.add(&group).unwrap());
            fs::remove_dir(&group).unwrap();
            assert!(told(&watch), "{}", group.display());
            assert_eq!(watch.gone(), [group]);
            watched += 1;
        }
        if watched == 0 {
            crate::skip::skip("the end of a control group", "nobody may make one here");
        }
    }
}
