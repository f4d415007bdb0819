//! One archive that runs where it is unpacked, for systems without `dpkg`, and the checksums of everything made.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};

use super::{
    Release,
    tree::{HOME, Tree},
};
use crate::{inner, layout::beside};

/// Directories of a tree, and where they go below the archive's one directory.
const PARTS: [(&str, &str); 6] = [
    (HOME, ""),
    ("etc", "etc"),
    ("usr/lib/systemd", "systemd"),
    ("usr/lib/sysusers.d", "sysusers.d"),
    ("usr/lib/tmpfiles.d", "tmpfiles.d"),
    ("usr/share", "share"),
];

/// Packs all trees into one archive, and sums up the release's files.
pub fn pack(release: &Release, trees: &[Tree]) -> Result<[PathBuf; 2]> {
    let name = format!("stint-{}-x86_64-linux", release.version);
    let archive = release.out.join(format!("{name}.tar.gz"));
    let temporary = beside(&archive);
    let all = trees
        .first()
        .context("a release has packages")?
        .root
        .with_file_name(&name);
    fs::create_dir_all(&all)?;
    for tree in trees {
        for (from, to) in PARTS {
            let from = tree.root.join(from);
            if from.is_dir() {
                let to = all.join(to);
                fs::create_dir_all(&to)?;
                inner::quiet(inner::command("cp").arg("-a").arg(from.join(".")).arg(to))?;
            }
        }
    }
    let mut command = inner::command("tar");
    command.current_dir(all.parent().context("the archive's tree lies in a directory")?);
    command
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .arg(format!("--mtime=@{}", release.epoch))
        .args(["-I", "gzip -9 -n", "-cf"])
        .arg(&temporary)
        .arg(&name);
    inner::quiet(&mut command)?;
    fs::rename(&temporary, &archive)?;

    let mut made: Vec<String> = trees
        .iter()
        .map(|tree| format!("{}_{}_amd64.deb", tree.package, release.version))
        .collect();
    made.push(format!("{name}.tar.gz"));
    let sums = release.out.join("SHA256SUMS");
    let text = inner::quiet(inner::command("sha256sum").args(made).current_dir(&release.out))?;
    fs::write(&sums, text)?;
    Ok([archive, sums])
}
