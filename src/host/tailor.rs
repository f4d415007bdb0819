//! A library of ours cut to the measure of one driver: names the driver lacks cannot be found in it, names only the driver
//! has are found through it, because the real library is among those it needs, by absolute path.
//!
//! Nothing that is there moves: symbols and relocations are changed where they are; what must grow (dynamic section, its
//! strings, program headers) is written again in one more segment behind the file's end. So any linker's output will do,
//! and debug information stays true. Next: `probe.rs`, whether this system can load it at all.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use object::LittleEndian;
use object::elf::{
    DT_NEEDED, DT_NULL, DT_STRSZ, DT_STRTAB, Dyn64, FileHeader64, PF_R, PF_W, PT_DYNAMIC, PT_LOAD, PT_PHDR,
    ProgramHeader64, R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_RELATIVE, Rela64, SHN_UNDEF, SHT_DYNAMIC,
    SHT_DYNSYM, SHT_RELA, SectionHeader64, Sym64,
};
use object::endian::{I64, U16, U32, U64};
use object::pod::{Pod, bytes_of_slice, slice_from_bytes_mut};
use object::read::elf::{FileHeader as _, ProgramHeader as _, Rela as _, SectionHeader as _, Sym as _};

type Le = LittleEndian;
const LE: Le = LittleEndian;

/// What a copy cannot be made of. It would be a fault of our own build: the input is a library of ours.
#[derive(Debug, thiserror::Error)]
pub enum TailorError {
    #[error("not an ELF library of the expected form: {0}")]
    Form(#[from] object::read::Error),
    #[error("no {0}")]
    Missing(&'static str),
    #[error("{symbol} cannot be hidden: relocation type {kind}")]
    Relocation { symbol: String, kind: u32 },
}

/// A copy of `library` for the driver's file `real`: exports for which `lacks` is true are gone, `real` is needed.
pub fn tailor(library: &[u8], lacks: impl Fn(&str) -> bool, real: &Path) -> Result<Vec<u8>, TailorError> {
    let file = File::parse(library)?;
    let hidden = file.hidden(lacks)?;
    let mut copy = library.to_vec();
    file.hide(&hidden, &mut copy)?;
    file.add_needed(real, &mut copy)?;
    Ok(copy)
}

/// Names that `library` exports.
pub fn exports(library: &[u8]) -> Result<Vec<String>, TailorError> {
    let file = File::parse(library)?;
    Ok(file
        .hidden(|_| true)?
        .into_values()
        .map(|symbol| symbol.name)
        .collect())
}

/// The parts of a library, read.
struct File<'a> {
    bytes: &'a [u8],
    header: &'a FileHeader64<Le>,
    segments: &'a [ProgramHeader64<Le>],
    sections: object::read::elf::SectionTable<'a, FileHeader64<Le>>,
}

/// An export to hide.
struct Hidden {
    name: String,
    value: u64,
}

impl<'a> File<'a> {
    fn parse(bytes: &'a [u8]) -> Result<File<'a>, TailorError> {
        let header = FileHeader64::<Le>::parse(bytes)?;
        Ok(File {
            bytes,
            header,
            segments: header.program_headers(LE, bytes)?,
            sections: header.sections(LE, bytes)?,
        })
    }

    fn section(
        &self,
        kind: u32,
        name: &'static str,
    ) -> Result<(usize, &'a SectionHeader64<Le>), TailorError> {
        let found = self
            .sections
            .enumerate()
            .find(|(_, section)| section.sh_type(LE) == kind);
        found
            .map(|(index, section)| (index.0, section))
            .ok_or(TailorError::Missing(name))
    }

    /// The exports for which `lacks` is true, by their number in the symbol table.
    fn hidden(&self, lacks: impl Fn(&str) -> bool) -> Result<BTreeMap<u32, Hidden>, TailorError> {
        let symbols = self.sections.symbols(LE, self.bytes, SHT_DYNSYM)?;
        let mut hidden = BTreeMap::new();
        for (index, symbol) in symbols.enumerate() {
            let name = String::from_utf8_lossy(symbol.name(LE, symbols.strings())?).into_owned();
            if symbol.st_shndx(LE) != SHN_UNDEF && !name.is_empty() && lacks(&name) {
                hidden.insert(
                    index.0 as u32,
                    Hidden {
                        name,
                        value: symbol.st_value(LE),
                    },
                );
            }
        }
        Ok(hidden)
    }

    /// Makes the symbols undefined, which no lookup finds, and ties our own uses of them to what they were.
    fn hide(&self, hidden: &BTreeMap<u32, Hidden>, copy: &mut [u8]) -> Result<(), TailorError> {
        let (dynsym, section) = self.section(SHT_DYNSYM, "dynamic symbols")?;
        let symbols: &mut [Sym64<Le>] = part(copy, section)?;
        for index in hidden.keys() {
            let symbol = symbols
                .get_mut(*index as usize)
                .ok_or(TailorError::Missing("symbol"))?;
            symbol.st_shndx = U16::new(LE, SHN_UNDEF);
            symbol.st_value = U64::new(LE, 0);
            symbol.st_size = U64::new(LE, 0);
        }
        for section in self
            .sections
            .iter()
            .filter(|section| section.sh_type(LE) == SHT_RELA)
        {
            if section.sh_link(LE) as usize != dynsym {
                continue;
            }
            let relocations: &mut [Rela64<Le>] = part(copy, section)?;
            for relocation in relocations {
                let Some(symbol) = hidden.get(&relocation.r_sym(LE, false)) else {
                    continue;
                };
                let addend = match relocation.r_type(LE, false) {
                    R_X86_64_64 => relocation.r_addend(LE).wrapping_add(symbol.value as i64),
                    R_X86_64_GLOB_DAT => symbol.value as i64,
                    kind => {
                        return Err(TailorError::Relocation {
                            symbol: symbol.name.clone(),
                            kind,
                        });
                    }
                };
                relocation.r_info = Rela64::r_info(LE, false, 0, R_X86_64_RELATIVE);
                relocation.r_addend = I64::new(LE, addend);
            }
        }
        Ok(())
    }

    /// Adds `real` to the libraries the copy needs.
    fn add_needed(&self, real: &Path, copy: &mut Vec<u8>) -> Result<(), TailorError> {
        let (dynamic_section, dynamic) = self.section(SHT_DYNAMIC, "dynamic section")?;
        let entries = dynamic
            .dynamic(LE, self.bytes)?
            .ok_or(TailorError::Missing("dynamic section"))?
            .0;
        let strings_section = dynamic.sh_link(LE) as usize;
        let strings = self
            .sections
            .section(object::SectionIndex(strings_section))?
            .data(LE, self.bytes)?;

        let loads = || {
            self.segments
                .iter()
                .filter(|segment| segment.p_type(LE) == PT_LOAD)
        };
        let align = loads().map(|segment| segment.p_align(LE)).max();
        let align = align
            .filter(|align| align.is_power_of_two())
            .ok_or(TailorError::Missing("aligned segment"))?;
        let end = loads()
            .map(|segment| segment.p_vaddr(LE) + segment.p_memsz(LE))
            .max()
            .unwrap_or(0);
        let (offset, address) = (
            (copy.len() as u64).next_multiple_of(align),
            end.next_multiple_of(align),
        );

        // One program header and one dynamic entry more than before.
        let headers_size = (self.segments.len() + 1) * size_of::<ProgramHeader64<Le>>();
        let used = entries
            .iter()
            .position(|entry| entry.d_tag.get(LE) == DT_NULL)
            .unwrap_or(entries.len());
        let dynamic_size = (used + 2) * size_of::<Dyn64<Le>>();
        let (dynamic_at, strings_at) = (headers_size as u64, (headers_size + dynamic_size) as u64);
        let mut new_strings = strings.to_vec();
        new_strings.extend(real.as_os_str().as_bytes());
        new_strings.push(0);
        let strings_size = new_strings.len() as u64;
        let size = strings_at + strings_size;

        let mut new_dynamic = vec![entry(DT_NEEDED, strings.len() as u64)];
        new_dynamic.extend(entries[..used].iter().map(|old| match old.d_tag.get(LE) {
            DT_STRTAB => entry(DT_STRTAB, address + strings_at),
            DT_STRSZ => entry(DT_STRSZ, strings_size),
            _ => *old,
        }));
        // After the libraries it needed already: what they define is looked for there first, as without us.
        let needed = |old: &&Dyn64<Le>| old.d_tag.get(LE) == DT_NEEDED;
        new_dynamic[..=entries[..used].iter().take_while(needed).count()].rotate_left(1);
        new_dynamic.push(entry(DT_NULL, 0));

        let last_load = self
            .segments
            .iter()
            .rposition(|segment| segment.p_type(LE) == PT_LOAD)
            .unwrap_or(0);
        let mut new_segments = self.segments.to_vec();
        for segment in &mut new_segments {
            match segment.p_type(LE) {
                PT_PHDR => place(segment, offset, address, headers_size as u64),
                PT_DYNAMIC => place(
                    segment,
                    offset + dynamic_at,
                    address + dynamic_at,
                    dynamic_size as u64,
                ),
                _ => {}
            }
        }
        let mut load = self.segments[last_load];
        load.p_flags = U32::new(LE, PF_R | PF_W); // the loader writes into the dynamic section
        load.p_align = U64::new(LE, align);
        place(&mut load, offset, address, size);
        new_segments.insert(last_load + 1, load);

        copy.resize(offset as usize, 0);
        copy.extend(bytes_of_slice(&new_segments));
        copy.extend(bytes_of_slice(&new_dynamic));
        copy.extend(new_strings);

        let sections_at = self.header.e_shoff(LE) as usize;
        let sections: &mut [SectionHeader64<Le>] = table(copy, sections_at, self.sections.len())?;
        for (index, at, size) in [
            (dynamic_section, dynamic_at, dynamic_size as u64),
            (strings_section, strings_at, strings_size),
        ] {
            let section = &mut sections[index];
            section.sh_offset = U64::new(LE, offset + at);
            section.sh_addr = U64::new(LE, address + at);
            section.sh_size = U64::new(LE, size);
        }
        let header: &mut [FileHeader64<Le>] = table(copy, 0, 1)?;
        header[0].e_phoff = U64::new(LE, offset);
        header[0].e_phnum = U16::new(LE, new_segments.len() as u16);
        Ok(())
    }
}

fn entry(tag: i64, value: u64) -> Dyn64<Le> {
    Dyn64 {
        d_tag: I64::new(LE, tag),
        d_val: U64::new(LE, value),
    }
}

fn place(segment: &mut ProgramHeader64<Le>, offset: u64, address: u64, size: u64) {
    segment.p_offset = U64::new(LE, offset);
    segment.p_vaddr = U64::new(LE, address);
    segment.p_paddr = U64::new(LE, address);
    segment.p_filesz = U64::new(LE, size);
    segment.p_memsz = U64::new(LE, size);
}

/// The content of a section in the copy, as records.
fn part<'b, T: Pod>(copy: &'b mut [u8], section: &SectionHeader64<Le>) -> Result<&'b mut [T], TailorError> {
    let count = section.sh_size(LE) as usize / size_of::<T>();
    table(copy, section.sh_offset(LE) as usize, count)
}

fn table<T: Pod>(copy: &mut [u8], at: usize, count: usize) -> Result<&mut [T], TailorError> {
    let bytes = copy.get_mut(at..).ok_or(TailorError::Missing("records"))?;
    let (records, _) = slice_from_bytes_mut(bytes, count).map_err(|()| TailorError::Missing("records"))?;
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A library that every system has, made by another linker than ours.
    fn library() -> Vec<u8> {
        std::fs::read(driver::load::find("libm.so.6", None).unwrap()).unwrap()
    }

    #[test]
    fn a_copy_lacks_what_the_driver_lacks_and_needs_the_driver() {
        let real = driver::load::find("libgcc_s.so.1", None).unwrap();
        let copy = tailor(&library(), |name| name == "cosh", &real).unwrap();
        let names = exports(&copy).unwrap();
        assert!(!names.iter().any(|name| name == "cosh") && names.iter().any(|name| name == "sinh"));
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("copy.so");
        std::fs::write(&file, copy).unwrap();
        let object = driver::elf::Object::open(&file).unwrap();
        assert!(!object.exports().contains(&"cosh") && object.exports().contains(&"sinh"));
        let said = trial(&file);
        assert!(
            said.contains(&*real.to_string_lossy()) && !said.contains("undefined symbol"),
            "{said}"
        );
    }

    #[test]
    fn what_is_hidden_still_serves_the_library_itself() {
        let directory = tempfile::tempdir().unwrap();
        let (source, file) = (directory.path().join("own.c"), directory.path().join("own.so"));
        std::fs::write(&source, "int gone(void) { return 7; } int (*table[])(void) = { gone }; int stays(void) { return gone(); }").unwrap();
        let mut compile = Command::new("cc");
        compile
            .args(["-shared", "-fPIC", "-Wl,-z,now", "-fno-plt", "-o"])
            .arg(&file)
            .arg(&source);
        assert!(compile.status().unwrap().success());
        let real = driver::load::find("libgcc_s.so.1", None).unwrap();
        let copy = tailor(&std::fs::read(&file).unwrap(), |name| name == "gone", &real).unwrap();
        assert!(!exports(&copy).unwrap().iter().any(|name| name == "gone"));
        std::fs::write(&file, copy).unwrap();
        let said = trial(&file);
        assert!(
            said.contains("libgcc_s") && !said.contains("undefined symbol"),
            "{said}"
        );
    }

    /// What the loader says that loads `file` and binds all its symbols.
    fn trial(file: &Path) -> String {
        let mut loader = Command::new("/lib64/ld-linux-x86-64.so.2");
        loader
            .env("LD_TRACE_LOADED_OBJECTS", "1")
            .env("LD_WARN", "yes")
            .env("LD_BIND_NOW", "yes");
        let output = loader.arg(file).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    #[test]
    fn a_library_that_is_cut_off_is_refused() {
        let whole = library();
        for cut in [0, 63, 64, 4096, whole.len() / 2, whole.len() - 1] {
            assert!(
                tailor(&whole[..cut], |_| true, Path::new("/x")).is_err(),
                "{cut} bytes"
            );
        }
    }
}
