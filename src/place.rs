//! Where nodes are, seen from a command: the machine's, the user's, and private ones below the user's run directory.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::protocol::SOCKET;

/// First parts of the names of private run directories: those of `stint run` and of `stint demo`.
const PRIVATE: [&str; 2] = ["run-", "demo-"];

/// The machine's node if one answers there, else the place of the user's own.
pub fn usual() -> PathBuf {
    let system = PathBuf::from(driver::run_dir::SYSTEM);
    if system.join(SOCKET).exists() {
        system
    } else {
        driver::run_dir::default_for_user()
    }
}

/// True when programs of this machine belong to an installed node, whatever run directory they are given.
pub fn is_taken() -> bool {
    driver::run_dir::of_shim().is_some_and(|dir| dir == Path::new(driver::run_dir::SYSTEM))
}

/// A path for the private node of this process's `stint VERB`, whose parent exists.
pub fn private(verb: &str) -> io::Result<PathBuf> {
    let below = driver::run_dir::default_for_user();
    let mode = if below == Path::new(driver::run_dir::SYSTEM) {
        0o755
    } else {
        0o700
    };
    DirBuilder::new().recursive(true).mode(mode).create(&below)?;
    own(&below)?;
    Ok(below.join(format!("{verb}-{}", std::process::id())))
}

/// Checks that the place of the calling user's own nodes, where it is there, is theirs: in `/var/tmp` anybody may have made
/// it, and would have a node of their own there, or the names of ours.
pub fn own(below: &Path) -> io::Result<()> {
    let found = match std::fs::symlink_metadata(below) {
        Ok(found) => found,
        // Who goes on finds out, and says which directory it is.
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied].contains(&error.kind()) => {
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let mode = found.mode() & 0o7777;
    let why = match () {
        () if !found.is_dir() => "it is no directory".to_string(),
        () if found.uid() != rustix::process::geteuid().as_raw() => {
            format!("it belongs to user {}", found.uid())
        }
        () if mode & 0o022 != 0 => format!("others may write to it (mode {mode:o})"),
        () => return Ok(()),
    };
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("no node there is yours: {why}: remove it, or name another with --run-dir"),
    ))
}

/// Makes `path`, for this user alone.
pub fn make(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Private nodes below `place` that have an admin socket.
pub fn private_nodes(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| {
            let name = entry.file_name();
            PRIVATE
                .iter()
                .any(|first| name.to_string_lossy().starts_with(first))
        })
        .map(|entry| entry.path())
        .filter(|dir| dir.join(SOCKET).exists())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_others_may_have_made_or_may_write_is_not_ones_own() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("stint");
        own(&place).unwrap();
        make(&place).unwrap();
        own(&place).unwrap();
        let told = |path: &Path| own(path).unwrap_err().to_string();
        std::fs::set_permissions(&place, PermissionsExt::from_mode(0o770)).unwrap();
        assert!(told(&place).contains("mode 770"));
        std::fs::set_permissions(&place, PermissionsExt::from_mode(0o700)).unwrap();
        let link = dir.path().join("link");
        symlink(&place, &link).unwrap();
        assert!(told(&link).contains("no directory"));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&place, Some(65534), None).unwrap();
            assert!(told(&place).contains("user 65534"));
        }
    }

    #[test]
    fn private_nodes_are_found_by_their_sockets() {
        let dir = tempfile::tempdir().unwrap();
        for (name, socket) in [
            ("run-7", true),
            ("run-8", false),
            ("other", true),
            ("demo-9", true),
        ] {
            make(&dir.path().join(name)).unwrap();
            if socket {
                std::fs::write(dir.path().join(name).join(SOCKET), "").unwrap();
            }
        }
        assert_eq!(
            private_nodes(dir.path()),
            [dir.path().join("demo-9"), dir.path().join("run-7")]
        );
        assert_eq!(private_nodes(Path::new("/nowhere")), Vec::<PathBuf>::new());
    }
}
