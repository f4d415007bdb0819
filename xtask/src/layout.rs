//! Where things are: the repository, Cargo's target directory and the artefacts under `target/stint`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Absolute paths of one working copy.
pub struct Layout {
    /// The directory of the workspace's `Cargo.toml`.
    pub root: PathBuf,
    /// `$CARGO_TARGET_DIR`, else `target` in the root.
    pub target: PathBuf,
}

impl Layout {
    /// Reads what `cargo run` says about where xtask's manifest is.
    pub fn find() -> Result<Layout> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest
            .parent()
            .context("xtask's manifest has no parent directory")?
            .to_path_buf();
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
        Ok(Layout { root, target })
    }

    /// `target/stint`: everything runnable, in the form of an installed tree.
    pub fn artefacts(&self) -> PathBuf {
        self.target.join("stint")
    }

    /// The one binary.
    pub fn stint(&self) -> PathBuf {
        self.artefacts().join("bin/stint")
    }

    /// The archive that every library of the stand-in is linked from.
    pub fn archive(&self) -> PathBuf {
        self.target.join("release/libsimgpu.a")
    }

    /// Names that a library of the stand-in exports, `#` begins a comment.
    pub fn names(&self, list: &str) -> PathBuf {
        self.root.join("simgpu/symbols").join(list)
    }

    /// Scratch space that survives between runs: wheels, virtual environments, tools.
    pub fn cache(&self) -> PathBuf {
        self.target.join("clients-cache")
    }
}

/// `path` beside itself under a name nobody else writes, for write-then-rename.
pub fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}
