//! `cargo xtask bench`: instruction counts and times of what Stint adds to a program.

use anyhow::Result;

use crate::{artefacts, inner, layout::Layout, steps::Steps};

/// Runs all benches, or those whose name contains a filter.
pub fn bench(steps: &mut Steps, layout: &Layout, filter: &[String]) -> Result<()> {
    artefacts::build(steps, layout)?;
    steps.step("benches", |_| {
        let mut command = inner::cargo(layout);
        command
            .args(["bench", "--workspace", "--benches", "--"])
            .args(filter)
            .env("STINT_TEST_ARTEFACTS", layout.artefacts());
        inner::run(&mut command)
    })
}
