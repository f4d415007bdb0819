//! What each library of the stand-in exports, as a linker version script.
//!
//! The 13 profile of `libcuda.so.1` is the driver table itself; everything else is a committed list of names.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, Result, ensure};

/// Reads a list of names, one a line; `#` begins a comment line.
pub fn read(path: &Path) -> Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let names: BTreeSet<String> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| line.trim().to_owned())
        .collect();
    ensure!(!names.is_empty(), "{} names no symbol", path.display());
    Ok(names)
}

/// Every symbol of the driver table.
pub fn of_the_table() -> BTreeSet<String> {
    driver::table::SYMBOLS
        .iter()
        .map(|symbol| symbol.name.to_owned())
        .collect()
}

/// A version script that exports exactly `names`, in the version node `node` if there is one.
pub fn script<'a>(node: Option<&str>, names: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = format!(
        "{}{{\n  global:\n",
        node.map(|node| format!("{node} ")).unwrap_or_default()
    );
    for name in names {
        text.push_str(&format!("    {name};\n"));
    }
    text.push_str("  local: *;\n};\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_exports_the_names_and_hides_the_rest() {
        assert_eq!(
            script(Some("libcudart.so.13"), ["cudaMalloc"]),
            "libcudart.so.13 {\n  global:\n    cudaMalloc;\n  local: *;\n};\n"
        );
        assert!(script(None, ["cuInit"]).starts_with("{\n"));
    }

    #[test]
    fn comments_and_empty_lines_are_no_names() {
        let file = std::env::temp_dir().join(format!("stint-names-{}", std::process::id()));
        std::fs::write(&file, "# a list\ncuInit\n\n  cuMemAlloc_v2\n").unwrap();
        let names = read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["cuInit", "cuMemAlloc_v2"]);
    }
}
