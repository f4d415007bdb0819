//! `stint completions`: what a shell needs to complete our command line, made from the same description that parses it.

use clap_complete::Shell;

use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell; `stint completions bash > /etc/bash_completion.d/stint`, or `eval "$(stint completions bash)"`
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// Prints the script.
pub fn main(args: &Args) -> Result<Exit, Failure> {
    output::line(script(args.shell)?.trim_end())?;
    Ok(Exit::OK)
}

fn script(shell: Shell) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut cli::shown(), "stint", &mut bytes);
    String::from_utf8(bytes).map_err(Failure::failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::{CommandFactory, ValueEnum};

    #[test]
    fn every_shell_completes_every_verb_that_is_shown_and_no_other() {
        let command = Cli::command();
        for shell in Shell::value_variants() {
            let script = script(*shell).unwrap();
            for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
                assert!(script.contains(verb.get_name()), "{shell}: {}", verb.get_name());
            }
            for hidden in ["private-node", "keeper"] {
                assert!(!script.contains(hidden), "{shell}: {hidden}");
            }
        }
    }
}
