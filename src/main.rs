//! `stint`: the one binary. Parses the command line (`src/cli.rs`) and hands it to the verb's file.
#![deny(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    stint::cli::main()
}
