//! When the rounds of `stint load` begin. Pure: times are device time since the load began.

use std::time::Duration;

use super::Arrivals;

/// Begin of every round of an open loop, in order, the first at once (periodic) or after the first gap (Poisson). All of
/// them are before `length`; the same arguments give the same times.
pub fn arrivals(
    kind: Arrivals,
    every: Duration,
    length: Duration,
    seed: u64,
) -> impl Iterator<Item = Duration> {
    let mut random = Random(seed);
    let mut next = match kind {
        Arrivals::Periodic => Duration::ZERO,
        Arrivals::Poisson => random.exponential(every),
    };
    std::iter::from_fn(move || {
        let at = next;
        next += match kind {
            Arrivals::Periodic => every,
            Arrivals::Poisson => random.exponential(every),
        };
        (at < length).then_some(at)
    })
}

/// SplitMix64: enough for arrival times, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A gap of a Poisson process with this mean, at least 1 ns.
    fn exponential(&mut self, mean: Duration) -> Duration {
        let uniform = ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64; // within (0, 1)
        mean.mul_f64(-uniform.ln()).max(Duration::from_nanos(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_millis(20);
    const LENGTH: Duration = Duration::from_secs(200);

    #[test]
    fn periodic_rounds_are_counted_exactly() {
        let times: Vec<_> = arrivals(Arrivals::Periodic, EVERY, Duration::from_secs(1), 7).collect();
        assert_eq!(times.len(), 50);
        assert_eq!(times[49], EVERY * 49);
    }

    #[test]
    fn poisson_rounds_have_the_mean_and_the_spread_and_follow_the_seed() {
        let times: Vec<_> = arrivals(Arrivals::Poisson, EVERY, LENGTH, 7).collect();
        assert!(times.is_sorted() && times.last() < Some(&LENGTH));
        let gaps: Vec<f64> = times
            .windows(2)
            .map(|two| (two[1] - two[0]).as_secs_f64())
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 0.020 - 1.0).abs() < 0.05, "mean {mean}");
        assert!(
            (variance.sqrt() / mean - 1.0).abs() < 0.05,
            "an exponential's deviation is its mean"
        );
        assert_eq!(
            times,
            arrivals(Arrivals::Poisson, EVERY, LENGTH, 7).collect::<Vec<_>>()
        );
        assert_ne!(
            times,
            arrivals(Arrivals::Poisson, EVERY, LENGTH, 8).collect::<Vec<_>>()
        );
    }
}
