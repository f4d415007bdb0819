//! `stint status`: the node once, as JSON or as tables (`status/view.rs`), which `top` shows live.

pub mod view;

use std::path::{Path, PathBuf};

use crate::cli::StatusArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::protocol::{Connection, SOCKET};

/// Runs the verb.
pub fn main(args: StatusArgs, run_dir: Option<&Path>) -> Result<Exit, Failure> {
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
    let place = match named {
        Some(named) => named.to_path_buf(),
        None => default_place(),
    };
    Connection::open(&place).map_err(|failure| {
        if named.is_some() || failure.exit != Exit::UNREACHABLE {
            return failure;
        }
        let private: Vec<String> = private_nodes(&place)
            .iter()
            .map(|dir| format!("`--run-dir {}`", dir.display()))
            .collect();
        if private.is_empty() {
            failure
        } else {
            Failure::new(
                failure.exit,
                format!(
                    "{failure}; or look at a private node of `stint run`: {}",
                    private.join(", ")
                ),
            )
        }
    })
}

fn default_place() -> PathBuf {
    let system = PathBuf::from(driver::run_dir::SYSTEM);
    if system.join(SOCKET).exists() {
        system
    } else {
        driver::run_dir::default_for_user()
    }
}

/// Run directories of `stint run` below `place`.
fn private_nodes(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("run-"))
        .map(|entry| entry.path())
        .filter(|dir| dir.join(SOCKET).exists())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_nodes_are_found_by_their_sockets() {
        let dir = tempfile::tempdir().unwrap();
        for (name, socket) in [("run-7", true), ("run-8", false), ("other", true)] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            if socket {
                std::fs::write(dir.path().join(name).join(SOCKET), "").unwrap();
            }
        }
        assert_eq!(private_nodes(dir.path()), [dir.path().join("run-7")]);
        assert_eq!(private_nodes(Path::new("/nowhere")), Vec::<PathBuf>::new());
        assert_eq!(connect(Some(dir.path())).unwrap_err().exit, Exit::UNREACHABLE);
    }
}
