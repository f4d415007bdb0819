//! What an ELF file exports and says about itself, as `readelf` (binutils, which any linker needs) tells it.

use std::{collections::BTreeSet, path::Path, process::Command};

use super::outcome::run;

/// One dynamic symbol that the file defines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Export {
    pub name: String,
    /// Its version node.
    pub version: Option<String>,
}

/// Functions and objects that `file` exports; version nodes themselves are not among them.
pub fn exports(file: &Path) -> BTreeSet<Export> {
    symbols(file)
        .filter(|(section, kind, _)| section != "UND" && section != "ABS" && kind != "SECTION")
        .map(|(_, _, name)| split(&name))
        .collect()
}

/// The names of `exports`.
pub fn exported_names(file: &Path) -> BTreeSet<String> {
    exports(file).into_iter().map(|export| export.name).collect()
}

/// Symbols that `file` takes from elsewhere, with the version node it asks for.
pub fn imports(file: &Path) -> BTreeSet<Export> {
    symbols(file)
        .filter(|(section, _, _)| section == "UND")
        .map(|(_, _, name)| split(&name))
        .collect()
}

/// The lines of the dynamic section: `(SONAME)`, `(NEEDED)`, `(FLAGS_1)` and the rest.
pub fn dynamic(file: &Path) -> String {
    run(Command::new("readelf").args(["-d", "-W"]).arg(file))
        .success()
        .stdout
}

/// What the dynamic loader must put in place when it loads the file: the symbol each relocation names, empty for none.
pub fn relocations(file: &Path) -> Vec<String> {
    let text = run(Command::new("readelf").args(["-r", "-W"]).arg(file))
        .success()
        .stdout;
    let rows = text.lines().filter_map(|line| {
        // Offset Info Type [Value Name +] Addend
        let fields: Vec<&str> = line.split_whitespace().collect();
        let name = fields
            .get(4)
            .filter(|_| fields.len() > 5)
            .copied()
            .unwrap_or_default();
        fields.get(2)?.starts_with("R_").then(|| split(name).name)
    });
    rows.collect()
}

/// (section, type, name with version) of each dynamic symbol.
fn symbols(file: &Path) -> impl Iterator<Item = (String, String, String)> {
    let text = run(Command::new("readelf").args(["--dyn-syms", "-W"]).arg(file))
        .success()
        .stdout;
    let rows: Vec<_> = text
        .lines()
        .filter_map(|line| {
            // Num: Value Size Type Bind Vis Ndx Name [(version number)]
            let fields: Vec<&str> = line.split_whitespace().collect();
            let numbered = fields.first()?.strip_suffix(':')?.parse::<u32>().is_ok();
            (numbered && fields.len() >= 8)
                .then(|| (fields[6].to_owned(), fields[3].to_owned(), fields[7].to_owned()))
        })
        .collect();
    rows.into_iter()
}

/// `name@@version` in its parts.
fn split(text: &str) -> Export {
    let mut parts = text.split('@').filter(|part| !part.is_empty());
    Export {
        name: parts.next().unwrap_or_default().to_owned(),
        version: parts.next().map(str::to_owned),
    }
}
