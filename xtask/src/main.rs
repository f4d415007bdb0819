//! `cargo xtask`: builds, shows, tests and measures Stint with nothing but a Rust toolchain and a C compiler.
//!
//! Reads the command line and calls one file per command. Next: `build.rs` (what everything else starts with),
//! `test.rs`, `bench.rs`, `dist.rs`; they use `layout.rs` (where files are), `inner.rs` (commands with a clean environment) and
//! `steps.rs` (named, timed steps and the list of skips).

mod artefacts;
mod bench;
mod dist;
mod fuzz;
mod inner;
mod layout;
mod link;
mod preload;
mod python;
mod steps;
mod symbols;
mod system;
mod test;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::{layout::Layout, steps::Steps};

const USAGE: &str = "\
cargo xtask build                                build every artefact into target/stint
cargo xtask demo [ARGS of stint demo]            build, then show the promises kept on the stand-in GPU
cargo xtask test [--long] [--clients all] [FILTER]   build, then run every test; what is skipped is said at the end
cargo xtask bench [FILTER]                       instruction counts and times; `starts`: what is added to the start of 43 programs
cargo xtask fuzz [SECONDS]                       bytes nobody meant, for every reader of what others write; seconds per reader
cargo xtask dist [--version X] [--as-built]      packages and a tarball under target/dist; --as-built: of what `build` left, for tests
cargo xtask deny                                 licences, sources and bans of all dependencies
cargo xtask link --soname NAME --names FILE --out FILE [--node VERSION] [--beside FILE]   one more library out of the stand-in's archive";

fn main() -> ExitCode {
    let mut steps = Steps::default();
    let outcome = run(&mut steps);
    steps.summary();
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one command. The exit code is that of the program it ends in (`stint demo`), else success.
fn run(steps: &mut Steps) -> Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    let layout = Layout::find()?;
    match command.as_str() {
        "build" => artefacts::build(steps, &layout)?,
        "demo" => {
            artefacts::build(steps, &layout)?;
            return demo(steps, &layout, &rest);
        }
        "test" => test::test(steps, &layout, &test::Options::parse(&rest)?)?,
        "bench" => bench::bench(steps, &layout, &rest)?,
        "fuzz" => fuzz::fuzz(steps, &layout, fuzz::parse(&rest)?)?,
        "dist" => dist::dist(steps, &layout, &dist::Options::parse(&rest)?)?,
        "deny" => test::deny(steps, &layout)?,
        "link" => link::command(&layout, &rest)?,
        "help" | "--help" | "-h" => println!("{USAGE}"),
        other => bail!("unknown command {other:?}\n{USAGE}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Becomes `stint demo`: its output and its exit code are what the caller sees.
fn demo(steps: &mut Steps, layout: &Layout, arguments: &[String]) -> Result<ExitCode> {
    steps.silence();
    let status = inner::command(layout.stint())
        .arg("demo")
        .args(arguments)
        .status()?;
    Ok(ExitCode::from(
        status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(1),
    ))
}
