//! Reads quota files and directories of drop-ins from disk for `config/mod.rs`. `daemon/reload.rs` reads them again.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;

use crate::config::{Config, Problem, Problems, Source, Zone};

/// In a directory: only its owner may rename or remove a file.
const STICKY: u32 = 0o1000;

const FILE: &str = "/etc/stint/stint.toml";
const DROP_INS: &str = "/etc/stint/stint.d";

/// Where a node's rules are written: files and directories of drop-ins (`*.toml`, in the order of their names), in this
/// order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuotaFiles {
    paths: Vec<PathBuf>,
    /// Those not there are left out.
    optional: bool,
}

impl QuotaFiles {
    /// These, which must be there.
    pub fn named(paths: impl IntoIterator<Item = PathBuf>) -> QuotaFiles {
        QuotaFiles {
            paths: paths.into_iter().collect(),
            optional: false,
        }
    }

    /// The installed file and its drop-ins, where they exist.
    pub fn installed() -> QuotaFiles {
        QuotaFiles::optional([FILE.into(), DROP_INS.into()])
    }

    fn optional(paths: impl IntoIterator<Item = PathBuf>) -> QuotaFiles {
        QuotaFiles {
            optional: true,
            ..QuotaFiles::named(paths)
        }
    }

    /// Files and directories, as they were named.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The texts as they are now.
    ///
    /// # Errors
    /// Every file that cannot be read, or holds no text.
    pub fn read(&self) -> Result<Vec<Source>, Problems> {
        let (mut sources, mut problems) = (Vec::new(), Vec::new());
        for path in &self.paths {
            match files_of(path) {
                Ok(files) => {
                    for file in files {
                        match source(&file) {
                            Ok(source) => sources.push(source),
                            Err(problem) => problems.push(problem),
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::NotFound && self.optional => {}
                Err(error) => problems.push(unreadable(path, &error)),
            }
        }
        if problems.is_empty() {
            Ok(sources)
        } else {
            Err(Problems(problems))
        }
    }

    /// Files and directories of these that somebody else than root and the daemon's user may write.
    pub fn open_to_others(&self) -> Vec<PathBuf> {
        let daemon = rustix::process::geteuid().as_raw();
        let open = |path: &PathBuf| {
            let Ok(found) = std::fs::metadata(path) else {
                return false;
            };
            let foreign = found.uid() != 0 && found.uid() != daemon;
            foreign || (found.mode() & 0o002 != 0 && found.mode() & STICKY == 0)
        };
        let files = self
            .paths
            .iter()
            .flat_map(|path| files_of(path).unwrap_or_default());
        let directories = self.paths.iter().map(|path| match path.is_dir() {
            true => path.clone(),
            false => path.parent().unwrap_or(path).to_path_buf(),
        });
        let all: BTreeSet<PathBuf> = files.chain(directories).collect();
        all.into_iter().filter(open).collect()
    }

    /// The checked rules, in the time zone of this machine.
    ///
    /// # Errors
    /// Every mistake found.
    pub fn config(&self) -> Result<Config, Problems> {
        checked(&self.read()?)
    }
}

/// The rules written in `sources`, in the time zone of this machine.
///
/// # Errors
/// Every mistake found.
pub fn checked(sources: &[Source]) -> Result<Config, Problems> {
    let mut config = Config::parse(sources)?;
    config.zone = Zone(TimeZone::system());
    Ok(config)
}

/// `path`, or the drop-ins in it.
fn files_of(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() {
        return Ok(vec![path.into()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn source(path: &Path) -> Result<Source, Problem> {
    let bytes = read(path).map_err(|error| unreadable(path, &error))?;
    Source::new(path, &bytes)
}

/// The beginning of a regular file, one byte more than is allowed where there is so much. Waits for nobody.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(Source::LONGEST as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem::of_file(path, format!("cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_ins_are_read_in_order_of_their_names_and_other_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let drop_ins = dir.path().join("stint.d");
        std::fs::create_dir(&drop_ins).unwrap();
        for name in ["20-b.toml", "10-a.toml", "30-c.toml.bak", ".40-d.toml"] {
            std::fs::write(drop_ins.join(name), "").unwrap();
        }
        let names = |file: &str| -> Vec<String> {
            let files = QuotaFiles::optional([dir.path().join(file), drop_ins.clone()]);
            let sources = files.read().unwrap();
            let name = |source: &Source| source.path.file_name().unwrap().to_string_lossy().into_owned();
            sources.iter().map(name).collect()
        };
        assert_eq!(names("absent.toml"), ["10-a.toml", "20-b.toml"]);
        std::fs::write(dir.path().join("stint.toml"), "").unwrap();
        assert_eq!(names("stint.toml"), ["stint.toml", "10-a.toml", "20-b.toml"]);
        let neither = QuotaFiles::optional([dir.path().join("absent.toml"), dir.path().join("absent.d")]);
        assert!(neither.read().unwrap().is_empty());
    }

    #[test]
    fn a_named_file_must_be_there_and_right() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q.toml");
        let errors = |files: &QuotaFiles| files.config().unwrap_err().to_string();
        let named = QuotaFiles::named([path.clone()]);
        assert!(
            errors(&named).contains("q.toml: cannot be read: No such file"),
            "{}",
            errors(&named)
        );
        std::fs::write(&path, "[defaults]\nmemory = 6\n").unwrap();
        assert!(errors(&named).contains("q.toml:2:10: `6` has no unit"));
    }

    #[test]
    fn a_file_that_others_may_write_is_known() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q.toml");
        std::fs::write(&path, "").unwrap();
        let set =
            |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        let files = QuotaFiles::named([path.clone()]);
        set(&path, 0o664);
        assert_eq!(files.open_to_others(), Vec::<PathBuf>::new());
        set(&path, 0o666);
        assert_eq!(files.open_to_others(), std::slice::from_ref(&path));
        set(dir.path(), 0o777);
        assert_eq!(files.open_to_others(), [dir.path().to_path_buf(), path.clone()]);
        set(&path, 0o644);
        set(dir.path(), 0o1777);
        assert_eq!(files.open_to_others(), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_is_no_regular_file_is_refused_and_never_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("q.toml");
        let mode = rustix::fs::Mode::from(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [fifo, "/dev/zero".into()] {
            let error = QuotaFiles::named([path]).config().unwrap_err().to_string();
            assert!(
                error.ends_with("cannot be read: it is no regular file"),
                "{error}"
            );
        }
    }
}
