//! `cargo xtask fuzz`: the fuzzed readers (`tests/fuzz/engine.rs`), each for some seconds with inputs that are new every time.

use anyhow::{Context, Result, ensure};

use crate::{inner, layout::Layout, steps::Steps};

/// Where readers of what others write are, in packages.
const PACKAGES: [&str; 5] = ["stint", "stint-cgroup", "stint-driver", "stint-ledger", "simgpu"];

/// Per target, when nobody says.
const SECONDS: u64 = 20;

/// Reads the words after `fuzz`: seconds per target.
pub fn parse(words: &[String]) -> Result<u64> {
    match words {
        [] => Ok(SECONDS),
        [seconds] => {
            let seconds = seconds
                .parse()
                .with_context(|| format!("fuzz {seconds:?}: write whole seconds"))?;
            ensure!(
                (1..=86_400).contains(&seconds),
                "fuzz {seconds}: write 1 to 86400 seconds"
            );
            Ok(seconds)
        }
        _ => anyhow::bail!("fuzz takes one number, the seconds per target"),
    }
}

/// Fuzzes every target for so long, one after the other.
pub fn fuzz(steps: &mut Steps, layout: &Layout, seconds: u64) -> Result<()> {
    let mut command = inner::cargo(layout);
    command.arg("test");
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    // The ledger's targets are among its integration tests.
    command.args([
        "--lib",
        "--test",
        "behaviour",
        "--",
        "fuzzed::",
        "--nocapture",
        "--test-threads=1",
        "--quiet",
    ]);
    command.env("STINT_FUZZ_SECONDS", seconds.to_string());
    steps.step("fuzz", |_| inner::run(&mut command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_a_number_of_them() {
        let parse = |words: &[&str]| parse(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>());
        assert_eq!(parse(&[]).unwrap(), SECONDS);
        assert_eq!(parse(&["7"]).unwrap(), 7);
        for wrong in [&["0"][..], &["5s"], &["-1"], &["1", "2"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
