//! What the dynamic loader has loaded, read from its own list. It serves one purpose: to find libc's `dlsym` and `dlvsym`
//! although this library exports both names, so that every ordinary reference binds to ourselves.
//!
//! The list (`_r_debug`) is the loader's interface to debuggers. The first definition *after* ours in load order is taken:
//! that is libc's, or another interposer's that was put behind us and expects its turn.
//!
//! Next: `dl.rs`, the two exports.

use core::ffi::{CStr, c_char, c_void};
use core::ptr::{addr_of, null};

use driver::elf::NOTE_OWNER;

/// An entry of the loader's list, as `<link.h>` declares it. A `dlopen` handle of glibc is the address of one.
#[repr(C)]
pub struct LinkMap {
    address: usize,
    name: *const c_char,
    dynamic: *const Dynamic,
    next: *const LinkMap,
    previous: *const LinkMap,
}

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

#[repr(C)]
struct Debug {
    version: i32,
    map: *const LinkMap,
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: usize,
    size: usize,
}

unsafe extern "C" {
    static _r_debug: Debug;
    /// Where this library begins; the linker makes it.
    static __ehdr_start: u8;
}

const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
/// Symbol type of a function that returns the function to use.
const STT_GNU_IFUNC: u8 = 10;

/// The entry of this library (or of the program it is linked into).
pub fn own() -> Option<&'static LinkMap> {
    let start = addr_of!(__ehdr_start) as usize;
    // A program at a fixed address has 0 here, like every such program in front of the library.
    let linked_into = || objects().next().filter(|object| object.address == 0);
    objects()
        .find(|object| object.address == start)
        .or_else(linked_into)
}

/// The definition of `name` that a caller behind us would get: the first after ours in load order, else the first at all.
pub fn next_definition(name: &CStr) -> Option<*mut c_void> {
    let own = own()?;
    let behind = chain(own.next).find_map(|object| object.definition(name));
    behind.or_else(|| {
        chain(first())
            .filter(|object| !core::ptr::eq(*object, own))
            .find_map(|object| object.definition(name))
    })
}

fn first() -> *const LinkMap {
    // SAFETY: the loader defines `_r_debug` and fills it before any code of a program or library runs.
    unsafe { (*addr_of!(_r_debug)).map }
}

fn objects() -> impl Iterator<Item = &'static LinkMap> {
    chain(first())
}

fn chain(mut next: *const LinkMap) -> impl Iterator<Item = &'static LinkMap> {
    core::iter::from_fn(move || {
        // SAFETY: the loader's list ends with null; entries up to libc's belong to objects loaded at start, which stay.
        let object = unsafe { next.as_ref() }?;
        next = object.next;
        Some(object)
    })
}

impl LinkMap {
    /// Whether the object carries our note (`driver/src/elf.rs`). Only for objects that are loaded from their first byte on, as
    /// shared libraries are.
    pub fn carries_our_note(&self) -> bool {
        const PT_NOTE: u32 = 4;
        let start = self.address as *const u8;
        if start.is_null() {
            return false;
        }
        // SAFETY: the loader mapped the ELF header and the program headers with the first segment; a note segment lies at
        // its virtual address and is as long as it says.
        unsafe {
            let headers = start.add(start.add(32).cast::<u64>().read_unaligned() as usize);
            let size = start.add(54).cast::<u16>().read_unaligned() as usize;
            let count = start.add(56).cast::<u16>().read_unaligned() as usize;
            (0..count)
                .map(|index| headers.add(index * size))
                .filter(|header| header.cast::<u32>().read_unaligned() == PT_NOTE)
                .any(|header| {
                    let at = header.add(16).cast::<u64>().read_unaligned() as usize;
                    let length = header.add(40).cast::<u64>().read_unaligned() as usize;
                    let notes = core::slice::from_raw_parts(start.add(at), length);
                    notes.windows(NOTE_OWNER.len()).any(|bytes| bytes == NOTE_OWNER)
                })
        }
    }

    fn entry(&self, tag: i64) -> Option<usize> {
        let mut entry = self.dynamic;
        if entry.is_null() {
            return None;
        }
        loop {
            // SAFETY: a dynamic section is an array that ends with tag 0.
            let Dynamic { tag: found, value } = unsafe { &*entry };
            match *found {
                0 => return None,
                other if other == tag => return Some(*value),
                // SAFETY: not the last entry.
                _ => entry = unsafe { entry.add(1) },
            }
        }
    }

    /// The address of the default version of `name`, if this object defines it.
    fn definition(&self, name: &CStr) -> Option<*mut c_void> {
        let hash = self.entry(DT_GNU_HASH)?;
        if hash < self.address {
            return None; // The kernel's vDSO: its dynamic section is not relocated.
        }
        let symbols = self.entry(DT_SYMTAB)? as *const Symbol;
        let strings = self.entry(DT_STRTAB)? as *const c_char;
        let versions = self.entry(DT_VERSYM).map_or(null(), |v| v as *const u16);
        let wanted = gnu_hash(name);
        // SAFETY: the layout of DT_GNU_HASH: counts, Bloom filter of 64-bit words, buckets, chains. The loader walks the
        // same tables for every symbol it binds.
        unsafe {
            let words = hash as *const u32;
            let (buckets_len, offset, bloom) = (*words, *words.add(1), *words.add(2));
            let buckets = words.add(4 + bloom as usize * 2);
            let chains = buckets.add(buckets_len as usize);
            if buckets_len == 0 {
                return None;
            }
            let mut at = *buckets.add((wanted % buckets_len) as usize);
            if at < offset {
                return None;
            }
            loop {
                let link = *chains.add((at - offset) as usize);
                let symbol = &*symbols.add(at as usize);
                let hidden = !versions.is_null() && *versions.add(at as usize) & 0x8000 != 0;
                if link | 1 == wanted | 1
                    && symbol.section != 0
                    && !hidden
                    && CStr::from_ptr(strings.add(symbol.name as usize)) == name
                {
                    let found = (self.address + symbol.value) as *mut c_void;
                    if symbol.info & 0xf != STT_GNU_IFUNC {
                        return Some(found);
                    }
                    let resolve = core::mem::transmute::<*mut c_void, extern "C" fn() -> *mut c_void>(found);
                    return Some(resolve());
                }
                if link & 1 == 1 {
                    return None;
                }
                at += 1;
            }
        }
    }
}

fn gnu_hash(name: &CStr) -> u32 {
    name.to_bytes().iter().fold(5381, |hash: u32, byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libc_is_found_behind_us() {
        let found = next_definition(c"getppid").expect("libc defines it");
        // SAFETY: it is getppid.
        let getppid = unsafe { core::mem::transmute::<*mut c_void, extern "C" fn() -> i32>(found) };
        assert_eq!(getppid(), std::os::unix::process::parent_id() as i32);
    }

    #[test]
    fn the_default_version_is_taken() {
        // glibc keeps an older memcpy beside the default one, which is an indirect function.
        let found = next_definition(c"memcpy").expect("libc defines it");
        // SAFETY: it is memcpy.
        let memcpy = unsafe {
            core::mem::transmute::<*mut c_void, extern "C" fn(*mut u8, *const u8, usize) -> *mut u8>(found)
        };
        let (from, mut to) = ([1u8, 2, 3], [0u8; 3]);
        memcpy(to.as_mut_ptr(), from.as_ptr(), 3);
        assert_eq!(to, from);
    }

    #[test]
    fn nobody_defines_nonsense() {
        assert_eq!(next_definition(c"stint_never_heard_of"), None);
    }
}
