//! The driver table is complete: names, versions and classes against lists of what real runtimes look up.

use std::collections::BTreeSet;

use driver::table::{Class, ROWS, SYMBOLS, StreamApi, resolve};

/// The driver's names, and what real runtimes ask for: `name version flags symbol`.
const NAMES: &str = include_str!("../lists/driver-names.txt");
const LOOKUPS: &str = include_str!("../lists/lookups.txt");

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD: &str = "2";

fn lines(list: &str) -> impl Iterator<Item = &str> {
    list.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
}

#[test]
fn every_known_driver_function_has_a_row() {
    let known: BTreeSet<&str> = SYMBOLS.iter().map(|symbol| symbol.name).collect();
    let missing: Vec<&str> = lines(NAMES).filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "no row in driver/src/table.rs: {missing:?}");
}

#[test]
fn lookups_of_real_runtimes_find_the_symbol_they_should() {
    let mut wrong = Vec::new();
    for line in lines(LOOKUPS) {
        let [name, version, flags, symbol] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("malformed: {line}")
        };
        let api = if flags == PER_THREAD {
            StreamApi::PerThread
        } else {
            StreamApi::Legacy
        };
        let found =
            resolve(name, version.parse().expect("a version is a number"), api).map(|id| id.symbol().name);
        if found != Some(symbol) {
            wrong.push(format!("{line}: the table says {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_of_rows_and_symbols_are_unique() {
    let rows: BTreeSet<&str> = ROWS.iter().map(|row| row.name).collect();
    let symbols: BTreeSet<&str> = SYMBOLS.iter().map(|symbol| symbol.name).collect();
    assert_eq!((rows.len(), symbols.len()), (ROWS.len(), SYMBOLS.len()));
}

/// Words in a name that mean device memory or work; whoever adds such a function has to say what it does.
const MEANS_MEMORY: [&str; 9] = [
    "MemAlloc",
    "MemHostAlloc",
    "MemCreate",
    "ArrayCreate",
    "Array3DCreate",
    "MemHostRegister",
    "IpcOpenMem",
    "ImportFromShareable",
    "PrimaryCtxRetain",
];
const MEANS_WORK: [&str; 10] = [
    "cuLaunch",
    "cuMemcpy",
    "cuMemset",
    "cuGraphLaunch",
    "StreamWriteValue",
    "StreamWaitValue",
    "StreamBatchMemOp",
    "MemPrefetch",
    "BatchAsync",
    "cuFabricCpy",
];

#[test]
fn whatever_allocates_or_works_is_classified_so() {
    let of = |words: &[&str], classes: &[Class]| -> Vec<&str> {
        let named = |name: &str| words.iter().any(|word| name.contains(word)) && !name.ends_with("GetParams");
        ROWS.iter()
            .filter(|row| named(row.name) && !classes.contains(&row.class))
            .map(|row| row.name)
            .collect()
    };
    let memory = of(&MEANS_MEMORY, &[Class::Alloc]);
    assert!(
        memory.is_empty(),
        "allocate by their name, classified otherwise: {memory:?}"
    );
    let work = of(&MEANS_WORK, &[Class::Work, Class::Alloc, Class::Free]);
    assert!(
        work.is_empty(),
        "put work on a device by their name, classified otherwise: {work:?}"
    );
}

#[test]
fn per_thread_twins_follow_their_suffix() {
    for symbol in SYMBOLS {
        let suffixed = symbol.name.ends_with("_ptsz") || symbol.name.ends_with("_ptds");
        assert_eq!(
            suffixed,
            symbol.stream_api == StreamApi::PerThread,
            "{}",
            symbol.name
        );
    }
}
