//! `stint reload`: the daemon reads its quota file again (`src/daemon/reload.rs`).

use std::path::Path;

use crate::exit::{Exit, Failure};
use crate::{output, status};

/// A file with a mistake changes nothing: exit 78 and every mistake. SIGHUP to the daemon does the same, and so does a change
/// of the file by itself. Only root, the daemon's user and group stint may ask.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Schema `stint.reload/v1`
    #[arg(long)]
    pub json: bool,
}

/// Runs the verb.
pub fn main(args: &Args, run_dir: Option<&Path>) -> Result<Exit, Failure> {
    let reloaded = status::connect(run_dir)?.reload()?;
    if args.json {
        output::json(&reloaded)?;
        return Ok(Exit::OK);
    }
    for line in &reloaded.changed {
        output::line(line)?;
    }
    if reloaded.changed.is_empty() {
        output::line("nothing has changed")?;
    }
    if !reloaded.accounts.is_empty() {
        output::line(&format!("other caps for {}", reloaded.accounts.join(", ")))?;
    }
    Ok(Exit::OK)
}
