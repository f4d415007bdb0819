//! Configured faults: the k-th call of a function fails, waits, or both.

use super::Client;
use crate::facts::FaultRow;
use crate::shm::clock::sleep;
use driver::CudaError;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The faults that concern this process.
pub(super) struct Faults {
    rows: Vec<(FaultRow, AtomicU64)>,
    /// The code that every call returns since a sticky fault; 0: none.
    sticky: AtomicU32,
}

impl Faults {
    pub fn new(rows: &[FaultRow]) -> Faults {
        let name = match rows {
            [] => String::new(),
            _ => std::fs::read_to_string("/proc/self/comm").unwrap_or_default(),
        };
        Faults::of_process(rows, name.trim_end_matches('\n'))
    }

    fn of_process(rows: &[FaultRow], name: &str) -> Faults {
        let ours = rows
            .iter()
            .filter(|r| r.process.is_empty() || r.process.as_str() == name);
        Faults {
            rows: ours.map(|r| (*r, AtomicU64::new(0))).collect(),
            sticky: AtomicU32::new(0),
        }
    }

    /// Counts a call; the code it must return, 0 for none.
    #[inline]
    pub fn call(&self, function: &str) -> u32 {
        if self.rows.is_empty() {
            0
        } else {
            self.look(function)
        }
    }

    #[cold]
    fn look(&self, function: &str) -> u32 {
        let mut code = self.sticky.load(Ordering::Relaxed);
        for (row, calls) in &self.rows {
            if row.function.as_str() != function {
                continue;
            }
            let call = calls.fetch_add(1, Ordering::Relaxed) + 1;
            if call < row.call || call - row.call >= row.count {
                continue;
            }
            sleep(row.delay_ns);
            if row.sticky != 0 {
                self.sticky.store(row.code, Ordering::Relaxed);
            }
            if code == 0 {
                code = row.code;
            }
        }
        code
    }
}

impl Client {
    /// Call it first thing in every entry point, with the base name: counts the call, delays it if so
    /// configured, and gives the error it must return at once, if any. One load when no fault is
    /// configured.
    #[inline]
    pub fn fault(&self, function: &str) -> Option<CudaError> {
        CudaError::new(self.shared.faults.call(function))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Text;

    fn row(function: &str, call: u64, count: u64, code: u32, sticky: u32) -> FaultRow {
        let (function, process) = (Text::new(function), Text::new("victim"));
        FaultRow {
            function,
            process,
            call,
            count,
            code,
            sticky,
            delay_ns: 0,
        }
    }

    #[test]
    fn the_named_calls_fail_and_no_others() {
        let faults = Faults::of_process(&[row("cuMemAlloc", 2, 2, 2, 0)], "victim");
        let codes: Vec<_> = (0..5).map(|_| faults.call("cuMemAlloc")).collect();
        assert_eq!(codes, [0, 2, 2, 0, 0]);
        assert_eq!(faults.call("cuMemFree"), 0);
    }

    #[test]
    fn a_sticky_fault_spreads_to_every_function() {
        let faults = Faults::of_process(&[row("cuLaunchKernel", 1, u64::MAX, 719, 1)], "victim");
        assert_eq!(faults.call("cuMemFree"), 0);
        assert_eq!(faults.call("cuLaunchKernel"), 719);
        assert_eq!(faults.call("cuMemFree"), 719);
    }

    #[test]
    fn a_fault_of_another_process_is_not_ours() {
        let faults = Faults::of_process(&[row("cuMemAlloc", 1, 1, 2, 0)], "bystander");
        assert_eq!(faults.call("cuMemAlloc"), 0);
    }
}
