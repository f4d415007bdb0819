//! The files of each package, laid out as they will lie on a node: `/usr/lib/stint/{bin,lib,sim}` and what points there.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{Release, notices};
use crate::{inner, layout::Layout};

/// The tree that `stint` finds its parts in.
pub const HOME: &str = "usr/lib/stint";

/// One package's files.
pub struct Tree {
    /// The package's name.
    pub package: &'static str,
    /// The directory that stands for `/`.
    pub root: PathBuf,
}

/// Documents that a node's administrator wants beside the program.
const DOCUMENTS: [&str; 7] = [
    "install.md",
    "first-five-minutes.md",
    "administration.md",
    "security.md",
    "configuration.md",
    "host-mode.md",
    "failure-modes.md",
];

/// All packages' trees, in a directory that is removed with this.
pub struct Trees {
    work: PathBuf,
    pub all: [Tree; 2],
}

impl Drop for Trees {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.work) {
            eprintln!("{} is left behind: {error}", self.work.display());
        }
    }
}

/// Lays out both packages.
pub fn lay_out(layout: &Layout, release: &Release) -> Result<Trees> {
    let work = release
        .out
        .join(format!(".{}.{}", release.version, std::process::id()));
    let tree = |package| Tree {
        package,
        root: work.join(package),
    };
    let trees = Trees {
        all: [tree("stint"), tree("stint-sim")],
        work,
    };
    for tree in &trees.all {
        fs::create_dir_all(&tree.root).with_context(|| format!("cannot make {}", tree.root.display()))?;
    }
    node(layout, release, &trees.all[0])?;
    stand_in(layout, &trees.all[1])?;
    for tree in &trees.all {
        documents(layout, tree)?;
        plain_directories(&tree.root)?;
    }
    Ok(trees)
}

/// The daemon, the command line, the shim and what starts them.
fn node(layout: &Layout, release: &Release, tree: &Tree) -> Result<()> {
    let packaging = layout.root.join("packaging");
    tree.program(
        &release.built.stint,
        &format!("{HOME}/bin/stint"),
        &["--strip-debug"],
    )?;
    tree.link("usr/bin/stint", "../lib/stint/bin/stint")?;
    // A name per version: what a running program maps is never written, and its maps say which version it is.
    for (from, name) in [
        (&release.built.shim, "libstint"),
        (&release.built.nvml_twin, "libstint-nvml"),
    ] {
        let file = format!("{name}-{}.so", release.version);
        tree.program(from, &format!("{HOME}/lib/{file}"), &["--strip-unneeded"])?;
        tree.link(&format!("{HOME}/lib/{name}.so"), &file)?;
    }
    tree.all(&layout.artefacts().join("preload"), &format!("{HOME}/preload"))?;
    let units = packaging.join("systemd");
    for (from, to) in [
        ("stintd.service", "usr/lib/systemd/system/stintd.service"),
        ("stint.tmpfiles.conf", "usr/lib/tmpfiles.d/stint.conf"),
        ("stint.sysusers.conf", "usr/lib/sysusers.d/stint.conf"),
    ] {
        tree.file(&units.join(from), to)?;
    }
    tree.file(&packaging.join("etc/stint.toml"), "etc/stint/stint.toml")?;
    fs::create_dir_all(tree.root.join("etc/stint/stint.d"))?;
    // Manual pages and completions, generated from the command line by `cargo xtask build`.
    let share = layout.artefacts().join("share");
    tree.all(&share, "usr/share")?;
    for page in files(&tree.root.join("usr/share/man"))? {
        inner::quiet(inner::command("gzip").args(["-9", "-n"]).arg(page))?;
    }
    for document in DOCUMENTS {
        let from = layout.root.join("docs").join(document);
        tree.file(&from, &format!("usr/share/doc/stint/{document}"))?;
    }
    let notices = notices::collect(layout, &["stint", "stint-shim", "stint-shim-nvml"])?;
    tree.compressed(&notices, "usr/share/doc/stint/third-party-licences.txt.gz")
}

/// The stand-in: the same files in the same places as `target/stint/sim`.
fn stand_in(layout: &Layout, tree: &Tree) -> Result<()> {
    let from = layout.artefacts().join("sim");
    tree.all(&from, &format!("{HOME}/sim"))?;
    for file in files(&tree.root.join(HOME))? {
        inner::quiet(inner::command("strip").arg("--strip-debug").arg(&file))?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
    }
    tree.file(
        &layout.root.join("packaging/systemd/stintd-sim.conf"),
        "usr/share/doc/stint-sim/examples/stintd-sim.conf",
    )?;
    let notices = notices::collect(layout, &["simgpu"])?;
    tree.compressed(&notices, "usr/share/doc/stint-sim/third-party-licences.txt.gz")
}

/// What every package has to say about itself.
fn documents(layout: &Layout, tree: &Tree) -> Result<()> {
    let doc = format!("usr/share/doc/{}", tree.package);
    let own = fs::read_to_string(layout.root.join("packaging/deb/copyright"))?;
    tree.text(&own.replace("@MIT@", &mit(layout)?), &format!("{doc}/copyright"))?;
    let changes = fs::read_to_string(layout.root.join("CHANGELOG.md"))?;
    tree.compressed(&changes, &format!("{doc}/changelog.gz"))
}

/// The MIT licence as a paragraph of Debian's copyright format.
fn mit(layout: &Layout) -> Result<String> {
    let text = fs::read_to_string(layout.root.join("LICENSE-MIT"))?;
    let line = |line: &str| {
        if line.trim().is_empty() {
            " .".to_owned()
        } else {
            format!(" {line}")
        }
    };
    Ok(text
        .trim_end()
        .lines()
        .skip(2)
        .map(line)
        .collect::<Vec<_>>()
        .join("\n"))
}

impl Tree {
    /// Writes a text file.
    fn text(&self, text: &str, to: &str) -> Result<()> {
        let to = self.place(to)?;
        fs::write(&to, text)?;
        Ok(fs::set_permissions(to, fs::Permissions::from_mode(0o644))?)
    }

    /// Copies a text file.
    fn file(&self, from: &Path, to: &str) -> Result<()> {
        self.copy(from, to, 0o644).map(|_| ())
    }

    /// Copies a program or library without what only a debugger reads.
    fn program(&self, from: &Path, to: &str, strip: &[&str]) -> Result<()> {
        let copied = self.copy(from, to, 0o755)?;
        inner::quiet(inner::command("strip").args(strip).arg(copied)).map(|_| ())
    }

    /// Copies everything below `from`, links as links.
    fn all(&self, from: &Path, to: &str) -> Result<()> {
        for path in files_and_links(from)? {
            let below = path.strip_prefix(from)?;
            let to = Path::new(to).join(below);
            let to = to.to_str().context("our own names are text")?;
            match fs::read_link(&path) {
                Ok(target) => self.link(to, target.to_str().context("our own links are text")?)?,
                Err(_) => self.file(&path, to)?,
            }
        }
        Ok(())
    }

    fn copy(&self, from: &Path, to: &str, mode: u32) -> Result<PathBuf> {
        let to = self.place(to)?;
        fs::copy(from, &to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(mode))?;
        Ok(to)
    }

    fn link(&self, name: &str, target: &str) -> Result<()> {
        Ok(symlink(target, self.place(name)?)?)
    }

    /// Writes `text`, gzipped without a date.
    fn compressed(&self, text: &str, to: &str) -> Result<()> {
        let plain = to.strip_suffix(".gz").context("a compressed file ends in .gz")?;
        self.text(text, plain)?;
        let mut command = inner::command("gzip");
        inner::quiet(command.args(["-9", "-n"]).arg(self.root.join(plain))).map(|_| ())
    }

    /// The path of `to` in this tree, whose directory is made.
    fn place(&self, to: &str) -> Result<PathBuf> {
        let path = self.root.join(to);
        fs::create_dir_all(path.parent().context("a file lies in a directory")?)?;
        Ok(path)
    }
}

/// The caller's umask is not part of a package.
fn plain_directories(root: &Path) -> Result<()> {
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))?;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(())
}

/// Every regular file below `root`, sorted.
pub fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = files_and_links(root)?;
    found.retain(|path| !path.is_symlink());
    Ok(found)
}

fn files_and_links(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(directory) = open.pop() {
        let entries =
            fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}
