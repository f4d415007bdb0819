//! Where the parts of Stint lie beside this executable: `bin/stint`, `lib/libstint.so`, `sim/…` under one root.

use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// The stand-in's default symbol profile.
const PROFILE: &str = "13";

/// A built or installed tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artefacts {
    root: PathBuf,
}

impl Artefacts {
    /// The tree this executable is part of: its own (`ROOT/bin/stint`), or, for one that Cargo left in
    /// `target/PROFILE/`, `target/stint` beside it.
    pub fn find() -> Result<Artefacts, Failure> {
        let own = std::env::current_exe()
            .map_err(|error| Failure::failed(format!("this executable cannot be found: {error}")))?;
        Artefacts::beside(&own).ok_or_else(|| {
            Failure::failed(format!(
                "{}: no libraries beside this executable: run `cargo xtask build`, and target/stint/bin/stint",
                own.display()
            ))
        })
    }

    fn beside(executable: &Path) -> Option<Artefacts> {
        executable
            .ancestors()
            .skip(2)
            .take(2)
            .flat_map(|dir| [dir.to_path_buf(), dir.join("stint")])
            .find(|root| root.join("lib/libstint.so").exists() || root.join("sim/bin/stint-sim").exists())
            .map(|root| Artefacts { root })
    }

    /// The tree below `root`, whatever it holds.
    pub fn at(root: PathBuf) -> Artefacts {
        Artefacts { root }
    }

    /// The preloaded shim.
    pub fn shim(&self) -> PathBuf {
        self.root.join("lib/libstint.so")
    }

    /// The NVML twin.
    pub fn nvml_twin(&self) -> PathBuf {
        self.root.join("lib/libstint-nvml.so")
    }

    /// The shim and the NVML twin as `LD_PRELOAD` is to name them: the loader's `$LIB` finds each program what it can load,
    /// and a loader that knows no `$LIB` (musl's) finds nothing and starts the program as it is.
    pub fn preloads(&self) -> Vec<PathBuf> {
        ["libstint.so", "libstint-nvml.so"]
            .map(|name| self.root.join("preload/$LIB").join(name))
            .into()
    }

    /// The same of the stand-in's `libcudart.so.{12,13}`.
    pub fn sim_preloads(&self) -> Vec<PathBuf> {
        ["libcudart.so.12", "libcudart.so.13"]
            .map(|name| self.root.join("sim/preload/$LIB").join(name))
            .into()
    }

    /// The stand-in's server.
    pub fn sim_server(&self) -> PathBuf {
        self.root.join("sim/bin/stint-sim")
    }

    /// Directory of the stand-in's `libcuda.so.1` and `libnvidia-ml.so.1`.
    pub fn sim_driver(&self) -> PathBuf {
        self.root.join("sim").join(PROFILE).join("lib")
    }

    /// Directory of the stand-in's `libcudart.so.{12,13}`.
    pub fn sim_runtime(&self) -> PathBuf {
        self.root.join("sim/lib")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_found_from_the_installed_and_from_cargos_executable() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        std::fs::create_dir_all(target.join("stint/lib")).unwrap();
        assert_eq!(
            Artefacts::beside(&target.join("debug/stint")),
            None,
            "nothing is built yet"
        );
        std::fs::write(target.join("stint/lib/libstint.so"), "").unwrap();
        for executable in ["stint/bin/stint", "debug/stint", "debug/deps/stint-1"] {
            let found = Artefacts::beside(&target.join(executable)).expect(executable);
            assert_eq!(found.shim(), target.join("stint/lib/libstint.so"));
        }
    }
}
