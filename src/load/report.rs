//! What `stint load` tells at its end: `stint.load/v1`, and the same for people. What was not measured is absent.

use serde::{Deserialize, Serialize};

use crate::config::units::Bytes;

/// Value of `schema`.
pub const SCHEMA: &str = "stint.load/v1";

/// Times are device time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub schema: String,
    pub elapsed_seconds: f64,
    /// Kernels submitted.
    pub launches: u64,
    /// Copies submitted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copies: u64,
    /// Own durations of the completed kernels, added up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_seconds: Option<f64>,
    /// Bursts completed; with `--every` only, like their times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bursts: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_p50_seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_p99_seconds: Option<f64>,
    /// Allocations that were granted.
    pub allocations: u64,
    /// Their bytes, those given back included.
    pub allocated_bytes: u64,
    /// Allocations turned down.
    pub refusals: u64,
    /// What `cuMemGetInfo` said with the memory of `--memory` and `--fill` held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_free_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_total_bytes: Option<u64>,
    /// With `--churn`: the most by which an allocation's size and what it took from the free memory shown differed. What
    /// others do must not be in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_error_bytes: Option<u64>,
    /// Why the load ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Report {
    /// Lines for people.
    pub fn text(&self) -> String {
        let mut lines = vec![format!(
            "{:.3} s, {} launches",
            self.elapsed_seconds, self.launches
        )];
        if self.copies > 0 {
            lines[0] += &format!(", {} copies", self.copies);
        }
        if let Some(seconds) = self.gpu_seconds {
            lines[0] += &format!(", {seconds:.3} s of GPU time");
        }
        if let (Some(bursts), Some(p50), Some(p99)) =
            (self.bursts, self.burst_p50_seconds, self.burst_p99_seconds)
        {
            lines.push(format!(
                "{bursts} bursts, p50 {:.3} ms, p99 {:.3} ms",
                p50 * 1e3,
                p99 * 1e3
            ));
        }
        lines.push(format!(
            "{} allocations, {} bytes in all, {} refusals",
            self.allocations, self.allocated_bytes, self.refusals
        ));
        if let (Some(free), Some(total)) = (self.memory_free_bytes, self.memory_total_bytes) {
            lines.push(format!(
                "sees {} free of {} ({free} of {total} bytes)",
                Bytes(free),
                Bytes(total)
            ));
        }
        lines.extend(self.error.clone());
        lines.join("\n")
    }
}

/// The value below which `part` (0..=1) of `values` lie, by the nearest-rank rule; `None` without values.
pub fn percentile(values: &mut [f64], part: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (part * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 0.5), Some(50.0));
        assert_eq!(percentile(&mut values, 0.99), Some(99.0));
        assert_eq!(percentile(&mut values, 1.0), Some(100.0));
        assert_eq!(percentile(&mut [3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(percentile(&mut [7.0], 0.0), Some(7.0));
        assert_eq!(percentile(&mut [], 0.5), None);
    }

    #[test]
    fn what_was_not_measured_is_absent() {
        let report = Report {
            schema: SCHEMA.into(),
            launches: 3,
            ..Report::default()
        };
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(
            text,
            r#"{"schema":"stint.load/v1","elapsed_seconds":0.0,"launches":3,"allocations":0,"allocated_bytes":0,"refusals":0}"#
        );
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }
}
