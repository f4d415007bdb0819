//! `stint demo`: a node of its own with greedy, careful and dying tenants; ends with what was promised and what was
//! measured. The walk: `demo/stage.rs` sets the node up, each row of `demo/promises.rs` acts and measures, `demo/document.rs`
//! tells it.

mod document;
mod progress;
mod promises;
mod stage;
mod tenant;
pub mod truth;

use std::io::IsTerminal;

use crate::cli::Driver;
use crate::daemon::Sabotage;
use crate::exit::{Exit, Failure};
use crate::output;
use document::{Document, Row};
use progress::Progress;
use promises::{PROMISES, Promise};
use stage::Stage;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(long, value_enum, default_value = "sim")]
    pub driver: Driver,
    /// Stand-in devices, for example `h200:2`
    #[arg(long, value_name = "MODEL[:N],…")]
    pub devices: Option<String>,
    /// How long the neighbours work
    #[arg(long, value_name = "N", value_parser = crate::load::seconds)]
    pub seconds: Option<u32>,
    /// Sabotage the mechanism behind one promise; the table must then show it broken
    #[arg(long = "break", value_name = "PROMISE")]
    pub break_promise: Option<String>,
    #[arg(long)]
    pub json: bool,
}

/// Runs the verb: exit 1 when a promise was broken.
pub fn main(args: Args) -> Result<Exit, Failure> {
    let broken = args.break_promise.as_deref().map(promise).transpose()?;
    let sabotage = broken.map_or_else(Sabotage::default, |promise| (promise.sabotage)());
    let progress = Progress::new(!args.json && std::io::stdout().is_terminal());
    let mut stage = Stage::open(&args, sabotage, progress)?;
    let rows = PROMISES
        .iter()
        .map(|promise| act(promise, &mut stage))
        .collect::<Result<Vec<Row>, Failure>>()?;
    let document = Document {
        sabotaged: broken.map(|promise| promise.sabotaged),
        ..Document::new(rows, stage.close())
    };
    if args.json {
        output::json(&document)?;
    } else {
        output::line(&document.text())?;
    }
    Ok(if document.ok { Exit::OK } else { Exit::FAILED })
}

fn promise(name: &str) -> Result<&'static Promise, Failure> {
    PROMISES
        .iter()
        .find(|promise| promise.name == name)
        .ok_or_else(|| {
            let names: Vec<&str> = PROMISES.iter().map(|promise| promise.name).collect();
            Failure::usage(format!(
                "--break `{name}`: no such promise; there are {}",
                names.join(", ")
            ))
        })
}

/// One promise put to the test. What goes wrong on the way breaks it; only an interruption ends the demo.
fn act(promise: &Promise, stage: &mut Stage) -> Result<Row, Failure> {
    stage.progress.act(promise.name);
    let outcome = (promise.act)(stage);
    stage.scene_ends();
    stage.check_interrupted()?;
    Ok(Row::new(promise, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_promise_has_a_name_of_its_own_and_a_sabotage() {
        for (index, row) in PROMISES.iter().enumerate() {
            assert!(
                PROMISES[index + 1..].iter().all(|other| other.name != row.name),
                "{}",
                row.name
            );
            assert_ne!((row.sabotage)(), Sabotage::default(), "{}", row.name);
            assert!(promise(row.name).is_ok());
        }
        let unknown = promise("none").unwrap_err();
        assert_eq!(unknown.exit, Exit::USAGE);
        assert!(unknown.message.contains("memory-cap-exact"));
    }
}
