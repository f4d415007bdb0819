//! The files of host mode, and the order in which they come and go: whatever instant the power fails at, programs find
//! either the driver or a whole copy, and the next `enable` or `disable` completes what was begun.
//!
//! On: a directory of its own for this content, complete and on disk; then the one file that names it to `ldconfig`; then
//! the loader's cache. Off: the same backwards. No file is ever changed in place, since programs map them. The directory
//! before the present one stays: a program may have read its name from the cache and be about to open it.
//!
//! Next: `boot.rs`, what a program does that starts before the daemon.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use driver::loader_cache;
use rustix::fs::{FlockOperation, OFlags, flock};

use super::HostError;
use super::wanted::Wanted;

/// Below it one directory per content.
pub const LIBRARIES: &str = "/usr/lib/stint/host";
/// What `ldconfig` reads; the first in name, so that its directory comes first.
pub const CONF: &str = "/etc/ld.so.conf.d/000-stint.conf";
const LOCK: &str = "/run/stint-host.lock";
const CACHE: &str = "/etc/ld.so.cache";
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
const CONF_HEAD: &str = "# Made by `stint host enable`, removed by `stint host disable`.\n";

/// The site, held by one command at a time.
pub struct Site {
    lock: Option<File>,
}

impl Site {
    /// Waits for another `stint host` to end. The lock is on a file that root alone can open, and goes with this; in an
    /// image without a `/run` nobody else is at work.
    pub fn hold() -> Result<Site, HostError> {
        let path = Path::new(LOCK);
        let io = |error| HostError::io(path, error);
        if !exists(parent(path)) {
            return Ok(Site { lock: None });
        }
        loop {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600);
            let lock = options
                .custom_flags(OFlags::NOFOLLOW.bits() as i32)
                .open(path)
                .map_err(io)?;
            flock(&lock, FlockOperation::LockExclusive).map_err(|error| io(error.into()))?;
            let ours = lock.metadata().map_err(io)?.ino();
            // Else it went with its holder while we waited.
            if fs::symlink_metadata(path).is_ok_and(|there| there.ino() == ours) {
                return Ok(Site { lock: Some(lock) });
            }
        }
    }

    /// Puts `wanted` in front of the driver. On an error everything is as it was before.
    pub fn install(&self, wanted: &Wanted) -> Result<(), HostError> {
        let before = directory_in_force();
        let directory = Path::new(LIBRARIES).join(wanted.generation());
        if !is_whole(&directory, wanted) {
            write_directory(&directory, wanted)?;
        }
        let installed = try_load(&directory, wanted)
            .and_then(|()| write_conf(&directory))
            .and_then(|()| update_cache())
            .and_then(|()| come_first(&directory, wanted));
        match &installed {
            Ok(()) => self.remove_other_directories(&[Some(directory), before]),
            Err(_) => {
                // The error to report is the first one; what these find wrong, `status` will say.
                let _ = match &before {
                    Some(before) => write_conf(before),
                    None => remove(Path::new(CONF)),
                };
                let _ = update_cache();
                self.remove_other_directories(&[before]);
            }
        }
        installed
    }

    /// Programs that start from now on find the driver itself.
    pub fn take_out(&self) -> Result<(), HostError> {
        if exists(Path::new(CONF)) || !copies_in_cache().is_empty() {
            remove(Path::new(CONF))?;
            update_cache()?;
        }
        Ok(())
    }

    /// Removes the copies, once no program is sent to them any more.
    pub fn sweep(&self) -> Result<(), HostError> {
        self.remove_other_directories(&[]);
        let base = Path::new(LIBRARIES);
        match exists(base) {
            true => Err(HostError::io(base, io::ErrorKind::DirectoryNotEmpty.into())),
            false => Ok(()),
        }
    }

    fn remove_other_directories(&self, kept: &[Option<PathBuf>]) {
        for entry in fs::read_dir(LIBRARIES).into_iter().flatten().flatten() {
            if !kept.iter().flatten().any(|kept| *kept == entry.path()) {
                let _ = fs::remove_dir_all(entry.path()); // of no use, and no harm; the next command tries again
            }
        }
        for directory in [Path::new(LIBRARIES), parent(Path::new(LIBRARIES))] {
            let _ = fs::remove_dir(directory); // not empty where host mode is on, or a package is installed
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if self.lock.is_some() {
            let _ = fs::remove_file(LOCK); // before the lock goes: who waits for it will look
        }
    }
}

/// Whether any part of host mode is on this system, finished or not.
pub fn is_anything_there() -> bool {
    exists(Path::new(CONF)) || exists(Path::new(LIBRARIES)) || !copies_in_cache().is_empty()
}

/// The directory that the configuration names now.
pub fn directory_in_force() -> Option<PathBuf> {
    let text = fs::read_to_string(CONF).ok()?;
    text.lines().find(|line| line.starts_with('/')).map(PathBuf::from)
}

/// Whether `directory` holds exactly what is wanted.
pub fn is_whole(directory: &Path, wanted: &Wanted) -> bool {
    wanted.libraries.iter().all(|library| {
        fs::read(directory.join(library.name)).is_ok_and(|content| content == library.content)
            && fs::read_link(directory.join(library.alias)).is_ok_and(|to| to == Path::new(library.name))
    })
}

/// The file that programs get for `name` by the cache.
pub fn first_in_cache(name: &str) -> Option<PathBuf> {
    let cache = fs::read(CACHE).unwrap_or_default();
    loader_cache::lookup(&cache, name).into_iter().next()
}

/// Files of ours that the cache names.
pub fn copies_in_cache() -> Vec<PathBuf> {
    let cache = fs::read(CACHE).unwrap_or_default();
    let names = ["libcuda.so.1", "libnvidia-ml.so.1"];
    let found = names.iter().flat_map(|name| loader_cache::lookup(&cache, name));
    found.filter(|path| path.starts_with(LIBRARIES)).collect()
}

/// Every copy and both names of each come before any other file of that name.
fn come_first(directory: &Path, wanted: &Wanted) -> Result<(), HostError> {
    for library in &wanted.libraries {
        for name in [library.name, library.alias] {
            let first = first_in_cache(name);
            if first.as_deref() != Some(&directory.join(name)) {
                return Err(HostError::NotFirst { name, first });
            }
        }
    }
    Ok(())
}

/// A directory appears under its name with everything in it, or not at all.
fn write_directory(directory: &Path, wanted: &Wanted) -> Result<(), HostError> {
    let fresh = beside(directory);
    let write = || -> io::Result<()> {
        let _left_by_one_that_was_killed = fs::remove_dir_all(&fresh);
        let above = [parent(parent(directory)), parent(directory)];
        let made: Vec<&Path> = above.into_iter().filter(|level| !exists(level)).collect();
        fs::create_dir_all(&fresh)?;
        for library in &wanted.libraries {
            let mut file = File::create(fresh.join(library.name))?;
            file.write_all(&library.content)?;
            file.set_permissions(Permissions::from_mode(0o644))?;
            file.sync_all()?;
            symlink(library.name, fresh.join(library.alias))?;
        }
        for open in made.into_iter().chain([&*fresh]) {
            fs::set_permissions(open, Permissions::from_mode(0o755))?; // whatever the caller's umask
        }
        sync(&fresh)?;
        let _damaged = fs::remove_dir_all(directory);
        fs::rename(&fresh, directory)?;
        sync(parent(directory))
    };
    write().map_err(|error| HostError::io(directory, error))
}

fn write_conf(directory: &Path) -> Result<(), HostError> {
    let conf = Path::new(CONF);
    let text = format!("{CONF_HEAD}{}\n", directory.display());
    write_file(conf, &text).map_err(|error| HostError::io(conf, error))
}

/// Writes a file of the configuration: whole or not at all, on disk when this returns.
pub fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let fresh = beside(path); // not one of the `*.conf` that are read
    let mut file = File::create(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    sync(parent(path))
}

/// Removes a file, if it is there.
pub fn remove(path: &Path) -> Result<(), HostError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(HostError::io(path, error)),
        _ => Ok(()),
    }
}

fn update_cache() -> Result<(), HostError> {
    let program = ["/sbin/ldconfig", "/usr/sbin/ldconfig"]
        .into_iter()
        .find(|path| exists(Path::new(path)));
    let program = program.ok_or(HostError::Ldconfig {
        why: "there is none".into(),
    })?;
    let output = Command::new(program).env_clear().stdin(Stdio::null()).output();
    let output = output.map_err(|error| HostError::io(Path::new(program), error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = said.lines().last().unwrap_or("no reason given").to_owned();
    Err(HostError::Ldconfig { why })
}

/// Has the loader load each copy and bind all of its symbols, without running any code of it or of the driver: what is
/// wrong with it must show here and not in every program of the host.
fn try_load(directory: &Path, wanted: &Wanted) -> Result<(), HostError> {
    for library in &wanted.libraries {
        let path = directory.join(library.name);
        let mut command = Command::new(LOADER);
        command
            .env_clear()
            .env("LD_TRACE_LOADED_OBJECTS", "1")
            .env("LD_WARN", "yes")
            .env("LD_BIND_NOW", "yes");
        let output = command.arg(&path).stdin(Stdio::null()).output();
        let output = output.map_err(|error| HostError::io(Path::new(LOADER), error))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let wrong = said.lines().find(|line| {
            line.contains("undefined symbol") || line.contains("not found") || line.contains("error")
        });
        let finds_the_driver = said
            .lines()
            .any(|line| line.trim().starts_with(&*library.real.to_string_lossy()));
        if !output.status.success() || wrong.is_some() || !finds_the_driver {
            let why = wrong
                .or(said.lines().last())
                .unwrap_or("no reason given")
                .trim()
                .to_owned();
            return Err(HostError::Load { path, why });
        }
    }
    Ok(())
}

/// A name for what is not complete, in the same directory.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.new"))
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Whether there is something, be it a link that leads nowhere.
fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
