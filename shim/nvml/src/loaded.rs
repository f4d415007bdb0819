//! The functions a loaded library defines, read from its own tables.
//!
//! `dlsym` is no help here: where the shim is preloaded too, it answers NVML's names with ours.

use core::ffi::{CStr, c_char, c_void};

/// An entry of the loader's list, as `<link.h>` declares it. A `dlopen` handle of glibc is the address of one.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const Dynamic,
}

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: usize,
}

const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
/// Symbol type of a function.
const FUNCTION: u8 = 2;

/// Names and addresses of the functions that the library of `handle` defines.
///
/// # Safety
/// A handle of `dlopen`'s that is not closed while the names are used.
pub unsafe fn functions(handle: *mut c_void) -> Vec<(&'static [u8], *mut c_void)> {
    // SAFETY: as the caller says.
    let map = unsafe { &*handle.cast::<LinkMap>() };
    let (mut strings, mut symbols, mut hash, mut gnu_hash) = (0, 0, 0, 0);
    for i in 0.. {
        // SAFETY: the dynamic section of a loaded object ends with a zero tag.
        let entry = unsafe { &*map.dynamic.add(i) };
        match entry.tag {
            0 => break,
            DT_HASH => hash = entry.value,
            DT_STRTAB => strings = entry.value,
            DT_SYMTAB => symbols = entry.value,
            DT_GNU_HASH => gnu_hash = entry.value,
            _ => {}
        }
    }
    // Some loaders relocate addresses in the section, some do not.
    let place = |value: usize| if value < map.base { value + map.base } else { value };
    let count = match (hash, gnu_hash) {
        (0, 0) => 0,
        // SAFETY: a hash table's second word is the number of symbols.
        (0, gnu) => unsafe { symbol_count(place(gnu) as *const u32) },
        // SAFETY: as above.
        (plain, _) => unsafe { (place(plain) as *const u32).add(1).read() as usize },
    };
    let mut found = Vec::new();
    for i in 1..count {
        // SAFETY: the symbol table has as many entries as the hash table says.
        let symbol = unsafe { (place(symbols) as *const Symbol).add(i).read() };
        if symbol.section != 0 && symbol.info & 0xf == FUNCTION {
            // SAFETY: an offset into the string table of a library that stays loaded.
            let name = unsafe { CStr::from_ptr((place(strings) as *const c_char).add(symbol.name as usize)) };
            found.push((name.to_bytes(), (map.base + symbol.value) as *mut c_void));
        }
    }
    found
}

/// Number of entries of the symbol table behind a GNU hash table: the end of the last chain.
///
/// # Safety
/// The GNU hash table of a loaded object.
unsafe fn symbol_count(hash: *const u32) -> usize {
    // SAFETY: four words, the bloom filter, buckets, chains: all within the table.
    let word = |i: usize| unsafe { hash.add(i).read() };
    let (buckets, first, bloom) = (word(0) as usize, word(1) as usize, word(2) as usize);
    let bucket = 4 + bloom * 2;
    let chain = bucket + buckets;
    let last = (0..buckets).map(|i| word(bucket + i) as usize).max().unwrap_or(0);
    if last < first {
        return first;
    }
    let mut at = last;
    while word(chain + at - first) & 1 == 0 {
        at += 1;
    }
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libc_defines_is_found_where_it_is() {
        // SAFETY: libc is loaded already and stays so.
        let (functions, puts) = unsafe {
            let libc = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            assert!(!libc.is_null());
            (functions(libc), libc::dlsym(libc, c"puts".as_ptr()))
        };
        assert!(functions.contains(&(b"puts".as_slice(), puts)));
        assert!(functions.len() > 1000, "{}", functions.len());
    }
}
