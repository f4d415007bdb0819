//! Notices that quota files may have changed. Directories are watched, not files: editors replace a file by renaming
//! another over it, and a file may not be there yet. `daemon/reload.rs` then looks whether anything is different.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;

/// Directories that hold what is watched for.
#[derive(Debug)]
pub struct Watch {
    inotify: OwnedFd,
}

impl Watch {
    pub fn start() -> rustix::io::Result<Watch> {
        Ok(Watch {
            inotify: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
        })
    }

    /// Readable when something happened.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Watches whatever may bring, change or take away a file at `paths`, or in them where they are directories.
    pub fn look_at(&mut self, paths: &[PathBuf]) -> rustix::io::Result<()> {
        let mut wanted = BTreeSet::new();
        for path in paths {
            wanted.extend(nearest_directory(path));
            wanted.extend(path.parent().and_then(nearest_directory));
            // A link's target may lie elsewhere.
            let target = path.canonicalize().ok();
            wanted.extend(target.as_deref().and_then(Path::parent).map(Path::to_path_buf));
        }
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::MOVE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        for directory in &wanted {
            // Again for those watched already: another directory may have taken the name.
            match inotify::add_watch(&self.inotify, directory, flags) {
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes what happened off the descriptor. False: nothing did.
    pub fn happened(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut any = false;
        while reader.next().is_ok() {
            any = true;
        }
        any
    }
}

/// `path` where it is a directory, else the nearest one above that exists.
fn nearest_directory(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|path| path.is_dir()).map(Path::to_path_buf)
}
