//! Reads the quota file and its drop-ins from disk for `config/mod.rs`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::config::{Config, Source};
use crate::exit::Failure;

const FILE: &str = "/etc/stint/stint.toml";
const DROP_INS: &str = "/etc/stint/stint.d";

/// The checked contents of `file`; of the installed file and its drop-ins, where they exist, when none is named. Exit 78
/// with every mistake found.
pub fn read(file: Option<&Path>) -> Result<Config, Failure> {
    let sources = match file {
        Some(file) => vec![source(file)?],
        None => installed(Path::new(FILE), Path::new(DROP_INS))?,
    };
    Config::parse(&sources).map_err(Failure::bad_config)
}

fn installed(file: &Path, drop_ins: &Path) -> Result<Vec<Source>, Failure> {
    let mut paths: Vec<PathBuf> = if file.exists() {
        vec![file.into()]
    } else {
        Vec::new()
    };
    match std::fs::read_dir(drop_ins) {
        Ok(entries) => {
            let mut found = Vec::new();
            for entry in entries {
                let path = entry.map_err(|error| unreadable(drop_ins, &error))?.path();
                if path.extension().is_some_and(|extension| extension == "toml") {
                    found.push(path);
                }
            }
            found.sort();
            paths.extend(found);
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(unreadable(drop_ins, &error)),
    }
    paths.iter().map(|path| source(path)).collect()
}

fn source(path: &Path) -> Result<Source, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Source {
            path: path.into(),
            text,
        }),
        Err(error) => Err(unreadable(path, &error)),
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::bad_config(format!("{}: cannot be read: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    #[test]
    fn drop_ins_are_read_in_order_of_their_names_and_other_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let drop_ins = dir.path().join("stint.d");
        std::fs::create_dir(&drop_ins).unwrap();
        for name in ["20-b.toml", "10-a.toml", "30-c.toml.bak"] {
            std::fs::write(drop_ins.join(name), "").unwrap();
        }
        let names = |file: &str| -> Vec<String> {
            let sources = installed(&dir.path().join(file), &drop_ins).unwrap();
            sources
                .iter()
                .map(|source| source.path.file_name().unwrap().to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(names("absent.toml"), ["10-a.toml", "20-b.toml"]);
        std::fs::write(dir.path().join("stint.toml"), "").unwrap();
        assert_eq!(names("stint.toml"), ["stint.toml", "10-a.toml", "20-b.toml"]);
        assert!(
            installed(&dir.path().join("absent.toml"), &dir.path().join("absent.d"))
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_named_file_must_be_there_and_right() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q.toml");
        assert_eq!(read(Some(&path)).unwrap_err().exit, Exit::BAD_CONFIG);
        std::fs::write(&path, "[defaults]\nmemory = 6\n").unwrap();
        let failure = read(Some(&path)).unwrap_err();
        assert!(
            failure.message.contains("q.toml:2:10: `6` has no unit"),
            "{failure}"
        );
    }
}
