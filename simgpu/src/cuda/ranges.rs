//! Free ranges of a stretch of memory: first fit, neighbours merged.

use std::collections::BTreeMap;

/// What every address the driver gives out is a multiple of.
pub const ALIGN: u64 = 512;

/// The free parts, by offset.
pub struct Ranges {
    whole: u64,
    free: BTreeMap<u64, u64>,
}

impl Ranges {
    pub fn new(whole: u64) -> Ranges {
        Ranges {
            whole,
            free: BTreeMap::from([(0, whole)]),
        }
    }

    /// The offset of `bytes` (a multiple of [`ALIGN`]) that were free.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let (&at, &length) = self.free.iter().find(|&(_, &length)| length >= bytes)?;
        self.free.remove(&at);
        if length > bytes {
            self.free.insert(at + bytes, length - bytes);
        }
        Some(at)
    }

    /// Gives back what `take` gave.
    pub fn give(&mut self, at: u64, bytes: u64) {
        let (mut start, mut end) = (at, at + bytes);
        if let Some((&before, &length)) = self.free.range(..at).next_back()
            && before + length == at
        {
            self.free.remove(&before);
            start = before;
        }
        if let Some(length) = self.free.remove(&end) {
            end += length;
        }
        self.free.insert(start, end - start);
    }

    pub fn is_all_free(&self) -> bool {
        self.free.get(&0) == Some(&self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_merge_whatever_the_order() {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut ranges = Ranges::new(3 * ALIGN);
            let parts = [0, 1, 2].map(|_| ranges.take(ALIGN).expect("room"));
            assert_eq!(ranges.take(ALIGN), None);
            for i in order {
                assert!(!ranges.is_all_free());
                ranges.give(parts[i], ALIGN);
            }
            assert!(ranges.is_all_free());
            assert_eq!(ranges.take(3 * ALIGN), Some(0));
        }
    }
}
