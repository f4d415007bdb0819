//! The body of the fuzz target of the quota file: any bytes, and what must hold of whatever is read from them. `test` runs
//! it over `tests/corpus/config`.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::units::Bytes;
use super::{Capacity, Config, Source};

/// Reads `bytes` as a quota file and panics if a promise is broken: a file is right or has at least one mistake; every
/// mistake lies in the text and is one line; what is right can be shown, and asked for any time.
pub fn fuzz(bytes: &[u8]) {
    let source = match Source::new(Path::new("q.toml"), bytes) {
        Ok(source) => source,
        Err(problem) => return one_line(&problem.to_string()),
    };
    let text = source.text.clone();
    let devices = [1, 1 << 30, 1 << 40].map(|total| Capacity {
        index: total as u32 % 7,
        uuid: "GPU-1".into(),
        total: Bytes(total),
    });
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let problems = match Config::parse(&[source]) {
        Ok(config) => {
            assert!(serde_json::to_string(&config).is_ok(), "cannot be shown");
            assert!(config.in_force(now).count() <= config.tenants.len());
            config
                .not_in_force
                .iter()
                .for_each(|key| one_line(&key.to_string()));
            config.beyond(&devices, now)
        }
        Err(problems) => {
            assert!(!problems.0.is_empty(), "wrong without a mistake");
            problems.0
        }
    };
    let lines = text.matches('\n').count() + 1;
    for problem in problems {
        assert!(problem.line <= lines, "{problem} of {lines} lines");
        one_line(&problem.to_string());
    }
}

fn one_line(told: &str) {
    assert!(
        !told.is_empty() && !told.contains(['\n', '\r', '\0', '\u{1b}']),
        "{told:?}"
    );
}
