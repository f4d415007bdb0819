//! What `stint run` changes in its command's environment: the shim in front, the node's run directory, and with the
//! stand-in its libraries. Everything of the user's stays, behind ours.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::artefacts::Artefacts;
use crate::exit::Failure;

/// What goes in front of the command.
pub struct Front<'a> {
    pub artefacts: &'a Artefacts,
    /// The stand-in's libraries as well.
    pub sim: bool,
    pub run_dir: &'a Path,
    /// The real driver, if it has to be in the command's scope behind the shim.
    pub newer_driver: Option<PathBuf>,
    /// Devices the command sees.
    pub gpus: Option<&'a str>,
}

/// The variables as the user has them.
#[derive(Debug, Default)]
pub struct Own {
    pub preload: Option<OsString>,
    pub library_path: Option<OsString>,
}

impl Own {
    pub fn read() -> Own {
        Own {
            preload: std::env::var_os("LD_PRELOAD"),
            library_path: std::env::var_os("LD_LIBRARY_PATH"),
        }
    }
}

impl Front<'_> {
    /// The variables to set. An error where a path cannot be said in one of them.
    pub fn variables(&self, own: &Own) -> Result<Vec<(&'static str, OsString)>, Failure> {
        let mut preload = self.artefacts.preloads();
        preload.extend(self.newer_driver.clone());
        let mut variables = vec![("STINT_RUN_DIR", self.run_dir.into())];
        if self.sim {
            // Preloaded, since a program's own RPATH would find NVIDIA's.
            let runtime = self.artefacts.sim_runtime();
            preload.extend(self.artefacts.sim_preloads());
            let directories = [self.artefacts.sim_driver(), runtime];
            variables.push((
                "LD_LIBRARY_PATH",
                in_front(
                    &directories,
                    own.library_path.as_deref(),
                    b":;",
                    "LD_LIBRARY_PATH",
                )?,
            ));
        }
        variables.push((
            "LD_PRELOAD",
            in_front(&preload, own.preload.as_deref(), b": ", "LD_PRELOAD")?,
        ));
        if let Some(gpus) = self.gpus {
            variables.push(("CUDA_VISIBLE_DEVICES", gpus.into()));
        }
        Ok(variables)
    }
}

/// `ours`, then what `own` has besides. `separators` are what the loader takes for one; the first is written.
fn in_front(
    ours: &[PathBuf],
    own: Option<&OsStr>,
    separators: &[u8],
    variable: &str,
) -> Result<OsString, Failure> {
    let mut list = OsString::new();
    let mut add = |path: &OsStr| {
        if !list.is_empty() {
            list.push(OsStr::from_bytes(&separators[..1]));
        }
        list.push(path);
    };
    for path in ours {
        if path
            .as_os_str()
            .as_bytes()
            .iter()
            .any(|byte| separators.contains(byte))
        {
            return Err(Failure::failed(format!(
                "{}: a path with `:`, `;` or a blank cannot stand in {variable}: put Stint elsewhere",
                path.display()
            )));
        }
        add(path.as_os_str());
    }
    let own = own.map(OsStr::as_bytes).unwrap_or_default();
    // An empty element of LD_LIBRARY_PATH is the current directory, and stays; a list without elements has none.
    let keeps_empty = separators.contains(&b';') && !own.is_empty();
    own.split(|byte| separators.contains(byte))
        .map(OsStr::from_bytes)
        .filter(|element| keeps_empty || !element.is_empty())
        .filter(|element| !ours.iter().any(|path| path.as_os_str() == *element)) // `stint run` inside `stint run`
        .for_each(add);
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(sim: bool, newer: bool, own: &Own) -> Result<Vec<(&'static str, OsString)>, Failure> {
        Front {
            artefacts: &Artefacts::at("/s".into()),
            sim,
            run_dir: Path::new("/r"),
            newer_driver: newer.then(|| "/d/libcuda.so.1".into()),
            gpus: None,
        }
        .variables(own)
    }

    fn of<'a>(variables: &'a [(&str, OsString)], name: &str) -> Option<&'a str> {
        variables.iter().find(|variable| variable.0 == name)?.1.to_str()
    }

    #[test]
    fn the_users_own_libraries_come_after_ours() {
        let own = Own {
            preload: Some("/u/a.so  /u/b.so".into()),
            library_path: Some("/u/lib:".into()),
        };
        let set = variables(true, true, &own).unwrap();
        assert_eq!(
            of(&set, "LD_PRELOAD"),
            Some(
                "/s/preload/$LIB/libstint.so:/s/preload/$LIB/libstint-nvml.so:/d/libcuda.so.1:\
                 /s/sim/preload/$LIB/libcudart.so.12:/s/sim/preload/$LIB/libcudart.so.13:/u/a.so:/u/b.so"
            )
        );
        assert_eq!(
            of(&set, "LD_LIBRARY_PATH"),
            Some("/s/sim/13/lib:/s/sim/lib:/u/lib:")
        );
        assert_eq!(of(&set, "STINT_RUN_DIR"), Some("/r"));
    }

    #[test]
    fn on_a_gpu_only_the_shim_comes_in() {
        let set = variables(false, false, &Own::default()).unwrap();
        assert_eq!(
            of(&set, "LD_PRELOAD"),
            Some("/s/preload/$LIB/libstint.so:/s/preload/$LIB/libstint-nvml.so")
        );
        assert_eq!(of(&set, "LD_LIBRARY_PATH"), None);
        assert_eq!(of(&set, "CUDA_VISIBLE_DEVICES"), None);
    }

    #[test]
    fn a_run_inside_a_run_changes_nothing() {
        let outer = variables(
            true,
            false,
            &Own {
                preload: Some("/u/a.so".into()),
                library_path: None,
            },
        )
        .unwrap();
        let own = Own {
            preload: of(&outer, "LD_PRELOAD").map(Into::into),
            library_path: of(&outer, "LD_LIBRARY_PATH").map(Into::into),
        };
        assert_eq!(variables(true, false, &own).unwrap(), outer);
    }

    #[test]
    fn a_path_the_loader_would_split_is_refused() {
        let artefacts = Artefacts::at("/my files".into());
        let front = Front {
            artefacts: &artefacts,
            sim: false,
            run_dir: Path::new("/r"),
            newer_driver: None,
            gpus: None,
        };
        assert!(
            front
                .variables(&Own::default())
                .unwrap_err()
                .message
                .contains("/my files")
        );
    }
}
