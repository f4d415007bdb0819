//! Whether this system can load a library of ours: each version of each library it asks for must be defined here. A program
//! that loads a copy which asks for more dies at start, so this is asked before anything is written. Next: `site.rs`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::from_utf8;

use object::LittleEndian;
use object::elf::{FileHeader64, VER_FLG_BASE};
use object::read::Result;
use object::read::elf::{FileHeader as _, SectionHeader as _};

const LE: LittleEndian = LittleEndian;

/// A version that a library of ours asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// The SONAME of the library that must define it.
    pub library: String,
    pub version: String,
}

/// Why a library of ours cannot be loaded.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProbeError {
    #[error("{ours} needs {library}, which is not on this system")]
    Absent { ours: String, library: String },
    #[error(
        "{ours} needs {version} of {library}, and {path} defines {newest}: this system's C library is too old for this build, \
         take the release's, which is made for older ones",
        path = path.display()
    )]
    TooOld {
        ours: String,
        library: String,
        version: String,
        path: PathBuf,
        newest: String,
    },
    #[error("{name} cannot be read: {error}")]
    Unreadable { name: String, error: String },
}

/// Checks that what `bytes`, the library `ours`, needs is defined by the libraries that `find` finds.
pub fn check(
    ours: &str,
    bytes: &[u8],
    find: impl Fn(&str) -> Option<(PathBuf, Vec<u8>)>,
) -> std::result::Result<(), ProbeError> {
    let unreadable = |name: &str, error: object::read::Error| ProbeError::Unreadable {
        name: name.to_owned(),
        error: error.to_string(),
    };
    let needs = needs(bytes).map_err(|error| unreadable(ours, error))?;
    let libraries: BTreeSet<&str> = needs.iter().map(|need| need.library.as_str()).collect();
    for library in libraries {
        let Some((path, content)) = find(library) else {
            return Err(ProbeError::Absent {
                ours: ours.to_owned(),
                library: library.to_owned(),
            });
        };
        let defined =
            definitions(&content).map_err(|error| unreadable(&path.display().to_string(), error))?;
        let mut wanted: Vec<&Need> = needs.iter().filter(|need| need.library == library).collect();
        wanted.sort_by_key(|need| number(&need.version));
        // The newest says most, when several are missing.
        if let Some(missing) = wanted.iter().rev().find(|need| !defined.contains(&need.version)) {
            let kind = missing.version.split('_').next().unwrap_or_default();
            let newest = defined
                .iter()
                .filter(|version| version.starts_with(kind))
                .max_by_key(|version| number(version));
            return Err(ProbeError::TooOld {
                ours: ours.to_owned(),
                library: library.to_owned(),
                version: missing.version.clone(),
                path,
                newest: newest.map_or_else(
                    || format!("no {kind} at all"),
                    |newest| format!("none above {newest}"),
                ),
            });
        }
    }
    Ok(())
}

/// `GLIBC_2.14` as numbers, so that 2.4 comes before 2.14. Names without numbers (`GLIBC_PRIVATE`) come first.
fn number(version: &str) -> Vec<u32> {
    let (_, digits) = version.split_once('_').unwrap_or_default();
    digits.split('.').map_while(|part| part.parse().ok()).collect()
}

/// Versions that a library asks for.
fn needs(bytes: &[u8]) -> Result<BTreeSet<Need>> {
    let header = FileHeader64::<LittleEndian>::parse(bytes)?;
    let sections = header.sections(LE, bytes)?;
    let mut needs = BTreeSet::new();
    let Some((mut files, link)) = sections.gnu_verneed(LE, bytes)? else {
        return Ok(needs);
    };
    let strings = sections.section(link)?.strings_of(bytes)?;
    while let Some((file, mut versions)) = files.next()? {
        let library = text(file.file(LE, strings)?);
        while let Some(version) = versions.next()? {
            needs.insert(Need {
                library: library.clone(),
                version: text(version.name(LE, strings)?),
            });
        }
    }
    Ok(needs)
}

/// Versions that a library defines.
fn definitions(bytes: &[u8]) -> Result<BTreeSet<String>> {
    let header = FileHeader64::<LittleEndian>::parse(bytes)?;
    let sections = header.sections(LE, bytes)?;
    let mut defined = BTreeSet::new();
    let Some((mut versions, link)) = sections.gnu_verdef(LE, bytes)? else {
        return Ok(defined);
    };
    let strings = sections.section(link)?.strings_of(bytes)?;
    while let Some((version, mut names)) = versions.next()? {
        let is_the_library_itself = version.vd_flags.get(LE) & VER_FLG_BASE != 0;
        if let (false, Some(name)) = (is_the_library_itself, names.next()?) {
            defined.insert(text(name.name(LE, strings)?));
        }
    }
    Ok(defined)
}

fn text(bytes: &[u8]) -> String {
    from_utf8(bytes).unwrap_or_default().to_owned()
}

trait Strings<'a> {
    fn strings_of(&self, bytes: &'a [u8]) -> Result<object::read::StringTable<'a>>;
}

impl<'a> Strings<'a> for object::elf::SectionHeader64<LittleEndian> {
    fn strings_of(&self, bytes: &'a [u8]) -> Result<object::read::StringTable<'a>> {
        Ok(self.strings(LE, bytes)?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(soname: &str) -> Option<(PathBuf, Vec<u8>)> {
        let path = driver::load::find(soname, None)?;
        let bytes = std::fs::read(&path).ok()?;
        Some((path, bytes))
    }

    #[test]
    fn what_runs_here_can_be_loaded_here() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(
            needs(&own)
                .unwrap()
                .iter()
                .any(|need| need.library == "libc.so.6")
        );
        assert_eq!(check("this test", &own, system), Ok(()));
    }

    #[test]
    fn a_missing_library_and_a_missing_version_are_said() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let error = check("this test", &own, |_| None).unwrap_err();
        assert!(matches!(error, ProbeError::Absent { .. }), "{error}");
        // Any library without the C library's versions will do in its place.
        let other = system("libgcc_s.so.1").unwrap();
        let error = check("this test", &own, |soname| {
            if soname == "libc.so.6" {
                Some(other.clone())
            } else {
                system(soname)
            }
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains("this test needs GLIBC_2."), "{error}");
        assert!(error.contains("no GLIBC at all"), "{error}");
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(number("GLIBC_2.4") < number("GLIBC_2.14"));
        assert!(number("GLIBC_PRIVATE") < number("GLIBC_2.0"));
    }
}
