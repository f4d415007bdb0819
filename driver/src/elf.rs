//! As much of the ELF format as is needed to recognise our own libraries and to list what a driver
//! exports. Every offset is checked: files come from anywhere.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const PT_NOTE: u32 = 4;
/// Bytes of a program header.
const PROGRAM_HEADER: u16 = 56;
const SHT_DYNSYM: u32 = 11;

/// An ELF note with a four-byte description; [`crate::mark_as_ours`] puts one into a library.
#[repr(C, align(4))]
pub struct Note {
    name_size: u32,
    description_size: u32,
    kind: u32,
    name: [u8; 8],
    description: u32,
}

impl Note {
    /// Owner "Stint", kind 1; the description is the version of the note.
    pub const OURS: Note = Note {
        name_size: NOTE_OWNER.len() as u32,
        description_size: 4,
        kind: 1,
        name: *b"Stint\0\0\0",
        description: 1,
    };
}

/// Puts the note into the library it is expanded in, by which [`crate::load::find`] and the launchers know a library of
/// ours: it would otherwise be taken for the real one, whose SONAME it has.
#[macro_export]
macro_rules! mark_as_ours {
    () => {
        #[used]
        #[unsafe(link_section = ".note.stint")]
        static NOTE: $crate::elf::Note = $crate::elf::Note::OURS;
    };
}

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

    pub(crate) fn parse(bytes: Vec<u8>) -> Option<Object> {
        is_object(&bytes).then_some(Object { bytes })
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

/// Whether the library at `path` carries our note; `None` if it is no library that could be loaded here. Reads the headers
/// and the notes only: a driver is tens of megabytes, and every program that uses one waits for this.
pub fn is_ours(path: &Path) -> Option<bool> {
    let file = File::open(path).ok()?;
    carries_our_note(|at, length| {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    })
}

/// No note segment that matters is longer, in bytes.
const LONGEST_NOTES: u64 = 64 << 10;

pub(crate) fn carries_our_note(read: impl Fn(u64, usize) -> Option<Vec<u8>>) -> Option<bool> {
    let b = read(0, 64)?;
    if !is_object(&b) {
        return None;
    }
    let (start, size, count) = (u64_at(&b, 32)?, u16_at(&b, 54)?, u16_at(&b, 56)?);
    // The loader takes no other size, and its product with the count is memory asked for on a file's word.
    if size != PROGRAM_HEADER {
        return None;
    }
    let headers = read(start, size as usize * count as usize)?; // cut off: the loader refuses it as well
    let mut notes = headers
        .chunks_exact(size.into())
        .filter(|header| u32_at(header, 0) == Some(PT_NOTE))
        .filter_map(|header| {
            read(
                u64_at(header, 8)?,
                u64_at(header, 32)?.min(LONGEST_NOTES) as usize,
            )
        });
    Some(notes.any(|notes| owners(&notes).any(|owner| owner == NOTE_OWNER)))
}

/// A 64-bit little-endian object for x86-64.
fn is_object(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF\x02\x01") && u16_at(bytes, 18) == Some(62)
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

/// Reads a file held in memory.
#[cfg(test)]
pub(crate) fn reader(bytes: &[u8]) -> impl Fn(u64, usize) -> Option<Vec<u8>> {
    |at, length| {
        let at = usize::try_from(at).ok()?;
        bytes.get(at..at.checked_add(length)?).map(<[u8]>::to_vec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_binary_is_no_library_of_ours() {
        assert_eq!(is_ours(&std::env::current_exe().unwrap()), Some(false));
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
                assert!(object.exports().is_empty());
            }
            if cut >= 64 {
                assert_eq!(
                    carries_our_note(reader(&whole[..cut])),
                    (cut > 1000).then_some(false)
                );
            }
        }
        let mut wild = whole[..4096].to_vec();
        wild[32..48].fill(0xff);
        let object = Object::parse(wild.clone()).unwrap();
        assert!(object.exports().is_empty());
        assert_eq!(carries_our_note(reader(&wild)), None);
    }

    #[test]
    fn a_library_with_our_note_is_recognised_among_others() {
        let mut file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let (start, size) = (
            u64_at(&file, 32).unwrap() as usize,
            u16_at(&file, 54).unwrap() as usize,
        );
        let notes = (0..)
            .map(|i| start + i * size)
            .find(|at| u32_at(&file, *at) == Some(PT_NOTE))
            .unwrap();
        let at = u64_at(&file, notes + 8).unwrap() as usize;
        file[at..at + 4].copy_from_slice(&6u32.to_le_bytes());
        file[at + 12..at + 18].copy_from_slice(NOTE_OWNER);
        assert_eq!(carries_our_note(reader(&file)), Some(true));
        assert_eq!(carries_our_note(reader(b"#!/bin/sh")), None);
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
