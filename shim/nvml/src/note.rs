//! The ELF note by which `driver::load` and the launchers know a library of ours: it would otherwise be taken for the real
//! library, whose SONAME it has.
//!
//! Next: `exports.rs`.

/// An ELF note with a four-byte description.
#[repr(C, align(4))]
pub struct Note {
    name_size: u32,
    description_size: u32,
    kind: u32,
    name: [u8; 8],
    description: u32,
}

/// Owner "Stint", kind 1; the description is the version of the note.
#[used]
#[unsafe(link_section = ".note.stint")]
pub static NOTE: Note = Note {
    name_size: 6,
    description_size: 4,
    kind: 1,
    name: *b"Stint\0\0\0",
    description: 1,
};
