//! Rules of the house that a reviewer would otherwise say twice. Each file is one kind of rule.

mod artefacts;
mod dependencies;
mod documents;
mod memory;
mod security;
mod sources;
mod table;

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::harness::root;

/// Every file of the repository that could be committed: all but `.git`, build outputs and what Cargo.lock pins.
fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).expect("a directory of the repository can be read") {
            let path = entry.expect("an entry can be read").path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if name == "target" || name == ".git" {
                continue;
            }
            if path.is_dir() {
                open.push(path)
            } else {
                found.push(path)
            }
        }
    }
    found.sort();
    found
}

/// The files that end in `.extension`.
fn files_with(extension: &str) -> Vec<PathBuf> {
    files()
        .into_iter()
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect()
}

/// `path` as a reader of the repository would name it.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
