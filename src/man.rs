//! `stint man`: writes the man pages, one for `stint` and one per verb, made from the description of the command line.
//! `cargo xtask build` runs it; packages install what it wrote.

use std::path::PathBuf;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::exit::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the pages go; made if it is not there
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Writes `stint.1`, `stint-VERB.1`, ….
pub fn main(args: &Args) -> Result<Exit, Failure> {
    let told = |error| Failure::failed(format!("{}: {error}", args.directory.display()));
    std::fs::create_dir_all(&args.directory).map_err(told)?;
    clap_mangen::generate_to(Cli::command(), &args.directory).map_err(told)?;
    Ok(Exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_page_for_every_verb_that_is_shown_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("man1");
        main(&Args {
            directory: directory.clone(),
        })
        .unwrap();
        let command = Cli::command();
        for verb in command.get_subcommands() {
            let page = directory.join(format!("stint-{}.1", verb.get_name()));
            assert_eq!(page.exists(), !verb.is_hide_set(), "{}", page.display());
            if let (Ok(text), Some(about)) = (std::fs::read_to_string(&page), verb.get_about()) {
                let first = about
                    .to_string()
                    .split(' ')
                    .next()
                    .unwrap_or_default()
                    .to_string();
                assert!(text.contains(&first), "{text}");
            }
        }
        let whole = std::fs::read_to_string(directory.join("stint.1")).unwrap();
        assert!(whole.contains("stint\\-run(1)"), "{whole}");
    }
}
