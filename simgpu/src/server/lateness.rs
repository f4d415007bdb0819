//! How late those who waited were told, after the model's time of what they waited for.
//!
//! The model's times do not depend on it; whoever measures with the host's clock does, so tests and
//! `stint sim status` show it beside their figures. Kept in buckets a quarter of an octave wide.

/// Buckets: four to each power of two.
const BUCKETS: usize = 4 * 64;

pub(super) struct Lateness {
    buckets: [u64; BUCKETS],
    count: u64,
    max: u64,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness {
            buckets: [0; BUCKETS],
            count: 0,
            max: 0,
        }
    }
}

fn bucket(ns: u64) -> usize {
    let top = 63 - (ns | 4).leading_zeros() as usize;
    4 * top + (((ns | 4) >> (top - 2)) & 3) as usize
}

/// The largest value of a bucket.
fn limit(bucket: usize) -> u64 {
    let (top, quarter) = (bucket / 4, bucket as u64 % 4);
    (1 << top) + (quarter + 1) * (1u64 << top) / 4 - 1
}

impl Lateness {
    pub fn add(&mut self, ns: u64) {
        self.buckets[bucket(ns)] += 1;
        self.count += 1;
        self.max = self.max.max(ns);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn max(&self) -> u64 {
        self.max
    }

    /// The value that `permille` of all do not exceed, up to a quarter too large; 0 without any.
    pub fn quantile(&self, permille: u64) -> u64 {
        let rank = (self.count * permille).div_ceil(1000);
        let mut seen = 0;
        for (i, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank && seen > 0 {
                return limit(i).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_at_most_a_quarter_too_large() {
        let mut all = Lateness::default();
        assert_eq!((all.quantile(500), all.max()), (0, 0));
        (1..=10_000).for_each(|ns| all.add(ns));
        for (permille, exact) in [(1, 10), (500, 5_000), (990, 9_900), (1000, 10_000)] {
            let found = all.quantile(permille);
            assert!(
                (exact..=exact + exact / 4 + 3).contains(&found),
                "{permille}: {found}"
            );
        }
        all.add(0);
        all.add(u64::MAX / 2);
        assert_eq!((all.count(), all.max()), (10_002, u64::MAX / 2));
    }
}
