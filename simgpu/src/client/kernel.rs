//! How long a kernel takes and how it goes: its name, the node's tables, noise.
//!
//! A scheduler that merely reads a fixed cost must not look perfect, so durations scatter by default:
//! lognormal with mean 1, the first launch in a process longer.

use super::{Client, StreamId};
use crate::facts::{BREAKING, BreakRow, KernelRow};
use driver::{CuResult, CudaError};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A kernel as the timeline knows it: how long one launch takes. Make it once per function.
#[derive(Debug)]
pub struct Kernel {
    ns: u64,
    warm: AtomicBool,
    /// Its kernel parameters say by what key (64 bits) and with how many others (32 bits) it meets.
    meets: bool,
    breaking: Option<Breaking>,
}

/// A launch that breaks its context.
#[derive(Debug)]
struct Breaking {
    error: CudaError,
    /// The launch that does.
    launch: u64,
    /// How long that one runs, if not as ever.
    lasts: Option<u64>,
    launches: AtomicU64,
}

/// How a kernel is launched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    Plain,
    /// All its SMs at once or none.
    Cooperative,
    /// One of `parties` that meet by `key`.
    Party {
        key: u64,
        parties: u32,
    },
}

impl Kernel {
    /// Nominal duration, in ns of device time.
    pub fn nominal_ns(&self) -> u64 {
        self.ns
    }

    /// True for a kernel that meets others: `…sim_meet_us_500…`.
    pub fn meets(&self) -> bool {
        self.meets
    }
}

impl Client {
    /// What is known about a kernel of this name: `…sim_spin_us_500…` (also `_ns_`, `_ms_`) says it
    /// itself, else the node's table, else the node's default (10 us). `…sim_meet_us_500…` meets others,
    /// `…sim_fault_700…` breaks its context with that error.
    pub fn kernel(&self, name: &str) -> Kernel {
        let met = named_ns(name, "sim_meet_");
        let ns = met.or_else(|| named_ns(name, "sim_spin_"));
        let ns = ns.or_else(|| table_ns(self.node().kernels(), name));
        let rows = self.node().breaks().iter();
        let of_table = |row: &&BreakRow| name.contains(row.kernel.as_str()) && concerns_us(row);
        let breaking = named_break(name).or_else(|| rows.clone().find(of_table).and_then(Breaking::of));
        Kernel {
            ns: ns.unwrap_or(self.node().kernel_ns),
            warm: AtomicBool::new(false),
            meets: met.is_some(),
            breaking,
        }
    }

    /// Launches the kernel on `sms` SMs in this manner, for as long as this launch takes. Errors as
    /// [`Client::launch`].
    #[inline]
    pub fn launch_kernel(&self, stream: StreamId, kernel: &Kernel, sms: u32, manner: Manner) -> CuResult {
        let ns = self.kernel_ns(kernel);
        if let Some(breaking) = &kernel.breaking
            && breaking.launches.fetch_add(1, Ordering::Relaxed) + 1 == breaking.launch
        {
            return self.break_context(stream, breaking.lasts.unwrap_or(ns), sms, breaking.error);
        }
        match manner {
            Manner::Plain => self.launch(stream, ns, sms),
            Manner::Cooperative => self.launch_cooperative(stream, ns, sms),
            Manner::Party { key, parties } => self.launch_party(stream, ns, sms, key, parties),
        }
    }

    /// How long this one launch takes: with the node's noise, and longer the first time.
    #[inline]
    pub fn kernel_ns(&self, kernel: &Kernel) -> u64 {
        let noise = &self.shared.noise;
        if noise.factors.is_empty() {
            return kernel.ns;
        }
        let cold = match kernel.warm.load(Ordering::Relaxed) {
            true => 0,
            false if kernel.warm.swap(true, Ordering::Relaxed) => 0,
            false => self.node().cold_ns as u64,
        };
        cold + noise.apply(kernel.ns)
    }
}

impl Breaking {
    fn of(row: &BreakRow) -> Option<Breaking> {
        Some(Breaking {
            error: CudaError::new(row.code)?,
            launch: row.launch,
            lasts: (row.lasts != 0).then_some(row.after_ns),
            launches: AtomicU64::new(0),
        })
    }
}

fn concerns_us(row: &BreakRow) -> bool {
    let comm = || std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    row.process.is_empty() || row.process.as_str() == comm().trim_end_matches('\n')
}

/// The error with which a kernel breaks its context by its own name, at its first launch.
fn named_break(name: &str) -> Option<Breaking> {
    let rest = &name[name.find("sim_fault_")? + "sim_fault_".len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let code = rest[..end].parse().ok().filter(|code| BREAKING.contains(code))?;
    Breaking::of(&BreakRow {
        code,
        launch: 1,
        ..BreakRow::NONE
    })
}

/// The duration that a kernel's own name gives behind `prefix`.
fn named_ns(name: &str, prefix: &str) -> Option<u64> {
    let rest = &name[name.find(prefix)? + prefix.len()..];
    let (unit, rest) = rest.split_once('_')?;
    let unit = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        _ => return None,
    };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse::<u64>().ok()?.checked_mul(unit)
}

fn table_ns(rows: &[KernelRow], name: &str) -> Option<u64> {
    rows.iter().find(|r| name.contains(r.name.as_str())).map(|r| r.ns)
}

/// Factors to draw from, in 1/65536; empty: no noise.
pub(super) struct Noise {
    factors: Vec<u32>,
    draws: AtomicU64,
}

/// Factors in the table: enough that their quantiles look continuous.
const FACTORS: usize = 1024;

impl Noise {
    /// Lognormal factors of mean 1 and a standard deviation of the logarithm of `permille`/1000.
    pub fn new(permille: u32, seed: u64) -> Noise {
        if permille == 0 {
            return Noise {
                factors: Vec::new(),
                draws: AtomicU64::new(0),
            };
        }
        let sigma = permille as f64 / 1000.0;
        let quantile = |i: usize| (sigma * normal_quantile((i as f64 + 0.5) / FACTORS as f64)).exp();
        let raw: Vec<f64> = (0..FACTORS).map(quantile).collect();
        let mean = raw.iter().sum::<f64>() / FACTORS as f64;
        let factors = raw.iter().map(|f| (f / mean * 65536.0).round() as u32).collect();
        Noise {
            factors,
            draws: AtomicU64::new(mix(seed)),
        }
    }

    #[inline]
    fn apply(&self, ns: u64) -> u64 {
        // An odd step visits every state; the mix spreads it.
        let draw = mix(self.draws.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed));
        let factor = self.factors[draw as usize % FACTORS];
        ((ns as u128 * factor as u128) >> 16) as u64
    }
}

fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// The value below which a standard normal variable lies with probability `p`, by bisection of the
/// logistic approximation's neighbourhood. Good to 1e-4, which no test of noise can see.
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-6.0f64, 6.0f64);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if normal_distribution(middle) < p {
            low = middle
        } else {
            high = middle
        }
    }
    (low + high) / 2.0
}

/// Abramowitz and Stegun 26.2.17, error below 7.5e-8.
fn normal_distribution(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.2316419 * x.abs());
    let polynomial =
        t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
    let tail = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * polynomial;
    if x < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Text;

    #[test]
    fn a_kernels_name_gives_its_duration() {
        assert_eq!(named_ns("_Z15sim_spin_us_500Pf", "sim_spin_"), Some(500_000));
        assert_eq!(named_ns("sim_spin_ms_2", "sim_spin_"), Some(2_000_000));
        assert_eq!(named_ns("sim_spin_ns_0_x", "sim_spin_"), Some(0));
        assert_eq!(named_ns("sim_spin_h_2", "sim_spin_"), None);
        assert_eq!(named_ns("sim_spin_us_", "sim_spin_"), None);
        assert_eq!(named_ns("vector_add", "sim_spin_"), None);
        assert_eq!(named_ns("x_sim_meet_us_5", "sim_meet_"), Some(5_000));
    }

    #[test]
    fn a_kernels_name_gives_the_error_it_breaks_its_context_with() {
        let error = |name| named_break(name).map(|b| b.error);
        assert_eq!(error("sim_fault_700"), Some(CudaError::ILLEGAL_ADDRESS));
        assert_eq!(error("_Z13sim_fault_719Pf"), CudaError::new(719));
        assert!(error("sim_fault_1").is_none(), "no error of a kernel");
        assert!(error("sim_fault_").is_none() && error("gemm").is_none());
    }

    #[test]
    fn the_table_is_asked_by_part_of_the_name() {
        let rows = [KernelRow {
            name: Text::new("gemm"),
            ns: 7,
        }];
        assert_eq!(table_ns(&rows, "ampere_sgemm_128"), Some(7));
        assert_eq!(table_ns(&rows, "relu"), None);
    }

    #[test]
    fn noise_scatters_as_asked_and_keeps_the_mean() {
        let noise = Noise::new(150, 1);
        let draws: Vec<f64> = (0..200_000)
            .map(|_| noise.apply(1_000_000) as f64 / 1e6)
            .collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let spread = draws.iter().map(|d| (d.ln() - mean.ln()).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((mean - 1.0).abs() < 0.005, "{mean}");
        assert!((spread.sqrt() - 0.15).abs() < 0.005, "{}", spread.sqrt());
        assert!(draws.iter().all(|&d| d > 0.5 && d < 2.0));
    }

    #[test]
    fn noise_repeats_with_its_seed() {
        let draw = |seed| {
            let noise = Noise::new(150, seed);
            (0..9).map(|_| noise.apply(1 << 40)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
