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

const DT_NEEDED: i64 = 1;
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

/// The definition of `name` that a caller behind us would get, and whose it is: the first after ours in load order, else the
/// first at all.
pub fn next_definition(name: &CStr) -> Option<(&'static LinkMap, *mut c_void)> {
    let own = own()?;
    let of = |object: &'static LinkMap| Some((object, object.definition(name)?));
    chain(own.next).find_map(of).or_else(|| {
        chain(first())
            .filter(|object| !core::ptr::eq(*object, own))
            .find_map(of)
    })
}

/// The object behind a handle of `dlopen`'s.
///
/// # Safety
/// The handle is one, and stays open.
pub unsafe fn of(handle: *mut c_void) -> &'static LinkMap {
    // SAFETY: a handle of glibc is the address of the object's link map.
    unsafe { &*handle.cast::<LinkMap>() }
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
        self.entries(tag).next()
    }

    /// The values of all entries of the dynamic section with this tag.
    fn entries(&self, tag: i64) -> impl Iterator<Item = usize> {
        let mut next = self.dynamic;
        let all = core::iter::from_fn(move || {
            // SAFETY: null, or within a dynamic section, an array that ends with tag 0.
            let entry = unsafe { next.as_ref() }.filter(|entry| entry.tag != 0)?;
            // SAFETY: not the last entry.
            next = unsafe { next.add(1) };
            Some(entry)
        });
        all.filter(move |entry| entry.tag == tag).map(|entry| entry.value)
    }

    /// What this object defines; `None` where it has no table that we can read.
    pub fn definitions(&self) -> Option<Definitions> {
        let hash = self.entry(DT_GNU_HASH)?;
        if hash < self.address {
            return None; // The kernel's vDSO: its dynamic section is not relocated.
        }
        let words = hash as *const u32;
        // SAFETY: the layout of DT_GNU_HASH: counts, Bloom filter of 64-bit words, buckets, chains.
        unsafe {
            let (buckets_len, offset, bloom) = (*words, *words.add(1), *words.add(2));
            let buckets = words.add(4 + bloom as usize * 2);
            Some(Definitions {
                address: self.address,
                symbols: self.entry(DT_SYMTAB)? as *const Symbol,
                strings: self.entry(DT_STRTAB)? as *const c_char,
                versions: self.entry(DT_VERSYM).map_or(null(), |v| v as *const u16),
                buckets,
                buckets_len,
                chains: buckets.add(buckets_len as usize),
                offset,
            })
        }
    }

    /// Whether `dlsym` could find more under this object's handle than the object itself defines: it also searches what
    /// the object needs. The parts of glibc define nothing of anybody else's.
    pub fn leans_on_others(&self) -> bool {
        const PARTS: [&[u8]; 8] = [
            b"libc.so",
            b"libm.so",
            b"libdl.so",
            b"libpthread.so",
            b"librt.so",
            b"libgcc_s.so",
            b"libutil.so",
            b"ld-linux",
        ];
        let Some(strings) = self.entry(DT_STRTAB) else {
            return true;
        };
        let is_part = |name: &[u8]| PARTS.iter().any(|part| name.starts_with(part));
        self.entries(DT_NEEDED).any(|name| {
            // SAFETY: an offset into the string table of a loaded object.
            let name = unsafe { CStr::from_ptr((strings as *const c_char).add(name)) };
            !is_part(name.to_bytes())
        })
    }

    fn definition(&self, name: &CStr) -> Option<*mut c_void> {
        self.definitions()?.find(name)
    }

    /// Whether this is the C library, or the part of older ones that has `dlsym`.
    pub fn is_libc(&self) -> bool {
        if self.name.is_null() {
            return false;
        }
        // SAFETY: the loader's own text, which lives as long as the object.
        let path = unsafe { CStr::from_ptr(self.name) }.to_bytes();
        let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        matches!(file, b"libc.so.6" | b"libdl.so.2")
    }
}

/// The symbols an object defines, by its hash table.
pub struct Definitions {
    address: usize,
    symbols: *const Symbol,
    strings: *const c_char,
    versions: *const u16,
    buckets: *const u32,
    buckets_len: u32,
    chains: *const u32,
    offset: u32,
}

impl Definitions {
    /// The address of the default version of `name`, if the object defines it.
    pub fn find(&self, name: &CStr) -> Option<*mut c_void> {
        if self.buckets_len == 0 {
            return None;
        }
        let wanted = gnu_hash(name);
        // SAFETY: the tables of a loaded object; the loader walks the same ones for every symbol it binds.
        unsafe {
            let mut at = *self.buckets.add((wanted % self.buckets_len) as usize);
            if at < self.offset {
                return None;
            }
            loop {
                let link = *self.chains.add((at - self.offset) as usize);
                let symbol = &*self.symbols.add(at as usize);
                let hidden = !self.versions.is_null() && *self.versions.add(at as usize) & 0x8000 != 0;
                if link | 1 == wanted | 1
                    && symbol.section != 0
                    && !hidden
                    && CStr::from_ptr(self.strings.add(symbol.name as usize)) == name
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
        let found = next_definition(c"getppid").expect("libc defines it").1;
        // SAFETY: it is getppid.
        let getppid = unsafe { core::mem::transmute::<*mut c_void, extern "C" fn() -> i32>(found) };
        assert_eq!(getppid(), std::os::unix::process::parent_id() as i32);
    }

    #[test]
    fn the_default_version_is_taken() {
        // glibc keeps an older memcpy beside the default one, which is an indirect function.
        let found = next_definition(c"memcpy").expect("libc defines it").1;
        // SAFETY: it is memcpy.
        let memcpy = unsafe {
            core::mem::transmute::<*mut c_void, extern "C" fn(*mut u8, *const u8, usize) -> *mut u8>(found)
        };
        let (from, mut to) = ([1u8, 2, 3], [0u8; 3]);
        memcpy(to.as_mut_ptr(), from.as_ptr(), 3);
        assert_eq!(to, from);
    }

    #[test]
    fn libc_is_libc_and_leans_on_nobody() {
        let (libc, _) = next_definition(c"getppid").expect("libc defines it");
        assert!(libc.is_libc() && !libc.leans_on_others());
        assert!(!own().unwrap().is_libc());
    }

    #[test]
    fn nobody_defines_nonsense() {
        assert!(next_definition(c"stint_never_heard_of").is_none());
    }
}
