//! A hard limit: GPU time flows in at the limit's rate, work takes it out, and what was taken too much is carried as debt.

/// See the module. Work is admitted while something is left; the last kernel of a burst may overdraw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bucket {
    /// Part of the device that flows in.
    rate: f64,
    size_ns: f64,
    left_ns: f64,
    at_ns: u64,
    /// Empty, and not yet half full again.
    dry: bool,
}

impl Bucket {
    pub fn new(rate: f64, size_ns: u64, now: u64) -> Bucket {
        let size_ns = size_ns as f64;
        Bucket {
            rate,
            size_ns,
            left_ns: size_ns,
            at_ns: now,
            dry: false,
        }
    }

    /// A changed limit keeps the debt.
    pub fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }

    /// Takes `used_ns` out (a negative one is a correction) and lets in what has come since.
    pub fn take(&mut self, used_ns: f64, now: u64) {
        let elapsed = now.saturating_sub(self.at_ns) as f64;
        self.at_ns = self.at_ns.max(now);
        self.left_ns = (self.left_ns + elapsed * self.rate - used_ns).min(self.size_ns);
        if self.left_ns <= self.size_ns / 64.0 {
            self.dry = true;
        } else if self.left_ns >= self.size_ns / 2.0 {
            self.dry = false;
        }
    }

    /// Whether nothing may be handed over.
    pub fn dry(&self) -> bool {
        self.dry
    }

    /// What may be handed over at once if the device works on it all the while.
    pub fn run_ns(&self) -> u64 {
        if self.rate >= 1.0 {
            return super::FOREVER;
        }
        (self.left_ns.max(0.0) / (1.0 - self.rate)) as u64
    }

    /// How long until it is half full again.
    pub fn refill_ns(&self) -> u64 {
        ((self.size_ns / 2.0 - self.left_ns).max(0.0) / self.rate).ceil() as u64
    }

    /// What is owed.
    pub fn debt_ns(&self) -> u64 {
        (-self.left_ns).max(0.0) as u64
    }
}
