//! The table of `docs/security.md` and the tests it names.

use std::fs;

use super::files_with;
use crate::harness::root;

/// The rows of the table: way, outcome, tests.
fn rows() -> Vec<[String; 3]> {
    let text = fs::read_to_string(root().join("docs/security.md")).expect("the document can be read");
    let table = text
        .lines()
        .skip_while(|line| !line.starts_with("| way |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    table
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [way, outcome, tests] = cells[..] else {
                panic!("three cells in {line}")
            };
            [way, outcome, tests].map(str::to_owned)
        })
        .collect()
}

#[test]
fn every_way_around_a_cap_names_the_test_that_shows_its_outcome() {
    let sources: String = files_with("rs")
        .iter()
        .map(|path| fs::read_to_string(path).expect("a source can be read"))
        .collect();
    let rows = rows();
    assert!(rows.len() > 25, "the table is there");
    for [way, outcome, tests] in rows {
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        let known = ["capped", "refused", "reported", "starts as it is"];
        if outcome.contains("not detected") {
            continue;
        }
        assert!(
            known.iter().any(|word| outcome.starts_with(word)),
            "{way}: {outcome}"
        );
        assert!(!names.is_empty(), "{way}: no test is named");
        for name in names {
            assert!(sources.contains(&format!("fn {name}()")), "{way}: no test {name}");
        }
    }
}

#[test]
fn every_test_of_a_way_around_a_cap_is_in_the_table() {
    let named: String = rows().into_iter().map(|[_, _, tests]| tests).collect();
    let directory = root().join("tests/scenarios/bypass");
    for file in fs::read_dir(directory).expect("the tests are there") {
        let text = fs::read_to_string(file.expect("a file").path()).expect("a source can be read");
        let tests = text.split("#[test]\nfn ").skip(1);
        for name in tests.filter_map(|rest| rest.split('(').next()) {
            assert!(named.contains(&format!("`{name}`")), "{name} is in no row");
        }
    }
}
