//! Fat binaries: several images in one, each for an architecture, perhaps compressed.

use super::image::{u16_at, u32_at, u64_at};
use std::borrow::Cow;
use std::io::Read;

const PTX: u16 = 1;
const CUBIN: u16 = 2;
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;
/// No honest entry is larger.
const MAX_PLAIN: u64 = 4 << 30;

pub struct Entry<'a> {
    pub is_ptx: bool,
    /// 90 for sm_90.
    pub architecture: u32,
    flags: u64,
    plain_bytes: u64,
    payload: &'a [u8],
}

/// Bytes of the whole, from its header.
pub fn length(header: &[u8]) -> Option<usize> {
    let total = u64::from(u16_at(header, 6)?).checked_add(u64_at(header, 8)?)?;
    usize::try_from(total)
        .ok()
        .filter(|&total| total < isize::MAX as usize)
}

/// The images in order; entries of other kinds are passed over.
pub fn entries(bytes: &[u8]) -> Option<Vec<Entry<'_>>> {
    let mut list = Vec::new();
    let mut at = u16_at(bytes, 6)? as usize;
    while at < bytes.len() {
        let kind = u16_at(bytes, at)?;
        let header = u32_at(bytes, at + 4)? as usize;
        let padded = u32_at(bytes, at + 8)? as usize;
        let packed = u32_at(bytes, at + 16)? as usize;
        let start = at.checked_add(header).filter(|&start| start > at)?;
        let next = start.checked_add(padded)?;
        let length = if packed == 0 { padded } else { packed };
        let payload = bytes.get(start..start.checked_add(length)?)?;
        if matches!(kind, PTX | CUBIN) {
            list.push(Entry {
                is_ptx: kind == PTX,
                architecture: u32_at(bytes, at + 28)?,
                flags: u64_at(bytes, at + 40)?,
                plain_bytes: u64_at(bytes, at + 56)?,
                payload,
            });
        }
        at = next;
    }
    Some(list)
}

/// What a device of this architecture would run: its own newest binary, else the newest PTX.
pub fn best<'a, 'b>(entries: &'b [Entry<'a>], architecture: u32) -> Option<&'b Entry<'a>> {
    let fits = |entry: &&Entry<'_>| {
        entry.architecture <= architecture && (entry.is_ptx || entry.architecture / 10 == architecture / 10)
    };
    entries
        .iter()
        .filter(fits)
        .max_by_key(|entry| (!entry.is_ptx, entry.architecture))
}

impl<'a> Entry<'a> {
    /// The image itself; `None` if it is packed in a way nobody here knows.
    pub fn content(&self) -> Option<Cow<'a, [u8]>> {
        let plain = usize::try_from(self.plain_bytes.min(MAX_PLAIN)).ok()?;
        if self.flags & ZSTD != 0 {
            let mut decoder = ruzstd::decoding::StreamingDecoder::new(self.payload).ok()?;
            let mut content = Vec::new();
            decoder
                .by_ref()
                .take(plain as u64)
                .read_to_end(&mut content)
                .ok()?;
            Some(content.into())
        } else if self.flags & LZ4 != 0 {
            Some(lz4_flex::block::decompress(self.payload, plain).ok()?.into())
        } else {
            Some(self.payload.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: u16, architecture: u32, payload: &[u8]) -> Vec<u8> {
        let padded = payload.len().next_multiple_of(8);
        let mut bytes = vec![0; 64];
        bytes[..2].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&64u32.to_le_bytes());
        bytes[8..12].copy_from_slice(&(padded as u32).to_le_bytes());
        bytes[16..20].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes[28..32].copy_from_slice(&architecture.to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes.resize(64 + padded, 0);
        bytes
    }

    fn fatbin(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut bytes = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn the_own_binary_comes_before_ptx_and_newer_code_does_not_fit() {
        let bytes = fatbin(&[
            entry(PTX, 75, b"ptx75"),
            entry(CUBIN, 80, b"elf80"),
            entry(CUBIN, 100, b"elf100"),
        ]);
        assert_eq!(length(&bytes), Some(bytes.len()));
        let entries = entries(&bytes).expect("well formed");
        let chosen = |architecture| {
            best(&entries, architecture)
                .and_then(|e| e.content())
                .map(|c| c.to_vec())
        };
        assert_eq!(chosen(80).as_deref(), Some(&b"elf80"[..]));
        assert_eq!(chosen(86).as_deref(), Some(&b"elf80"[..]));
        assert_eq!(chosen(90).as_deref(), Some(&b"ptx75"[..]));
        assert_eq!(chosen(70), None);
    }

    #[test]
    fn cut_off_ones_are_refused() {
        let bytes = fatbin(&[entry(CUBIN, 80, b"elf80")]);
        for end in 17..bytes.len() {
            let cut = &bytes[..end];
            assert!(entries(cut).is_none_or(|list| list.is_empty() || list[0].payload == b"elf80"));
        }
    }
}
