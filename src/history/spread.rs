//! How long an amount was held, by amount: cells an eighth of a power of two wide, so that a fortnight of an account fits in
//! some kilobytes. What is read out is the upper end of a cell: at most 12.5 % too much, never too little.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Cells of one power of two, as a power of two itself.
const PARTS: u32 = 3;
/// Amounts below are one cell: a granule of the driver.
const LEAST: u32 = 21;
/// The last cell holds everything above (4 PiB).
const CELLS: u16 = ((52 - LEAST) << PARTS) as u16;

/// Milliseconds by cell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Spread(BTreeMap<u16, u64>);

impl Spread {
    pub fn add(&mut self, bytes: u64, ms: u64) {
        let held = self.0.entry(cell(bytes)).or_default();
        *held = held.saturating_add(ms);
    }

    pub fn join(&mut self, other: &Spread) {
        for (cell, ms) in &other.0 {
            let held = self.0.entry(*cell).or_default();
            *held = held.saturating_add(*ms);
        }
    }

    pub fn total_ms(&self) -> u64 {
        self.0.values().fold(0, |sum, ms| sum.saturating_add(*ms))
    }

    /// An amount that was not exceeded for `per_mille` of the time. Of no time: 0.
    pub fn quantile(&self, per_mille: u64) -> u64 {
        let enough = u128::from(self.total_ms()) * u128::from(per_mille);
        let mut so_far = 0u128;
        for (cell, ms) in &self.0 {
            so_far += u128::from(*ms) * 1000;
            if so_far >= enough {
                return upper_end(*cell);
            }
        }
        0
    }

    pub fn bound(&mut self) {
        self.0.retain(|cell, _| *cell < CELLS);
    }
}

fn cell(bytes: u64) -> u16 {
    let bytes = bytes.saturating_sub(1); // a full power of two belongs to the cell that ends with it
    let power = bytes.checked_ilog2().unwrap_or(0);
    if power < LEAST {
        return 0;
    }
    let part = (bytes >> (power - PARTS)) & ((1 << PARTS) - 1);
    let cell = (u64::from(power - LEAST) << PARTS) + part + 1;
    cell.min(u64::from(CELLS) - 1) as u16
}

fn upper_end(cell: u16) -> u64 {
    let (power, part) = (u32::from(cell) >> PARTS, u64::from(cell) & ((1 << PARTS) - 1));
    ((1 << PARTS) + part) << (power + LEAST - PARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_read_out_as_at_most_an_eighth_more_and_never_less() {
        let mut amounts: Vec<u64> = (21..50).map(|power| 1 << power).collect();
        amounts.extend(
            (21..49).flat_map(|power| {
                [1, 2, 3, 5, 7].map(|eighths| (1u64 << power) + (eighths << (power - 3)) - 1)
            }),
        );
        amounts.extend([1, 4096, (3 << 30) + 1, 143_771_303_936]);
        for bytes in amounts {
            let mut spread = Spread::default();
            spread.add(bytes, 1);
            let said = spread.quantile(990);
            let most = (bytes + bytes / 8 + 1).max(1 << LEAST);
            assert!((bytes..=most).contains(&said), "{bytes} is said to be {said}");
        }
    }

    #[test]
    fn a_quantile_leaves_the_rare_out() {
        let mut spread = Spread::default();
        spread.add(1 << 30, 990);
        spread.add(1 << 33, 10);
        assert_eq!(spread.quantile(990), 1 << 30);
        assert_eq!(spread.quantile(991), 1 << 33);
        assert_eq!(Spread::default().quantile(990), 0);
    }

    #[test]
    fn whatever_is_added_there_are_few_cells() {
        let mut spread = Spread::default();
        for power in 0..64 {
            for part in 0..1000u64 {
                spread.add(
                    (1u64 << power).saturating_add(part << (power.max(10) - 10)),
                    u64::MAX,
                );
            }
        }
        assert!(spread.0.len() <= usize::from(CELLS), "{}", spread.0.len());
        assert!(spread.0.keys().all(|cell| *cell < CELLS));
        assert_eq!(spread.total_ms(), u64::MAX);
    }
}
