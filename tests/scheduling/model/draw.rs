//! Numbers of the shapes a model needs, drawn from a seed.

use crate::harness::chance::Chance;

/// A generator that can be told apart by purpose: one for each client, so that a change in one leaves the others as they were.
pub struct Draw(Chance);

impl Draw {
    pub fn seeded(seed: u64, purpose: u64) -> Draw {
        let mut chance = Chance::seeded(seed ^ purpose.wrapping_mul(0xd1b5_4a32_d192_ed03));
        chance.below(2);
        Draw(chance)
    }

    /// At least `from`, below `to`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.0.below((to.saturating_sub(from)).max(1))
    }

    /// 0 up to, not including, 1.
    pub fn part(&mut self) -> f64 {
        self.0.below(1 << 53) as f64 / (1u64 << 53) as f64
    }

    pub fn one_in(&mut self, many: u64) -> bool {
        self.0.below(many) == 0
    }

    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len() as u64) as usize]
    }

    /// A latency: mostly near `from`, rarely near `to`.
    pub fn latency(&mut self, from: u64, to: u64) -> u64 {
        from + ((to - from) as f64 * self.part().powi(6)) as u64
    }

    /// Between arrivals that know nothing of one another, `mean` apart.
    pub fn gap(&mut self, mean: u64) -> u64 {
        (-(mean as f64) * (1.0 - self.part()).ln()) as u64 + 1
    }

    /// Around `mean`, by about `part` of it.
    pub fn around(&mut self, mean: u64, part: f64) -> u64 {
        let sum: f64 = (0..4).map(|_| self.part() - 0.5).sum();
        (mean as f64 * (1.0 + part * sum * 1.7)).max(1.0) as u64
    }
}
