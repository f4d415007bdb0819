//! Throw-away Python environments with pinned packages, kept in the target directory from one run to the next.

use std::{fs, path::PathBuf, process::Command, sync::Mutex};

use super::{Client, source};
use crate::harness::{outcome::run, wheels::cache};

/// A set of pinned packages.
#[derive(Clone, Copy, Debug)]
pub struct Environment {
    name: &'static str,
    packages: &'static [&'static str],
}

/// Clients of CUDA 12.9.
pub const CUDA_12: Environment = Environment {
    name: "cuda12",
    packages: &["cuda-bindings==12.9.10"],
};

/// Clients of CUDA 13, tools that read NVML, and the compiler.
pub const CUDA_13: Environment = Environment {
    name: "cuda13",
    packages: &[
        "cuda-bindings==13.5.0",
        "cuda-core==1.2.2",
        "numba-cuda[cu13]==0.30.4",
        "numba==0.68.1",
        "numpy==2.4.6",
        "nvidia-cuda-nvcc==13.5.37",
        "nvidia-ml-py==13.615.71",
        "gpustat==1.1.1",
        "nvitop==1.7.2",
    ],
};

/// PyTorch and Triton: gigabytes, only with `--clients all`.
pub const TORCH: Environment = Environment {
    name: "torch",
    packages: &["torch==2.15.0", "numpy==2.4.6"],
};

impl Environment {
    /// Its directory, made when it is not there or holds other packages. The error says why it is not to be had.
    pub fn directory(self) -> Result<PathBuf, String> {
        static MAKING: Mutex<()> = Mutex::new(());
        let _one_at_a_time = MAKING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let home = cache().join(self.name);
        let (complete, wanted) = (home.join("complete"), self.packages.join("\n"));
        if fs::read_to_string(&complete).is_ok_and(|found| found == wanted) {
            return Ok(home);
        }
        let _other_packages = fs::remove_dir_all(&home);
        if Command::new("python3").arg("--version").output().is_err() {
            return Err("needs python3".to_owned());
        }
        step(Command::new("python3").args(["-m", "venv"]).arg(&home))
            .map_err(|why| format!("needs the package python3-venv ({why})"))?;
        let mut pip = Command::new(home.join("bin/pip"));
        pip.args([
            "--disable-pip-version-check",
            "install",
            "--quiet",
            "--only-binary",
            ":all:",
            // Published as source alone.
            "--no-binary",
            "gpustat",
        ])
        .args(self.packages);
        step(pip.env_remove("PYTHONPATH")).map_err(|why| format!("pip could not install it: {why}"))?;
        fs::write(&complete, wanted).map_err(|error| error.to_string())?;
        Ok(home)
    }

    /// The program `name` of the environment.
    pub fn program(self, name: &str) -> Result<PathBuf, String> {
        Ok(self.directory()?.join("bin").join(name))
    }

    /// The script `name` of ours under the environment's Python.
    pub fn script(self, name: &str) -> Result<Client, String> {
        Ok(Client {
            words: vec![self.program("python")?, source(name)],
            variables: vec![("PYTHONDONTWRITEBYTECODE", "1".into())],
        })
    }

    /// Where its packages lie.
    pub fn packages(self) -> Result<PathBuf, String> {
        let lib = self.directory()?.join("lib");
        let mut versions = fs::read_dir(&lib).map_err(|error| error.to_string())?.flatten();
        let version = versions
            .next()
            .ok_or_else(|| format!("{} is empty", lib.display()))?;
        Ok(version.path().join("site-packages"))
    }
}

/// Runs one step; the last line it complained with is the error.
fn step(command: &mut Command) -> Result<(), String> {
    let outcome = run(command);
    let complaint = || {
        outcome
            .stderr
            .lines()
            .last()
            .unwrap_or("no reason given")
            .to_owned()
    };
    if outcome.code == 0 {
        Ok(())
    } else {
        Err(complaint())
    }
}
