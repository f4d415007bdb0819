//! The licences of all crates that are linked into what a package holds: their texts have to go with them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{inner, layout::Layout};

/// Beginnings of the names of files that hold a licence.
const NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// Who is linked into `packages`, under which licence, and each licence's text once.
pub fn collect(layout: &Layout, packages: &[&str]) -> Result<String> {
    let linked = linked(layout, packages)?;
    let metadata = inner::quiet(inner::cargo(layout).args(["metadata", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata prints JSON")?;
    let (mut list, mut texts) = (String::new(), BTreeMap::<String, Vec<String>>::new());
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let name = format!("{} v{}", text("name"), text("version"));
        if package["source"].is_null() || !linked.contains(&name) {
            continue;
        }
        list.push_str(&format!("{name}: {}\n", text("license")));
        let directory = Path::new(text("manifest_path")).parent();
        for text in of_directory(directory.context("a manifest lies in a directory")?)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut all = format!("Linked into this package, each under its licence:\n\n{list}");
    for (text, names) in texts {
        let line = "=".repeat(78);
        all.push_str(&format!(
            "\n{line}\n{}\n{line}\n\n{}\n",
            names.join(", "),
            text.trim_end()
        ));
    }
    Ok(all)
}

/// `NAME vVERSION` of everything that is linked.
fn linked(layout: &Layout, packages: &[&str]) -> Result<BTreeSet<String>> {
    let mut command = inner::cargo(layout);
    command.args(["tree", "-e", "normal", "--prefix", "none", "--format", "{p}"]);
    for package in packages {
        command.args(["-p", package]);
    }
    let tree = inner::quiet(&mut command)?;
    let name = |line: &str| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    Ok(tree.lines().filter_map(name).collect())
}

/// The licence texts of one crate, in the order of their files' names.
fn of_directory(directory: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_uppercase();
        if path.is_file() && NAMES.iter().any(|first| name.starts_with(first)) {
            found.push(path);
        }
    }
    found.sort();
    let read = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(found.into_iter().map(read).collect::<Result<_, _>>()?)
}
