//! Which symbols this library shows: its own dynamic symbol table, read in memory.
//!
//! One archive is linked into libraries of several ages, each with its version script. What the script let
//! through is the profile: `cuGetProcAddress` answers nothing else, and `cuDriverGetVersion` is the
//! version of the newest of them, so that a driver is never younger than its symbols. A program that
//! holds the stand-in without exporting it (a test) has all of them.
//!
//! `dlsym` is no help here, since a preloaded shim answers it with its own functions.

use driver::table::{ALL_SYMBOLS, SymbolId};
use std::ffi::{CStr, c_char, c_void};
use std::sync::LazyLock;

/// The profile of this library.
pub struct Profile {
    shown: Vec<bool>,
    /// As `cuDriverGetVersion` says it.
    pub version: i32,
}

pub static PROFILE: LazyLock<Profile> = LazyLock::new(|| {
    let names = own_exports().unwrap_or_default();
    let mut shown: Vec<bool> = ALL_SYMBOLS
        .iter()
        .map(|id| names.contains(&id.symbol().name))
        .collect();
    if !shown.contains(&true) {
        shown.fill(true);
    }
    let versions = ALL_SYMBOLS
        .iter()
        .filter(|&&id| shown[id as usize])
        .map(|id| id.symbol().version);
    let version = versions.max().unwrap_or(0);
    Profile { shown, version }
});

impl Profile {
    pub fn shows(&self, symbol: SymbolId) -> bool {
        self.shown[symbol as usize]
    }
}

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct ElfSymbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

/// The functions the object that this code is part of defines for others; `None` without a GNU hash table.
fn own_exports() -> Option<std::collections::HashSet<&'static str>> {
    let (base, dynamic) = own_object()?;
    let (mut strings, mut symbols, mut hash) = (0u64, 0u64, 0u64);
    for i in 0.. {
        // SAFETY: the loader's dynamic section of a loaded object ends with a zero tag.
        let entry = unsafe { &*dynamic.add(i) };
        match entry.tag {
            0 => break,
            DT_STRTAB => strings = entry.value,
            DT_SYMTAB => symbols = entry.value,
            DT_GNU_HASH => hash = entry.value,
            _ => {}
        }
    }
    if strings == 0 || symbols == 0 || hash == 0 {
        return None;
    }
    // Some loaders relocate these in place, some do not.
    let place = |value: u64| if value < base { value + base } else { value };
    let (strings, symbols, hash) = (place(strings), place(symbols), place(hash));
    let count = symbol_count(hash as *const u32);
    let mut names = std::collections::HashSet::new();
    for i in 1..count {
        // SAFETY: `count` entries are what the hash table says the symbol table has.
        let symbol = unsafe { (symbols as *const ElfSymbol).add(i).read() };
        if symbol.section != 0 {
            // SAFETY: an offset into the object's string table, which is never unmapped (-z nodelete).
            let name = unsafe { CStr::from_ptr((strings as *const c_char).add(symbol.name as usize)) };
            names.extend(name.to_str());
        }
    }
    Some(names)
}

/// Number of entries of the symbol table behind a GNU hash table: the end of the last chain.
fn symbol_count(hash: *const u32) -> usize {
    // SAFETY: `hash` is the table of a loaded object: four words, bloom filter, buckets, chains.
    let word = |i: usize| unsafe { hash.add(i).read() };
    let (buckets, first, bloom) = (word(0) as usize, word(1) as usize, word(2) as usize);
    let bucket = 4 + bloom * 2;
    let chain = bucket + buckets;
    let Some(last) = (0..buckets)
        .map(|i| word(bucket + i) as usize)
        .max()
        .filter(|&last| last >= first)
    else {
        return first;
    };
    let mut at = last;
    while word(chain + at - first) & 1 == 0 {
        at += 1;
    }
    at + 1
}

/// Load address and dynamic section of the object that holds this code.
fn own_object() -> Option<(u64, *const Dynamic)> {
    struct Search {
        code: u64,
        found: Option<(u64, *const Dynamic)>,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> i32 {
        // SAFETY: called by dl_iterate_phdr below with its own structure and our Search.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        // SAFETY: the loader's program headers.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize) };
        let holds = headers.iter().any(|header| {
            let start = info.dlpi_addr + header.p_vaddr;
            header.p_type == libc::PT_LOAD && (start..start + header.p_memsz).contains(&search.code)
        });
        if !holds {
            return 0;
        }
        let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC);
        search.found = dynamic.map(|header| {
            (
                info.dlpi_addr,
                (info.dlpi_addr + header.p_vaddr) as *const Dynamic,
            )
        });
        1
    }
    let mut search = Search {
        code: own_object as *const c_void as u64,
        found: None,
    };
    // SAFETY: `visit` has the type of the callback and gets a pointer that outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_exports_nothing_has_every_symbol() {
        assert!(ALL_SYMBOLS.iter().all(|&id| PROFILE.shows(id)));
        assert_eq!(PROFILE.version, 13050);
    }
}
