//! The server's place: the directory `sim` of a run directory, its lock and its socket.
//!
//! The lock is a lock of the directory itself, held by the open descriptor, so a killed server cannot
//! leave it behind; who holds it may replace the socket of a dead one.

use crate::proto::socket;
use std::ffi::CString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

pub struct Place {
    /// Of the socket, in `directory`.
    name: Option<CString>,
    listener: OwnedFd,
    /// Keeps the lock.
    directory: File,
    /// Root's: like a device node, open to every user who can reach it, as the sockets of root's daemon are.
    open: bool,
}

impl Place {
    /// Takes the place of the server whose socket is `socket`, making its directory. `AddrInUse` if
    /// another server has it, `PermissionDenied` if the directory is not ours.
    pub fn take(socket: &Path) -> io::Result<Place> {
        let directory = socket.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let run = directory.parent().ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: geteuid cannot fail.
        let open = unsafe { libc::geteuid() } == 0;
        let mode = if open { 0o755 } else { 0o700 };
        for level in [run, directory] {
            DirBuilder::new().recursive(true).mode(mode).create(level)?;
            if !is_trusted(level)? {
                let text = format!(
                    "{} belongs to somebody else or others may write to it",
                    level.display()
                );
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
            }
        }
        let lock = File::open(directory)?;
        // SAFETY: a plain system call on an open descriptor.
        if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let e = io::Error::last_os_error();
            let busy = e.kind() == io::ErrorKind::WouldBlock;
            return Err(if busy { io::ErrorKind::AddrInUse.into() } else { e });
        }
        let listener = socket::listen(socket)?;
        fs::set_permissions(socket, Permissions::from_mode(if open { 0o666 } else { 0o600 }))?;
        Ok(Place {
            name: socket
                .file_name()
                .and_then(|name| CString::new(name.as_bytes()).ok()),
            listener,
            directory: lock,
            open,
        })
    }

    pub(super) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    pub(super) fn admits(&self, uid: u32) -> bool {
        // SAFETY: geteuid cannot fail.
        self.open || uid == 0 || uid == unsafe { libc::geteuid() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // In our directory, not at our path: somebody may have removed the directory and another server made it anew, and
        // what listens there is that one's.
        let Some(name) = self.name.as_deref() else { return };
        // SAFETY: a plain system call on an open descriptor and a C string.
        unsafe { libc::unlinkat(self.directory.as_raw_fd(), name.as_ptr(), 0) };
    }
}

/// True when the directory is ours or root's and nobody else may write to it.
pub(crate) fn is_trusted(directory: &Path) -> io::Result<bool> {
    // Not through a link that somebody else may have put there.
    let meta = fs::symlink_metadata(directory)?;
    // SAFETY: geteuid cannot fail.
    let ours = meta.uid() == 0 || meta.uid() == unsafe { libc::geteuid() };
    Ok(ours && meta.is_dir() && meta.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_whose_directory_was_replaced_leaves_the_socket_of_the_next_alone() {
        let run = tempfile::tempdir().unwrap();
        let socket = run.path().join("node/sim/sim.sock");
        let first = Place::take(&socket).unwrap();
        fs::remove_dir_all(run.path().join("node")).unwrap();
        let second = Place::take(&socket).unwrap();
        drop(first);
        assert!(socket.exists(), "the second one listens there");
        drop(second);
        assert!(!socket.exists());
    }
}
