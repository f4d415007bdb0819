//! `stint status`: the node once, as JSON or as tables (`status/view.rs`), which `top` shows live.

mod orphans;
pub mod view;

use std::path::Path;

use crate::exit::{Exit, Failure};
use crate::protocol::Connection;
use crate::{output, place};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Schema `stint.node/v1`
    #[arg(long)]
    pub json: bool,
}

/// Runs the verb.
pub fn main(args: Args, run_dir: Option<&Path>) -> Result<Exit, Failure> {
    let node = connect(run_dir)?.status()?;
    if args.json {
        output::json(&node)?;
    } else {
        output::line(
            view::View::of(&node, std::time::SystemTime::now())
                .text()
                .trim_end(),
        )?;
    }
    Ok(Exit::OK)
}

/// Connects to the named node, else the machine's, else the user's own. Exit 69 names what could be meant where none of
/// them answers.
pub fn connect(named: Option<&Path>) -> Result<Connection, Failure> {
    let place = named.map_or_else(place::usual, Path::to_path_buf);
    if named.is_none() && place != Path::new(driver::run_dir::SYSTEM) {
        place::own(&place)
            .map_err(|error| Failure::not_permitted(format!("{}: {error}", place.display())))?;
    }
    Connection::open(&place).map_err(|failure| {
        if named.is_some() || failure.exit != Exit::UNREACHABLE {
            return failure;
        }
        let private: Vec<String> = place::private_nodes(&place)
            .iter()
            .map(|dir| format!("`--run-dir {}`", dir.display()))
            .collect();
        if private.is_empty() {
            failure
        } else {
            Failure::new(
                failure.exit,
                format!("{failure}; or look at a private node: {}", private.join(", ")),
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_without_a_node_is_unreachable() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(connect(Some(dir.path())).unwrap_err().exit, Exit::UNREACHABLE);
    }
}
