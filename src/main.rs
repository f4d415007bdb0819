//! `stint`: the one binary. Parses the command line (`src/cli.rs`) and hands it to the verb's file.

use std::process::ExitCode;

fn main() -> ExitCode {
    stint::cli::main()
}
