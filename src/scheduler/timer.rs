//! When the next decision is due though nothing was heard.

/// The earliest of the instants it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timer(Option<u64>);

impl Timer {
    pub fn new() -> Timer {
        Timer(None)
    }

    /// Due `after_ns` from `now`, or earlier.
    pub fn after(&mut self, after_ns: u64, now: u64) {
        let at = now.saturating_add(after_ns.max(1));
        self.0 = Some(self.0.map_or(at, |due| due.min(at)));
    }

    pub fn due_ns(self) -> Option<u64> {
        self.0
    }
}
