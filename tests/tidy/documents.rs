//! Documents and heads of files mention only files that exist.

use std::fs;

use super::{files_with, shown};
use crate::harness::root;

/// First parts of a path that make a word in backticks a path of this repository.
const TOP: [&str; 13] = [
    "src",
    "shim",
    "driver",
    "ledger",
    "simgpu",
    "tests",
    "benches",
    "xtask",
    "docs",
    "packaging",
    ".ci",
    ".cargo",
    "cgroup",
];

/// Words between backticks that look like a path of the repository.
fn mentioned(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("```"))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(|word| {
            let plain = word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            plain
                && word
                    .split_once('/')
                    .is_some_and(|(top, rest)| TOP.contains(&top) && !rest.is_empty())
        })
}

#[test]
fn documents_mention_only_files_that_exist() {
    let mut missing = Vec::new();
    for path in files_with("md").iter().chain(&files_with("rs")) {
        let text = fs::read_to_string(path).expect("a document can be read");
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        let prose: String = text
            .lines()
            .filter(|line| !is_source || line.trim_start().starts_with("//"))
            .map(|line| format!("{line}\n"))
            .collect();
        missing.extend(
            mentioned(&prose)
                .filter(|word| !root().join(word).exists())
                .map(|word| format!("{}: {word}", shown(path))),
        );
    }
    assert!(
        missing.is_empty(),
        "mention what does not exist:\n{}",
        missing.join("\n")
    );
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut dead = Vec::new();
    for path in files_with("md") {
        let text = fs::read_to_string(&path).expect("a document can be read");
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split([')', '#']).next())
        {
            let elsewhere = link.is_empty() || link.contains("://") || link.starts_with("mailto:");
            if !elsewhere && !path.with_file_name("").join(link).exists() {
                dead.push(format!("{}: {link}", shown(&path)));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn both_licences_are_there_and_every_package_names_them() {
    for (file, words) in [
        ("LICENSE-APACHE", "Apache License"),
        ("LICENSE-MIT", "MIT License"),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap_or_default();
        assert!(text.contains(words), "{file} is missing or something else");
    }
    for manifest in files_with("toml")
        .iter()
        .filter(|path| path.ends_with("Cargo.toml"))
    {
        let text = fs::read_to_string(manifest).expect("a manifest can be read");
        let own =
            text.contains("license.workspace = true") || text.contains("license = \"Apache-2.0 OR MIT\"");
        assert!(own, "{} names no licence", shown(manifest));
    }
}
