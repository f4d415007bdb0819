//! The table of `docs/memory.md`, the driver's allocating functions and the tests it names.

use std::fs;

use driver::{Class, table::ROWS};

use super::files_with;
use crate::harness::root;

/// The rows: entry points, what is charged, what gives it back, tests.
fn rows() -> Vec<[String; 4]> {
    let text = fs::read_to_string(root().join("docs/memory.md")).expect("the document can be read");
    let table = text
        .lines()
        .skip_while(|line| !line.starts_with("| entry point |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    table
        .map(|line| {
            let inner = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
            let cells: Vec<&str> = inner.expect("a row").split('|').map(str::trim).collect();
            let [names, charged, back, tests] = cells[..] else {
                panic!("four cells in {line}")
            };
            [names, charged, back, tests].map(str::to_owned)
        })
        .collect()
}

fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_allocating_function_is_in_one_row_of_the_table() {
    let rows = rows();
    for row in ROWS.iter().filter(|row| row.class == Class::Alloc) {
        let found = rows
            .iter()
            .filter(|[names, ..]| quoted(names).contains(&row.base));
        assert_eq!(found.count(), 1, "{} in docs/memory.md", row.base);
    }
    for [names, ..] in &rows {
        for name in quoted(names) {
            assert!(ROWS.iter().any(|row| row.base == name), "there is no {name}");
        }
    }
}

#[test]
fn what_is_charged_has_a_hook_in_all_its_variants_and_a_test() {
    let sources: String = files_with("rs")
        .iter()
        .map(|path| fs::read_to_string(path).expect("a source can be read"))
        .collect();
    for [names, charged, _, tests] in rows() {
        for test in quoted(&tests) {
            assert!(
                sources.contains(&format!("fn {test}()")),
                "{names}: no test {test}"
            );
        }
        if charged.starts_with("not") {
            assert!(
                tests.starts_with("none: ") || !quoted(&tests).is_empty(),
                "{names}"
            );
            continue;
        }
        assert!(!tests.is_empty(), "{names}: no test is named");
        for row in ROWS.iter().filter(|row| quoted(&names).contains(&row.base)) {
            assert_ne!(row.handler, "forward", "{} is charged by nobody", row.name);
        }
    }
}
