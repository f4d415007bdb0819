//! As much of the ELF format as is needed to recognise our own libraries and to list what a driver
//! exports. Every offset is checked: files come from anywhere.

use std::path::Path;

const PT_NOTE: u32 = 4;
const SHT_DYNSYM: u32 = 11;

/// Owner of the ELF note every library of ours carries.
pub const NOTE_OWNER: &[u8] = b"Stint\0";

/// A 64-bit little-endian x86-64 object.
pub struct Object {
    bytes: Vec<u8>,
}

impl Object {
    /// `None` if the file cannot be read or is no such object.
    pub fn open(path: &Path) -> Option<Object> {
        Object::parse(std::fs::read(path).ok()?)
    }

    fn parse(bytes: Vec<u8>) -> Option<Object> {
        let ok = bytes.starts_with(b"\x7fELF\x02\x01") && u16_at(&bytes, 18)? == 62;
        ok.then_some(Object { bytes })
    }

    /// True for a library that carries our note.
    pub fn is_ours(&self) -> bool {
        self.notes().unwrap_or(false)
    }

    fn notes(&self) -> Option<bool> {
        let b = &self.bytes;
        let (start, size, count) = (u64_at(b, 32)?, u16_at(b, 54)? as u64, u16_at(b, 56)? as u64);
        for i in 0..count {
            let header = usize::try_from(start.checked_add(i * size)?).ok()?;
            if u32_at(b, header)? != PT_NOTE {
                continue;
            }
            let from = usize::try_from(u64_at(b, header.saturating_add(8))?).ok()?;
            let len = usize::try_from(u64_at(b, header.saturating_add(32))?).ok()?;
            if owners(b.get(from..from.checked_add(len)?)?).any(|owner| owner == NOTE_OWNER) {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Names of the functions and objects the library defines for others, unsorted.
    pub fn exports(&self) -> Vec<&str> {
        self.dynamic_symbols().unwrap_or_default()
    }

    fn dynamic_symbols(&self) -> Option<Vec<&str>> {
        let b = &self.bytes;
        let (start, size, count) = (u64_at(b, 40)?, u16_at(b, 58)? as u64, u16_at(b, 60)? as u64);
        let section = |i: u64| usize::try_from(start.checked_add(i.checked_mul(size)?)?).ok();
        let range = |at: usize| -> Option<&[u8]> {
            let from = usize::try_from(u64_at(b, at.saturating_add(24))?).ok()?;
            let len = usize::try_from(u64_at(b, at.saturating_add(32))?).ok()?;
            b.get(from..from.checked_add(len)?)
        };
        let at = (0..count)
            .filter_map(section)
            .find(|&at| u32_at(b, at.saturating_add(4)) == Some(SHT_DYNSYM))?;
        let symbols = range(at)?;
        let strings = range(section(u32_at(b, at.saturating_add(40))? as u64)?)?;
        let defined = symbols.chunks_exact(24).filter(|s| u16_at(s, 6) != Some(0));
        Some(
            defined
                .filter_map(|s| {
                    let name = strings.get(u32_at(s, 0)? as usize..)?;
                    let end = name.iter().position(|&c| c == 0)?;
                    std::str::from_utf8(&name[..end])
                        .ok()
                        .filter(|name| !name.is_empty())
                })
                .collect(),
        )
    }
}

/// The owners named in a note segment.
fn owners(mut segment: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (name, desc) = (u32_at(segment, 0)? as usize, u32_at(segment, 4)? as usize);
        let owner = segment.get(12..12usize.checked_add(name)?)?;
        let next = 12usize
            .checked_add(name.next_multiple_of(4))?
            .checked_add(desc.next_multiple_of(4))?;
        segment = segment.get(next..).unwrap_or_default();
        Some(owner)
    })
}

fn u16_at(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(
        b.get(at..at.checked_add(2)?)?.try_into().ok()?,
    ))
}

fn u32_at(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(
        b.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

fn u64_at(b: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(
        b.get(at..at.checked_add(8)?)?.try_into().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_binary_is_no_library_of_ours() {
        let object = Object::open(&std::env::current_exe().unwrap()).unwrap();
        assert!(!object.is_ours());
    }

    #[test]
    fn libc_exports_what_everybody_uses() {
        let path = crate::load::find("libc.so.6", None).expect("a C library");
        let object = Object::open(&path).unwrap();
        assert!(object.exports().contains(&"malloc"));
    }

    #[test]
    fn damaged_files_are_refused_or_empty() {
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(Object::parse(b"\x7fELF\x02\x01".to_vec()).is_none());
        for cut in [19, 64, 100, 4096] {
            if let Some(object) = Object::parse(whole[..cut].to_vec()) {
                assert!(!object.is_ours());
                assert!(object.exports().is_empty());
            }
        }
        let mut wild = whole[..4096].to_vec();
        wild[32..48].fill(0xff);
        let object = Object::parse(wild).unwrap();
        assert!(!object.is_ours() && object.exports().is_empty());
    }

    #[test]
    fn a_note_names_its_owner() {
        let mut note = Vec::new();
        for word in [6u32, 4, 1] {
            note.extend(word.to_le_bytes());
        }
        note.extend(b"Stint\0\0\0\x01\0\0\0");
        assert_eq!(owners(&note).collect::<Vec<_>>(), [NOTE_OWNER]);
        note.truncate(9);
        assert_eq!(owners(&note).count(), 0);
    }
}
