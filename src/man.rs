//! `stint man`: writes the man pages, one for `stint` and one per verb, made from the description of the command line.
//! `cargo xtask build` runs it; packages install what it wrote.

use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::exit::{Exit, Failure};
use crate::{cli, exit};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the pages go; made if it is not there
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Writes `stint.1`, `stint-VERB.1`, `stint-VERB-VERB.1`, ….
pub fn main(args: &Args) -> Result<Exit, Failure> {
    let told = |error| Failure::failed(format!("{}: {error}", args.directory.display()));
    std::fs::create_dir_all(&args.directory).map_err(told)?;
    let mut whole = cli::shown();
    whole.build();
    pages(&args.directory, &whole, None).map_err(told)?;
    Ok(Exit::OK)
}

/// The pages of a command and of the verbs below it. `verb`: the first word after `stint`.
fn pages(directory: &Path, command: &Command, verb: Option<&str>) -> io::Result<()> {
    let page = Man::new(command.clone());
    let mut bytes = Vec::new();
    page.render(&mut bytes)?;
    exit_status(command, verb).to_writer(&mut bytes)?;
    std::fs::write(directory.join(page.get_filename()), bytes)?;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages(directory, below, verb.or(Some(below.get_name())))?;
    }
    Ok(())
}

/// Which exit codes mean what (`exit.rs`).
fn exit_status(command: &Command, verb: Option<&str>) -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["EXIT STATUS"]);
    if verb == Some("run") {
        section.text([
            roman("That of the command, or 128 and the number of the signal that ended it, unless "),
            bold("stint run"),
            roman(" fails itself:"),
        ]);
    } else if command.has_subcommands() && verb.is_none() {
        section.text([roman("Of all verbs; the page of each has its own.")]);
    }
    for (Exit(code), meaning) in
        exit::meanings(verb).filter(|(exit, _)| verb != Some("run") || *exit != Exit::OK)
    {
        section.control("TP", []);
        section.text([bold(code.to_string())]);
        section.text([roman(meaning)]);
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

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
        let mut count = 0;
        for page in std::fs::read_dir(&directory).unwrap() {
            let page = page.unwrap().path();
            let text = std::fs::read_to_string(&page).unwrap();
            let (_, codes) = text
                .split_once(".SH \"EXIT STATUS\"\n")
                .unwrap_or_else(|| panic!("{} has no exit codes", page.display()));
            assert!(codes.contains("\\fB64\\fR\nThe command line is wrong"), "{codes}");
            let of_run = page.ends_with("stint-run.1") || page.ends_with("stint.1");
            assert_eq!(codes.contains("\\fB125\\fR"), of_run, "{}", page.display());
            count += 1;
        }
        assert!(count > 20, "{count} pages");
        assert!(directory.join("stint-config-check.1").exists());
    }
}
