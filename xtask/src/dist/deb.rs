//! Debian packages: control data beside a tree, then `dpkg-deb --build`.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use super::{
    Release,
    portable::Needs,
    tree::{Tree, files},
};
use crate::{
    inner,
    layout::{Layout, beside},
};

/// Files of the package's directory in `packaging/deb` that go beside the control file, and their modes.
const BESIDE: [(&str, u32); 5] = [
    ("conffiles", 0o644),
    ("triggers", 0o644),
    ("postinst", 0o755),
    ("prerm", 0o755),
    ("postrm", 0o755),
];

/// Packs `tree`; the package appears complete or not at all.
pub fn pack(layout: &Layout, release: &Release, tree: &Tree) -> Result<PathBuf> {
    let from = layout.root.join("packaging/deb").join(tree.package);
    let to = tree.root.join("DEBIAN");
    let sums = sums(&tree.root)?;
    let (size, libc) = (size(&tree.root)?, libc(&tree.root)?);
    fs::create_dir(&to)?;
    fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
    let control = fs::read_to_string(from.join("control"))?
        .replace("@VERSION@", &release.version)
        .replace("@SIZE@", &size.to_string())
        .replace("@LIBC@", &libc);
    write(&to.join("control"), &control, 0o644)?;
    write(&to.join("md5sums"), &sums, 0o644)?;
    for (name, mode) in BESIDE {
        if let Ok(text) = fs::read_to_string(from.join(name)) {
            write(&to.join(name), &text, mode)?;
        }
    }
    let package = release
        .out
        .join(format!("{}_{}_amd64.deb", tree.package, release.version));
    let temporary = beside(&package);
    let mut command = inner::command("dpkg-deb");
    command.env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    command.args(if release.as_built {
        ["-Zgzip", "-z1"]
    } else {
        ["-Zxz", "-z6"]
    });
    command
        .args(["--root-owner-group", "--build"])
        .arg(&tree.root)
        .arg(&temporary);
    inner::quiet(&mut command)?;
    fs::rename(&temporary, &package)?;
    fs::remove_dir_all(to)?;
    Ok(package)
}

fn write(to: &Path, text: &str, mode: u32) -> Result<()> {
    fs::write(to, text)?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}

/// What `dpkg --verify` compares with.
fn sums(root: &Path) -> Result<String> {
    let mut command = inner::command("md5sum");
    command.current_dir(root);
    for file in files(root)? {
        command.arg(file.strip_prefix(root)?);
    }
    inner::quiet(&mut command)
}

/// Installed size in KiB, as Debian counts: each file in whole ones.
fn size(root: &Path) -> Result<u64> {
    let mut all = 0;
    for file in files(root)? {
        all += fs::metadata(file)?.len().div_ceil(1024);
    }
    Ok(all)
}

/// The dependency on the C library that the packed programs and libraries have.
fn libc(root: &Path) -> Result<String> {
    let mut all = Needs::default();
    for file in files(&root.join(super::tree::HOME))? {
        let needs = Needs::of(&file).with_context(|| format!("{} is no program", file.display()))?;
        all.glibc = all.glibc.max(needs.glibc);
        all.libraries.extend(needs.libraries);
    }
    let Some((major, minor)) = all.glibc else {
        bail!("{}: nothing there needs a C library", root.display());
    };
    let unwinder = if all.libraries.contains("libgcc_s.so.1") {
        ", libgcc-s1"
    } else {
        ""
    };
    Ok(format!("libc6 (>= {major}.{minor}){unwinder}"))
}
