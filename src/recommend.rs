//! `stint recommend`: a right-sized cap from what was measured. The daemon measures (`src/daemon/chronicle.rs`); this file
//! shows it.

use std::path::Path;
use std::time::Duration;

use crate::config::units::Bytes;
use crate::exit::{Exit, Failure};
use crate::protocol::recommend::{Recommendation, Recommendations};
use crate::status::view::{self, Table, UNKNOWN};
use crate::{output, status};

/// The cap recommended is the most an account held in the last 14 days and a tenth more, or what it was refused, rounded up
/// to 256 MiB. It needs an hour in which the account held memory. Compute shares are not recommended.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A tenant, or an account such as `default/alice` [default: all]
    #[arg(value_name = "TENANT")]
    pub subject: Option<String>,
    /// Schema `stint.recommend/v1`
    #[arg(long)]
    pub json: bool,
}

/// Runs the verb.
pub fn main(args: &Args, run_dir: Option<&Path>) -> Result<Exit, Failure> {
    let told = status::connect(run_dir)?.recommend(args.subject.as_deref())?;
    if args.json {
        output::json(&told)?;
    } else {
        output::line(text(&told).trim_end())?;
    }
    Ok(Exit::OK)
}

fn text(told: &Recommendations) -> String {
    if told.recommendations.is_empty() {
        return "nothing was measured yet: no account held memory of a GPU in the last 14 days".into();
    }
    let mut table = Table::new([
        "ACCOUNT",
        " USED FOR",
        " IDLE",
        " P99",
        " PEAK",
        " REFUSED",
        " CAP",
        " RECOMMENDED",
    ]);
    table.rows = told.recommendations.iter().map(row).collect();
    let notes: Vec<String> = told.recommendations.iter().filter_map(note).collect();
    format!("{}\n{}", table.text(), notes.join("\n"))
}

fn row(one: &Recommendation) -> Vec<String> {
    let span = |seconds| view::span(Duration::from_secs(seconds));
    let idle = match one.used_seconds {
        0 => UNKNOWN.into(),
        used => format!("{} %", one.idle_seconds.saturating_mul(100) / used),
    };
    vec![
        one.account.clone(),
        span(one.used_seconds),
        idle,
        Bytes(one.p99_bytes).to_string(),
        Bytes(one.peak_bytes).to_string(),
        one.refusals_total.to_string(),
        cap(one),
        one.memory_bytes
            .map_or(UNKNOWN.into(), |bytes| Bytes(bytes).to_string()),
    ]
}

/// One number where all devices give the same.
fn cap(one: &Recommendation) -> String {
    let least = one.devices.iter().map(|device| device.cap_bytes).min();
    let most = one.devices.iter().map(|device| device.cap_bytes).max();
    match (least, most) {
        (Some(least), Some(most)) if least == most => Bytes(most).to_string(),
        (Some(least), Some(most)) => format!("{}–{}", Bytes(least), Bytes(most)),
        _ => UNKNOWN.into(),
    }
}

fn note(one: &Recommendation) -> Option<String> {
    let name = &one.account;
    let Some(bytes) = one.memory_bytes else {
        return Some(format!(
            "{name}: held memory for {} so far; an hour is needed",
            view::span(Duration::from_secs(one.used_seconds))
        ));
    };
    if one.devices.iter().all(|device| device.cap_bytes == bytes) {
        return None;
    }
    Some(format!("stint set {name} memory={}MiB", bytes >> 20))
}
