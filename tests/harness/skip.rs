//! One line for each thing that could not be tested here, and why.

use std::{fs::OpenOptions, io::Write};

/// Says that `what` is left out because of `why`. `cargo xtask test` lists these lines at its end.
pub fn skip(what: &str, why: &str) {
    let line = format!("{what}: {}\n", why.trim().replace('\n', " | "));
    // Written to the stream itself: the test runner keeps what `eprintln!` prints of a passing test.
    let _closed_stderr = std::io::stderr().write_all(format!("skipped  {line}").as_bytes());
    if let Some(path) = std::env::var_os("STINT_TEST_SKIPS") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("the list of skips can be written");
    }
}
