//! Cubins: ELF objects of the device, as far as their symbols and `.nv.info` sections go.

use super::image::{Image, KernelInfo, Variable, u16_at, u32_at, u64_at};
use std::collections::HashMap;

const EM_CUDA: u16 = 190;
const STT_OBJECT: u8 = 1;
/// Where `__constant__` variables lie.
const CONSTANTS: &str = ".nv.constant3";
const STT_FUNC: u8 = 2;
const SHT_NOBITS: u32 = 8;
/// In `st_other`: the function can be launched.
const ENTRY: u8 = 0x10;
/// Records of `.nv.info` with a payload of their own.
const SIZED: u8 = 4;
const MAX_THREADS: u8 = 0x05;
const PARAMETER: [u8; 2] = [0x17, 0x45];
const REGISTERS: u8 = 0x2f;

struct Section<'a> {
    name: &'a str,
    kind: u32,
    offset: u64,
    size: u64,
    link: u32,
}

/// From the first 64 bytes: where the section table ends, and at least so long is the whole.
pub fn length(header: &[u8]) -> Option<(usize, usize)> {
    let table = u64_at(header, 40)?;
    let end = table.checked_add(u64::from(u16_at(header, 58)?) * u64::from(u16_at(header, 60)?))?;
    let end = usize::try_from(end)
        .ok()
        .filter(|&end| end < isize::MAX as usize)?;
    Some((end.max(64), end.max(64)))
}

/// From everything up to the end of the section table: where the last section ends.
pub fn end(bytes: &[u8]) -> Option<usize> {
    let ends = headers(bytes)?.map(|at| match u32_at(bytes, at + 4)? {
        SHT_NOBITS => Some(0),
        _ => u64_at(bytes, at + 24)?.checked_add(u64_at(bytes, at + 32)?),
    });
    let last = ends.collect::<Option<Vec<u64>>>()?.into_iter().max()?;
    usize::try_from(last)
        .ok()
        .filter(|&last| last < isize::MAX as usize)
}

/// Offsets of the section headers.
fn headers(bytes: &[u8]) -> Option<impl Iterator<Item = usize>> {
    let table = usize::try_from(u64_at(bytes, 40)?).ok()?;
    let (size, count) = (u16_at(bytes, 58)? as usize, u16_at(bytes, 60)? as usize);
    table
        .checked_add(size * count)
        .filter(|&end| end <= bytes.len())?;
    Some((0..count).map(move |i| table + i * size))
}

fn text(bytes: &[u8], at: usize) -> Option<&str> {
    let rest = bytes.get(at..)?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

fn sections(bytes: &[u8]) -> Option<Vec<Section<'_>>> {
    let names = headers(bytes)?.nth(u16_at(bytes, 62)? as usize)?;
    let names = usize::try_from(u64_at(bytes, names + 24)?).ok()?;
    headers(bytes)?
        .map(|at| {
            Some(Section {
                name: text(bytes, names.checked_add(u32_at(bytes, at)? as usize)?)?,
                kind: u32_at(bytes, at + 4)?,
                offset: u64_at(bytes, at + 24)?,
                size: u64_at(bytes, at + 32)?,
                link: u32_at(bytes, at + 40)?,
            })
        })
        .collect()
}

impl Section<'_> {
    fn content<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        if self.kind == SHT_NOBITS {
            return Some(&[]);
        }
        let start = usize::try_from(self.offset).ok()?;
        bytes.get(start..start.checked_add(usize::try_from(self.size).ok()?)?)
    }
}

/// The records of an info section: attribute and payload.
fn records(content: &[u8]) -> Vec<(u8, &[u8])> {
    let mut list = Vec::new();
    let mut at = 0;
    while let (Some(&format), Some(&attribute), Some(word)) =
        (content.get(at), content.get(at + 1), u16_at(content, at + 2))
    {
        at += 4;
        let length = if format == SIZED { word as usize } else { 0 };
        let Some(payload) = content.get(at..at + length) else {
            break;
        };
        list.push((
            attribute,
            if format == SIZED {
                payload
            } else {
                &content[at - 2..at]
            },
        ));
        at += length;
    }
    list
}

/// The kernels and variables of a whole cubin.
pub fn parse(bytes: &[u8]) -> Option<Image> {
    if u16_at(bytes, 18)? != EM_CUDA {
        return None;
    }
    let sections = sections(bytes)?;
    let section = |name: &str| sections.iter().find(|section| section.name == name);
    let symbols = section(".symtab")?;
    let names = sections.get(symbols.link as usize)?.content(bytes)?;
    let mut registers: HashMap<u32, u32> = HashMap::new();
    let info = section(".nv.info")
        .and_then(|info| info.content(bytes))
        .unwrap_or_default();
    for (attribute, payload) in records(info) {
        if let (REGISTERS, Some(symbol), Some(count)) = (attribute, u32_at(payload, 0), u32_at(payload, 4)) {
            registers.insert(symbol, count);
        }
    }
    let mut image = Image {
        kernels: Some(Vec::new()),
        variables: Vec::new(),
    };
    for (index, symbol) in symbols.content(bytes)?.chunks_exact(24).enumerate() {
        let (kind, binding, other) = (symbol[4] & 15, symbol[4] >> 4, symbol[5]);
        let name = text(names, u32_at(symbol, 0)? as usize)?;
        if kind == STT_FUNC && other & ENTRY != 0 {
            let mut kernel = kernel(bytes, &sections, name);
            kernel.registers = registers.get(&(index as u32)).copied().unwrap_or(0);
            image.kernels.get_or_insert_default().push(kernel);
        } else if kind == STT_OBJECT {
            let holder = sections.get(u16_at(symbol, 6)? as usize);
            let (start, size) = (u64_at(symbol, 8)?, u64_at(symbol, 16)?);
            // The program's constants are local symbols of bank 3; the other banks are the compiler's own.
            let is_variable = |name: &str| match binding {
                0 => name == CONSTANTS,
                _ => name == CONSTANTS || name.starts_with(".nv.global"),
            };
            if holder.is_some_and(|holder| is_variable(holder.name)) {
                let content = holder
                    .and_then(|holder| holder.content(bytes))
                    .unwrap_or_default();
                let range = usize::try_from(start).ok()?..usize::try_from(start.checked_add(size)?).ok()?;
                let content = content.get(range).unwrap_or_default().to_vec();
                image.variables.push(Variable {
                    name: name.to_owned(),
                    bytes: size,
                    content,
                    managed: false,
                });
            }
        }
    }
    Some(image)
}

fn kernel(bytes: &[u8], sections: &[Section<'_>], name: &str) -> KernelInfo {
    let of = |prefix: &str| {
        sections
            .iter()
            .find(|section| section.name.strip_prefix(prefix) == Some(name))
    };
    let mut parameters = Vec::new();
    let mut max_threads = 0;
    let info = of(".nv.info.")
        .and_then(|info| info.content(bytes))
        .unwrap_or_default();
    for (attribute, payload) in records(info) {
        if PARAMETER.contains(&attribute) {
            let ordinal = u16_at(payload, 4).zip(u16_at(payload, 6)).zip(u32_at(payload, 8));
            parameters.extend(ordinal.map(|((ordinal, offset), packed)| (ordinal, offset, packed >> 18)));
        } else if attribute == MAX_THREADS {
            let side = |i: usize| u32_at(payload, 4 * i).unwrap_or(1).max(1);
            max_threads = side(0).saturating_mul(side(1)).saturating_mul(side(2));
        }
    }
    parameters.sort_unstable();
    KernelInfo {
        name: name.to_owned(),
        parameters: Some(
            parameters
                .into_iter()
                .map(|(_, offset, size)| (offset as u32, size))
                .collect(),
        ),
        registers: 0,
        shared_bytes: of(".nv.shared.").map_or(0, |shared| shared.size.min(u32::MAX as u64) as u32),
        max_threads,
        architecture: 0,
        ptx_version: 0,
    }
}
