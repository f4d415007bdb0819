//! `cargo xtask bench`: instruction counts and times of what Stint adds to a program.

use anyhow::Result;

use crate::{artefacts, inner, layout::Layout, steps::Steps};

/// Runs all benches, or those whose name contains a filter. `policies` alone needs no artefacts. `starts` takes minutes and is run only by its name.
pub fn bench(steps: &mut Steps, layout: &Layout, filter: &[String]) -> Result<()> {
    if filter == ["policies"] {
        return steps.step("policies in virtual time", |_| {
            let mut command = inner::cargo(layout);
            inner::run(command.args(["bench", "-p", "stint", "--bench", "policies"]))
        });
    }
    artefacts::build(steps, layout)?;
    if filter == ["starts"] {
        return steps.step("what is added to the start of programs", |_| {
            let mut command = inner::cargo(layout);
            command.args([
                "test",
                "-p",
                "stint",
                "--test",
                "main",
                "harmless::starts",
                "--",
                "--nocapture",
            ]);
            command.env("STINT_TEST_LONG", "1");
            inner::run(command.env("STINT_TEST_ARTEFACTS", layout.artefacts()))
        });
    }
    if filter.is_empty() {
        steps.step("instructions added per call", |_| {
            let mut command = inner::cargo(layout);
            command.args([
                "test",
                "--workspace",
                "--test",
                "main",
                "instructions::",
                "--",
                "--nocapture",
            ]);
            inner::run(command.env("STINT_TEST_ARTEFACTS", layout.artefacts()))
        })?;
    }
    steps.step("times", |_| {
        let mut command = inner::cargo(layout);
        command
            .args(["bench", "-p", "stint", "-p", "stint-ledger", "--benches", "--"])
            .args(filter);
        inner::run(command.env("STINT_TEST_ARTEFACTS", layout.artefacts()))
    })
}
