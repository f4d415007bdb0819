//! Many names in one block of text. Unlike a slice of `&str` it holds no address: a library that carries a slice has one
//! relocation per name, each a store into a page of its own copy, in every program it is loaded into.
//!
//! Next: `table.rs`, whose names lie so.

use core::ffi::CStr;

/// `COUNT` names, made when this was compiled: `BYTES` bytes of text, a NUL after each name.
pub struct Names<const COUNT: usize, const BYTES: usize> {
    bytes: [u8; BYTES],
    ends: [u16; COUNT],
    /// The places of the names, sorted by name.
    order: [u16; COUNT],
}

/// The bytes that `names` take here.
pub const fn length(names: &[&str]) -> usize {
    let (mut at, mut sum) = (0, 0);
    while at < names.len() {
        sum += names[at].len() + 1;
        at += 1;
    }
    sum
}

impl<const COUNT: usize, const BYTES: usize> Names<COUNT, BYTES> {
    /// `names` in their order.
    pub const fn of(names: &[&str]) -> Self {
        assert!(names.len() == COUNT && BYTES <= u16::MAX as usize);
        let (mut bytes, mut ends) = ([0; BYTES], [0; COUNT]);
        let (mut name, mut end) = (0, 0);
        while name < COUNT {
            let text = names[name].as_bytes();
            let mut at = 0;
            while at < text.len() {
                bytes[end] = text[at];
                end += 1;
                at += 1;
            }
            ends[name] = end as u16;
            end += 1;
            name += 1;
        }
        Names {
            bytes,
            ends,
            order: sorted(names),
        }
    }

    /// The name at `place`.
    pub fn get(&self, place: usize) -> &str {
        let bytes = self.with_nul(place);
        // SAFETY: without its last byte exactly one of the `&str` that `of` was given.
        unsafe { core::str::from_utf8_unchecked(&bytes[..bytes.len() - 1]) }
    }

    /// The same for C. `None` for a name with a NUL inside.
    pub fn c_str(&self, place: usize) -> Option<&CStr> {
        CStr::from_bytes_with_nul(self.with_nul(place)).ok()
    }

    fn with_nul(&self, place: usize) -> &[u8] {
        let start = if place == 0 {
            0
        } else {
            usize::from(self.ends[place - 1]) + 1
        };
        &self.bytes[start..=usize::from(self.ends[place])]
    }

    /// The places of all names that are `name`, in rising order.
    pub fn places(&self, name: &str) -> &[u16] {
        let from = &self.order[self
            .order
            .partition_point(|place| self.get((*place).into()) < name)..];
        let end = from.iter().position(|place| self.get((*place).into()) != name);
        &from[..end.unwrap_or(from.len())]
    }
}

/// The places of `names` in the order of the names. A stable merge sort from the bottom up: few steps, quick to compile.
const fn sorted<const COUNT: usize>(names: &[&str]) -> [u16; COUNT] {
    let mut from = [0; COUNT];
    let mut at = 0;
    while at < COUNT {
        from[at] = at as u16;
        at += 1;
    }
    let mut width = 1;
    while width < COUNT {
        let mut into = from;
        let mut start = 0;
        while start < COUNT {
            let (middle, end) = (least(start + width, COUNT), least(start + 2 * width, COUNT));
            let (mut left, mut right, mut at) = (start, middle, start);
            while at < end {
                let take_left = left < middle
                    && (right >= end || !is_less(names, from[right] as usize, from[left] as usize));
                if take_left {
                    into[at] = from[left];
                    left += 1;
                } else {
                    into[at] = from[right];
                    right += 1;
                }
                at += 1;
            }
            start = end;
        }
        from = into;
        width *= 2;
    }
    from
}

const fn least(one: usize, other: usize) -> usize {
    if one < other { one } else { other }
}

const fn is_less(names: &[&str], one: usize, other: usize) -> bool {
    let (one, other) = (names[one].as_bytes(), names[other].as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() {
        if one[at] != other[at] {
            return one[at] < other[at];
        }
        at += 1;
    }
    one.len() < other.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: [&str; 5] = ["b", "ab", "b", "", "abc"];
    static NAMES: Names<5, { length(&SOME) }> = Names::of(&SOME);

    #[test]
    fn names_come_back_by_place_and_places_by_name() {
        for (place, name) in SOME.iter().enumerate() {
            assert_eq!(NAMES.get(place), *name);
            assert_eq!(NAMES.c_str(place).unwrap().to_bytes(), name.as_bytes());
        }
        assert_eq!(NAMES.places("b"), [0, 2]);
        assert_eq!(NAMES.places(""), [3]);
        for absent in ["a", "c", "abcd"] {
            assert!(NAMES.places(absent).is_empty(), "{absent}");
        }
    }
}
