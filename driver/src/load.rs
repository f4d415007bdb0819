//! Finds the real driver: the file the dynamic loader would have opened had our library not stood in
//! front of it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::{elf, loader_cache};

/// glibc's built-in search path on Debian-like and Red-Hat-like systems.
const DEFAULTS: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// The first `soname` in the loader's own order (`LD_LIBRARY_PATH`, `/etc/ld.so.cache`, built-in
/// directories) that is a 64-bit library and not one of ours. `None` if there is none.
pub fn find(soname: &str, library_path: Option<&OsStr>) -> Option<PathBuf> {
    let named = library_path
        .into_iter()
        .flat_map(directories)
        .map(|dir| dir.join(soname));
    // Read only where no directory before it has the library.
    let cached = std::iter::once_with(|| {
        let cache = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
        loader_cache::lookup(&cache, soname)
    });
    let usual = DEFAULTS.iter().map(|dir| Path::new(dir).join(soname));
    named
        .chain(cached.flatten())
        .chain(usual)
        .find(|path| elf::is_ours(path) == Some(false))
}

/// The value of `LD_LIBRARY_PATH`; `None` where the loader ignores it too (`AT_SECURE`).
pub fn library_path() -> Option<OsString> {
    crate::environment::variable(c"LD_LIBRARY_PATH")
}

/// Names a driver file exports that the table lacks: what a launcher must add to the program's scope.
/// `None` if the file is no readable library.
pub fn newer_names(driver: &Path) -> Option<Vec<String>> {
    let object = elf::Object::open(driver)?;
    let is_function = |name: &&str| {
        let rest = name.strip_prefix("cu").unwrap_or_default();
        rest.starts_with(|c: char| c.is_ascii_uppercase())
    };
    let unknown = |name: &&str| crate::table::by_name(name).is_none();
    Some(
        object
            .exports()
            .into_iter()
            .filter(is_function)
            .filter(unknown)
            .map(str::to_owned)
            .collect(),
    )
}

/// The directories of a path list; an empty element means the current directory, as for the loader.
fn directories(list: &OsStr) -> impl Iterator<Item = PathBuf> {
    list.as_bytes().split(|&b| b == b':' || b == b';').map(|dir| {
        if dir.is_empty() {
            PathBuf::from(".")
        } else {
            PathBuf::from(OsStr::from_bytes(dir))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_named_by_the_user_comes_first() {
        let dir = std::env::temp_dir().join(format!("stint-load-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("libc.so.6");
        std::fs::copy(find("libc.so.6", None).unwrap(), &file).unwrap();
        assert_eq!(find("libc.so.6", Some(dir.as_os_str())), Some(file.clone()));
        std::fs::write(&file, "INPUT(libc.so)").unwrap();
        assert_ne!(find("libc.so.6", Some(dir.as_os_str())), Some(file));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn an_unknown_library_is_not_found() {
        assert_eq!(find("libnever-heard-of.so.9", None), None);
    }
}
