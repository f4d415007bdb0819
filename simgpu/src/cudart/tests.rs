//! Every name of both releases is there, once.

use super::exports::{PLAIN, STREAMED};
use super::passed::PASSED;
use super::release::Release;
use super::unsupported::UNSUPPORTED;
use driver::StreamApi;
use driver::table::resolve;
use std::collections::BTreeSet;

/// Written as C functions where they are, since they differ in what they return.
const ELSEWHERE: &[&str] = &[
    "__cudaInitModule",
    "__cudaPushCallConfiguration",
    "__cudaRegisterFatBinary",
    "__cudaRegisterFatBinaryEnd",
    "__cudaRegisterFunction",
    "__cudaRegisterHostVar",
    "__cudaRegisterManagedVar",
    "__cudaRegisterVar",
    "__cudaUnregisterFatBinary",
    "cudaCreateChannelDesc",
    "cudaGetErrorName",
    "cudaGetErrorString",
    "cudaGetLastError",
    "cudaPeekAtLastError",
];

fn names(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
}

#[test]
fn every_name_of_both_releases_is_exported_once() {
    let passed: Vec<&str> = PASSED.iter().map(|(symbol, _)| *symbol).collect();
    let lists = [PLAIN, STREAMED, &passed, UNSUPPORTED, ELSEWHERE];
    let known: BTreeSet<&str> = lists.iter().flat_map(|list| list.iter().copied()).collect();
    assert_eq!(
        known.len(),
        lists.iter().map(|list| list.len()).sum::<usize>(),
        "a name is in two tables"
    );
    let wanted: BTreeSet<&str> = names(include_str!("../../symbols/cudart-12.txt"))
        .chain(names(include_str!("../../symbols/cudart-13.txt")))
        .collect();
    let missing: Vec<_> = wanted.difference(&known).collect();
    let needless: Vec<_> = known.difference(&wanted).collect();
    assert!(
        missing.is_empty() && needless.is_empty(),
        "missing {missing:?}, in no release {needless:?}"
    );
}

/// What is handed on must have been asked for by the release that exports it.
#[test]
fn what_is_passed_on_was_looked_up() {
    let releases = [
        (Release::Twelve, include_str!("../../symbols/cudart-12.txt")),
        (Release::Thirteen, include_str!("../../symbols/cudart-13.txt")),
    ];
    for (release, exported) in releases {
        let asked: BTreeSet<&str> = names(release.lookups())
            .filter_map(|line| {
                let [name, version, flags] = line.split(' ').collect::<Vec<_>>()[..] else {
                    return None;
                };
                let api = if flags == "2" {
                    StreamApi::PerThread
                } else {
                    StreamApi::Legacy
                };
                let symbol = resolve(name, version.parse().ok()?, api)?.symbol();
                Some(symbol.row.row().name)
            })
            .collect();
        let exported: BTreeSet<&str> = names(exported).collect();
        let needed = PASSED.iter().filter(|(symbol, _)| exported.contains(symbol));
        let lacking: Vec<_> = needed.filter(|(_, row)| !asked.contains(row)).collect();
        assert!(lacking.is_empty(), "{release:?}: {lacking:?}");
    }
}

/// What PyTorch imports and the stand-in answers with an error: graphs and their like, nothing it needs for
/// tensors, streams, events and memory.
#[test]
fn what_pytorch_needs_for_tensors_is_written() {
    let imported = names(include_str!("../../../tests/lists/torch-runtime-names.txt"));
    let lacking: BTreeSet<&str> = imported.filter(|name| UNSUPPORTED.contains(name)).collect();
    let graphs =
        |name: &str| name.contains("Graph") || name.contains("Capture") || name.contains("UserObject");
    let others: Vec<_> = lacking.into_iter().filter(|name| !graphs(name)).collect();
    assert!(others.is_empty(), "{others:?}");
}
