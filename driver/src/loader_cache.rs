//! `/etc/ld.so.cache`, where `ldconfig` tells the dynamic loader which file a library name means.

use std::path::PathBuf;

/// The format glibc has written since 2.2 (`dl-cache.h`): this magic, counts, then 24-byte entries whose
/// string offsets count from the magic.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// `FLAG_ELF_LIBC6 | FLAG_X8664_LIB64`.
const X86_64: u32 = 0x0303;
const HEADER: usize = 48;
const ENTRY: usize = 24;

/// The files the cache knows for `soname`, in its order; empty for a cache in another format.
pub fn lookup(cache: &[u8], soname: &str) -> Vec<PathBuf> {
    // An old-format part may precede the new one.
    let Some(start) = cache.windows(MAGIC.len()).position(|window| window == MAGIC) else {
        return Vec::new();
    };
    let cache = &cache[start..];
    let count = word(cache, 20).unwrap_or(0) as usize;
    let entry = |i: usize| {
        let at = HEADER.checked_add(i.checked_mul(ENTRY)?)?;
        let (flags, key, value) = (word(cache, at)?, word(cache, at + 4)?, word(cache, at + 8)?);
        (flags == X86_64 && is(cache, key, soname)).then(|| text(cache, value).map(PathBuf::from))?
    };
    (0..count.min(cache.len() / ENTRY)).filter_map(entry).collect()
}

/// Whether the text at `at` is `wanted`; all entries are asked.
fn is(bytes: &[u8], at: u32, wanted: &str) -> bool {
    let rest = bytes.get(at as usize..).unwrap_or_default();
    rest.strip_prefix(wanted.as_bytes())
        .is_some_and(|end| end.first() == Some(&0))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

fn text(bytes: &[u8], at: u32) -> Option<&str> {
    let rest = bytes.get(at as usize..)?;
    std::str::from_utf8(&rest[..rest.iter().position(|&b| b == 0)?]).ok()
}

/// A cache with one library twice, of another architecture first.
#[cfg(test)]
pub(crate) fn example() -> Vec<u8> {
    let mut cache = b"ld.so-1.7.0\0\0\0\0\0".to_vec();
    let start = cache.len();
    cache.extend(MAGIC);
    cache.extend(2u32.to_le_bytes());
    cache.resize(start + HEADER, 0);
    let strings = b"libcuda.so.1\0/opt/wrong\0/opt/right\0";
    let base = (HEADER + 2 * ENTRY) as u32;
    for (flags, value) in [(0x0003u32, 13u32), (X86_64, 24)] {
        for word in [flags, base, base + value, 0, 0, 0] {
            cache.extend(word.to_le_bytes());
        }
    }
    cache.extend(strings);
    cache
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_an_entry_of_its_own_architecture() {
        let cache = example();
        assert_eq!(lookup(&cache, "libcuda.so.1"), [PathBuf::from("/opt/right")]);
        assert!(lookup(&cache, "libcuda.so.2").is_empty());
        for cut in 0..cache.len() {
            lookup(&cache[..cut], "libcuda.so.1");
        }
    }
}
