//! The server's place: the directory `sim` of a run directory, its lock and its socket.
//!
//! The lock is a lock of the directory itself, held by the open descriptor, so a killed server cannot
//! leave it behind; who holds it may replace the socket of a dead one.

use crate::proto::socket;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub struct Place {
    socket: PathBuf,
    listener: OwnedFd,
    /// Keeps the lock.
    _directory: File,
    /// The installed node's: like a device node, open to every user.
    open: bool,
}

impl Place {
    /// Takes the place of the server whose socket is `socket`, making its directory. `AddrInUse` if
    /// another server has it, `PermissionDenied` if the directory is not ours.
    pub fn take(socket: &Path) -> io::Result<Place> {
        let directory = socket.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let run = directory.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let open = run == Path::new(driver::run_dir::SYSTEM);
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
            socket: socket.to_owned(),
            listener,
            _directory: lock,
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
        // The lock is still held: this is our socket.
        let _ = fs::remove_file(&self.socket);
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
