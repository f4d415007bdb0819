//! Files that anybody may have put in the loader's way: whatever they hold, reading them ends, and nothing panics.

#[path = "../../tests/fuzz/engine.rs"]
mod engine;

use engine::fuzz;

use crate::{elf, loader_cache};

/// A library small enough to be mutated often: the headers, notes and symbols of one function.
fn small_library() -> Vec<u8> {
    let mut file = vec![0u8; 0x200];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01");
    put(18, &62u16.to_le_bytes());
    // One program header, of notes; two section headers, of symbols and of their names.
    put(32, &0x40u64.to_le_bytes());
    put(40, &0x100u64.to_le_bytes());
    put(54, &56u16.to_le_bytes());
    put(56, &1u16.to_le_bytes());
    put(58, &64u16.to_le_bytes());
    put(60, &2u16.to_le_bytes());
    put(0x40, &4u32.to_le_bytes());
    put(0x48, &0x80u64.to_le_bytes());
    put(0x60, &24u64.to_le_bytes());
    put(0x80, &[6, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0]);
    put(0x8c, elf::NOTE_OWNER);
    for (section, (kind, from, length, link)) in [(11u32, 0xa0u64, 48u64, 1u32), (3, 0xd0, 16, 0)]
        .into_iter()
        .enumerate()
    {
        let at = 0x100 + 64 * section;
        put(at + 4, &kind.to_le_bytes());
        put(at + 24, &from.to_le_bytes());
        put(at + 32, &length.to_le_bytes());
        put(at + 40, &link.to_le_bytes());
    }
    put(0xb8, &1u32.to_le_bytes());
    put(0xbe, &7u16.to_le_bytes());
    put(0xd1, b"cuInit");
    file
}

#[test]
fn no_file_is_taken_for_more_than_it_is() {
    let library = small_library();
    let whole = elf::Object::parse(library.clone()).expect("a library");
    assert_eq!(whole.exports(), ["cuInit"]);
    assert_eq!(elf::carries_our_note(elf::reader(&library)), Some(true));
    fuzz("elf", vec![library], |bytes| {
        let _ = elf::carries_our_note(elf::reader(bytes));
        if let Some(object) = elf::Object::parse(bytes.to_vec()) {
            assert!(object.exports().iter().all(|name| !name.is_empty()));
        }
    });
}

#[test]
fn no_cache_of_the_loader_leads_astray() {
    let cache = loader_cache::example();
    fuzz("loader-cache", vec![cache], |bytes| {
        for path in loader_cache::lookup(bytes, "libcuda.so.1") {
            assert!(path.as_os_str().len() <= bytes.len());
        }
    });
}
