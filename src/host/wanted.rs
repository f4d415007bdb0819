//! What host mode puts in front of this host's driver: for each library of ours a copy made for the driver's. A function of
//! our two libraries and the driver's files alone, so that a change of either is seen by making it again. Next: `tailor.rs`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use driver::elf::Object;

use super::HostError;
use super::{probe, tailor};

/// SONAME, the name it is also opened by, a name every such driver exports.
const CUDA: [&str; 3] = ["libcuda.so.1", "libcuda.so", "cuInit"];
const NVML: [&str; 3] = ["libnvidia-ml.so.1", "libnvidia-ml.so", "nvmlInit_v2"];

/// Our libraries as they are shipped.
pub struct Shipped {
    pub cuda: Vec<u8>,
    pub nvml: Vec<u8>,
}

/// One library to install.
pub struct Library {
    /// Name of the file, and its SONAME.
    pub name: &'static str,
    /// Name of a link to it.
    pub alias: &'static str,
    /// The driver's own file, by the path under which the loader finds it.
    pub real: PathBuf,
    pub content: Vec<u8>,
    /// Our names that this driver lacks.
    pub hidden: usize,
}

/// All libraries to install.
pub struct Wanted {
    pub libraries: Vec<Library>,
}

impl Wanted {
    /// For the system whose root is `/` now.
    pub fn here(shipped: &Shipped) -> Result<Wanted, HostError> {
        for (name, bytes) in [
            ("libstint.so", &shipped.cuda),
            ("libstint-nvml.so", &shipped.nvml),
        ] {
            probe::check(name, bytes, system_library)?;
        }
        let cuda = library(CUDA, &shipped.cuda)?.ok_or(HostError::NoDriver { soname: CUDA[0] })?;
        let nvml = library(NVML, &shipped.nvml)?; // not every driver comes with one
        Ok(Wanted {
            libraries: [Some(cuda), nvml].into_iter().flatten().collect(),
        })
    }

    /// A name for exactly this content: sixteen hexadecimal digits.
    pub fn generation(&self) -> String {
        let bytes = self.libraries.iter().flat_map(|library| &library.content);
        // FNV-1a: nobody chooses these bytes to collide.
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}

/// A library of the system whose root is `/`, as a program without further settings finds it.
fn system_library(soname: &str) -> Option<(PathBuf, Vec<u8>)> {
    let path = driver::load::find(soname, None)?;
    let bytes = std::fs::read(&path).ok()?;
    Some((path, bytes))
}

/// The copy for the driver's `soname`; `None` where the system has no such library.
fn library([soname, alias, proof]: [&'static str; 3], shipped: &[u8]) -> Result<Option<Library>, HostError> {
    let Some(real) = driver::load::find(soname, None) else {
        return Ok(None);
    };
    let object = Object::open(&real);
    let theirs: BTreeSet<&str> = object.iter().flat_map(Object::exports).collect();
    if !theirs.contains(proof) {
        return Err(HostError::Driver { path: real, proof });
    }
    let lacks = |name: &str| is_of_a_driver(name) && !theirs.contains(name);
    let hidden = tailor::exports(shipped)?
        .iter()
        .filter(|name| lacks(name))
        .count();
    let content = tailor::tailor(shipped, lacks, &real)?;
    Ok(Some(Library {
        name: soname,
        alias,
        real,
        content,
        hidden,
    }))
}

/// Our other exports, `dlsym` and `dlvsym`, are nothing a driver would have.
fn is_of_a_driver(name: &str) -> bool {
    let cuda = name
        .strip_prefix("cu")
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()));
    cuda || name.starts_with("nvml")
}

/// Reads our libraries from where they are installed.
pub fn read(cuda: &Path, nvml: &Path) -> Result<Shipped, HostError> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| HostError::io(path, error));
    Ok(Shipped {
        cuda: read(cuda)?,
        nvml: read(nvml)?,
    })
}
