//! `cargo xtask dist`: the release, from sources to packages under `target/dist`.
//!
//! `dist/portable.rs` builds what runs on any glibc since 2.17, `dist/tree.rs` lays out the files of each package as they
//! will lie on a node, `dist/deb.rs` and `dist/tarball.rs` pack them, `dist/notices.rs` collects licences. The same
//! sources give the same bytes.

mod deb;
mod notices;
mod portable;
mod tarball;
mod tree;

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use crate::{artefacts, inner, layout::Layout, steps::Steps};

/// What the command line asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// Debian's version of the packages; also part of the shim's file name.
    version: String,
    /// Package what `cargo xtask build` left: quick, for tests, and runs only where it was built.
    as_built: bool,
}

impl Options {
    /// Reads the words after `dist`.
    pub fn parse(words: &[String]) -> Result<Options> {
        let mut options = Options {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            as_built: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--as-built" => options.as_built = true,
                "--version" => options.version = words.next().context("--version needs a value")?.clone(),
                other => bail!("unknown option {other}"),
            }
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || ".+~".contains(c);
        ensure!(
            options.version.starts_with(|c: char| c.is_ascii_digit()) && options.version.chars().all(plain),
            "--version {}: a digit first, then letters, digits, `.`, `+` and `~`",
            options.version
        );
        Ok(options)
    }
}

/// What is packed, and for whom.
struct Release {
    version: String,
    /// Seconds since 1970 that every packed file is dated with.
    epoch: u64,
    as_built: bool,
    /// Where packages are put.
    out: PathBuf,
    /// Programs and libraries to be packed.
    built: portable::Built,
}

/// Builds and packs.
pub fn dist(steps: &mut Steps, layout: &Layout, options: &Options) -> Result<()> {
    let built = if options.as_built {
        portable::Built::as_it_is(layout)
    } else {
        artefacts::build(steps, layout)?; // for the stand-in, and what describes the command line
        steps.step("build for glibc 2.17", |steps| portable::build(steps, layout))?
    };
    let out = layout
        .target
        .join("dist")
        .join(if options.as_built { "as-built" } else { "release" });
    let release = Release {
        version: options.version.clone(),
        epoch: epoch(layout)?,
        as_built: options.as_built,
        out,
        built,
    };
    steps.step("pack", |_| {
        std::fs::create_dir_all(&release.out)?;
        let trees = tree::lay_out(layout, &release)?;
        for tree in &trees.all {
            println!("{}", deb::pack(layout, &release, tree)?.display());
        }
        if !release.as_built {
            for file in tarball::pack(&release, &trees.all)? {
                println!("{}", file.display());
            }
        }
        Ok(())
    })
}

/// `$SOURCE_DATE_EPOCH`, else the last commit's time, else the newest word of the changelog.
fn epoch(layout: &Layout) -> Result<u64> {
    if let Ok(said) = std::env::var("SOURCE_DATE_EPOCH") {
        return said
            .parse()
            .with_context(|| format!("SOURCE_DATE_EPOCH={said}: seconds since 1970 expected"));
    }
    let commit = inner::quiet(
        inner::command("git")
            .args(["log", "-1", "--format=%ct"])
            .current_dir(&layout.root),
    );
    if let Ok(Ok(seconds)) = commit.map(|text| text.trim().parse()) {
        return Ok(seconds);
    }
    let changed = std::fs::metadata(layout.root.join("CHANGELOG.md"))?.modified()?;
    Ok(changed.duration_since(std::time::UNIX_EPOCH)?.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options> {
        Options::parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_version_is_the_workspaces_unless_said_otherwise() {
        assert_eq!(parse(&[]).unwrap().version, env!("CARGO_PKG_VERSION"));
        let said = parse(&["--as-built", "--version", "1.2~rc1"]).unwrap();
        assert_eq!((said.version.as_str(), said.as_built), ("1.2~rc1", true));
        for wrong in ["", "v1", "1.0-1", "1/2", "1 2"] {
            assert!(parse(&["--version", wrong]).is_err(), "{wrong}");
        }
        assert!(parse(&["--version"]).is_err() && parse(&["--fast"]).is_err());
    }
}
