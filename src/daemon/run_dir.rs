//! Prepares a node's run directory: owned by the daemon's user, one daemon at a time, sockets of nobody alive removed.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::config::Absent;

/// Names below the run directory.
const LOCK: &str = "lock";
const RECORD: &str = "state";

#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    #[error("{path}: {error}", path = path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{path} belongs to user {owner}: a node's run directory must be its own", path = path.display())]
    Owner { path: PathBuf, owner: u32 },
    #[error("{path} may be written by others (mode {mode:o}): take their right away", path = path.display())]
    Mode { path: PathBuf, mode: u32 },
    #[error("{path}: another daemon runs this node", path = path.display())]
    Busy { path: PathBuf },
}

/// A prepared run directory, locked for as long as this lives.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    lock: File,
}

impl RunDir {
    /// Makes what is missing and checks what is there.
    pub fn prepare(path: &Path) -> Result<RunDir, RunDirError> {
        let mode = mode_of_directories();
        directory(path, mode)?;
        directory(&path.join("attach"), mode)?;
        let name = path.join(LOCK);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&name);
        let lock = file.map_err(|error| RunDirError::Io {
            path: name.clone(),
            error,
        })?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(RunDir {
                path: path.into(),
                lock,
            }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(RunDirError::Busy { path: path.into() }),
            Err(error) => Err(RunDirError::Io {
                path: name,
                error: error.into(),
            }),
        }
    }

    /// Makes what is missing now. The lock goes over to what is returned.
    pub fn again(&self) -> Result<RunDir, RunDirError> {
        if !self.has_lock() {
            return RunDir::prepare(&self.path);
        }
        let io = |error| RunDirError::Io {
            path: self.path.clone(),
            error,
        };
        directory(&self.path.join("attach"), mode_of_directories())?;
        Ok(RunDir {
            path: self.path.clone(),
            lock: self.lock.try_clone().map_err(io)?,
        })
    }

    /// Whether the directory is still the one that was prepared: false once somebody has emptied or replaced it.
    pub fn is_in_place(&self) -> bool {
        let sockets = [self.attach_socket(), self.admin_socket()];
        self.has_lock() && sockets.iter().all(|path| path.exists())
    }

    /// Lets the next daemon in at once: a child that was just forked may hold a copy of the lock's descriptor a moment longer.
    pub fn unlock(&self) {
        let _ = flock(&self.lock, FlockOperation::Unlock); // it goes with the last descriptor at the latest
    }

    fn has_lock(&self) -> bool {
        let ours = self.lock.metadata().map(|file| (file.dev(), file.ino()));
        let there = fs::metadata(self.path.join(LOCK)).map(|file| (file.dev(), file.ino()));
        matches!((ours, there), (Ok(ours), Ok(there)) if ours == there)
    }

    /// Path of the daemon's record.
    pub fn record(&self) -> PathBuf {
        self.path.join(RECORD)
    }

    /// Says what a client does when no daemon answers. Stays when the daemon goes: that is when it is read.
    pub fn write_policy(&self, absent: Absent) -> Result<(), RunDirError> {
        let path = self.path.join(driver::run_dir::ATTACH_POLICY);
        let word = match absent {
            Absent::Refuse => "refuse",
            Absent::Run => "run",
        };
        let text = format!("absent = \"{word}\"\n");
        if fs::read_to_string(&path).is_ok_and(|there| there == text) {
            // On a full disk, too, a daemon can start again.
            return Ok(());
        }
        let fresh = path.with_extension("new");
        let write = || -> io::Result<()> {
            let mut file = File::create(&fresh)?;
            file.set_permissions(Permissions::from_mode(0o644))?;
            file.write_all(text.as_bytes())?;
            fs::rename(&fresh, &path)
        };
        write().map_err(|error| RunDirError::Io {
            path: path.clone(),
            error,
        })
    }

    /// Path of the attach socket.
    pub fn attach_socket(&self) -> PathBuf {
        self.path.join(driver::run_dir::ATTACH_SOCKET)
    }

    /// Path of the admin socket.
    pub fn admin_socket(&self) -> PathBuf {
        self.path.join(driver::run_dir::ADMIN_SOCKET)
    }

    /// Removes the sockets: nobody answers there any more. Where the directory is another one by now, so are its sockets.
    pub fn remove_sockets(&self) {
        if !self.has_lock() {
            return;
        }
        for socket in [self.attach_socket(), self.admin_socket()] {
            let _ = fs::remove_file(socket); // gone already is as good
        }
    }
}

/// As root everybody may reach the attach socket; a user's own node is nobody else's.
fn mode_of_directories() -> u32 {
    if rustix::process::geteuid().is_root() {
        0o755
    } else {
        0o700
    }
}

/// Makes a directory, or checks that the one there is ours alone to write.
fn directory(path: &Path, mode: u32) -> Result<(), RunDirError> {
    let io = |error| RunDirError::Io {
        path: path.into(),
        error,
    };
    match DirBuilder::new().mode(mode).create(path) {
        // The mode was cut by the umask.
        Ok(()) => return fs::set_permissions(path, Permissions::from_mode(mode)).map_err(io),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(io(error)),
    }
    let found = fs::symlink_metadata(path).map_err(io)?;
    if !found.is_dir() {
        return Err(io(io::ErrorKind::NotADirectory.into()));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(RunDirError::Owner {
            path: path.into(),
            owner: found.uid(),
        });
    }
    let mode = found.mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(RunDirError::Mode {
            path: path.into(),
            mode,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_daemon_at_a_time_and_the_policy_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node");
        let run = RunDir::prepare(&path).unwrap();
        assert!(matches!(RunDir::prepare(&path), Err(RunDirError::Busy { .. })));
        run.write_policy(Absent::Refuse).unwrap();
        drop(run);
        let run = RunDir::prepare(&path).unwrap();
        let policy = path.join("attach/policy");
        assert_eq!(fs::read_to_string(&policy).unwrap(), "absent = \"refuse\"\n");
        assert_eq!(fs::metadata(&policy).unwrap().mode() & 0o777, 0o644);
        run.write_policy(Absent::Run).unwrap();
        assert_eq!(fs::read_to_string(&policy).unwrap(), "absent = \"run\"\n");
        assert_eq!(fs::metadata(path.join(LOCK)).unwrap().mode() & 0o777, 0o600);
        fs::write(run.admin_socket(), "").unwrap();
        fs::rename(path.join(LOCK), path.join("ours")).unwrap();
        assert!(!run.is_in_place());
        run.remove_sockets();
        assert!(run.admin_socket().exists(), "it is the next daemon's");
        fs::rename(path.join("ours"), path.join(LOCK)).unwrap();
        run.remove_sockets();
        assert!(!run.admin_socket().exists());
    }

    #[test]
    fn a_directory_others_may_write_is_not_trusted() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(
            RunDir::prepare(dir.path()),
            Err(RunDirError::Mode { mode: 0o777, .. })
        ));
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(
            RunDir::prepare(file.path()),
            Err(RunDirError::Io { .. })
        ));
    }
}
