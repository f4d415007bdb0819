//! The files of `tests/corpus/config`: each broken one has exactly the mistakes written beside it, each good one has none;
//! and the parser's body for fuzzing runs over all of them, whole and damaged.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn corpus(part: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus/config")
        .join(part);
    let entries = fs::read_dir(&directory).unwrap();
    let toml = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "toml");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(toml).collect();
    found.sort();
    found
}

/// What `stint config check --devices 80GiB:2` tells of the file at `path`, without its directory.
fn told(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    let name = Path::new(path.file_name().unwrap());
    let config = Source::new(name, &bytes).map_err(|problem| Problems(vec![problem]));
    let config = config.and_then(|source| Config::parse(&[source]));
    let problems = match config {
        Ok(config) => Problems(config.beyond(&devices(&[80, 80]), EPOCH)),
        Err(problems) => problems,
    };
    problems.to_string()
}

#[test]
fn each_broken_file_has_exactly_the_mistakes_written_beside_it() {
    let mut wrong = Vec::new();
    let broken = corpus("broken");
    assert!(broken.len() >= 60, "{} files", broken.len());
    for path in broken {
        let expected = fs::read_to_string(path.with_extension("expected")).unwrap_or_default();
        let found = told(&path);
        if found.is_empty() || found != expected.trim_end() {
            wrong.push(format!(
                "{}:\nfound\n{found}\nexpected\n{expected}",
                path.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_good_file_has_no_mistake() {
    for path in corpus("good") {
        assert_eq!(told(&path), "", "{}", path.display());
    }
}

#[test]
fn the_parser_holds_what_it_promises_for_damaged_files_too() {
    let mut state = 1u64;
    let mut random = move |below: usize| {
        // Knuth's multiplier: the same damage in every run.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    for path in corpus("broken").into_iter().chain(corpus("good")) {
        let whole = fs::read(&path).unwrap();
        fuzz(&whole);
        for _ in 0..20 {
            let mut bytes = whole.clone();
            for _ in 0..=random(4) {
                let place = random(bytes.len());
                match random(4) {
                    0 => bytes.truncate(place),
                    1 => bytes.insert(place.min(bytes.len()), random(256) as u8),
                    2 if !bytes.is_empty() => bytes[place] = b"[]{}\"'=,.\n#-0"[random(13)],
                    _ if !bytes.is_empty() => drop(bytes.drain(place..(place + random(30)).min(bytes.len()))),
                    _ => {}
                }
            }
            fuzz(&bytes);
        }
    }
}

#[test]
fn a_file_of_mistakes_alone_is_told_of_as_far_as_anybody_would_read() {
    let many = "[defaults]\n".to_string() + &(0..20_000).map(|n| format!("k{n} = 1\n")).collect::<String>();
    let problems = Config::parse(&[Source::new(Path::new("q.toml"), many.as_bytes()).unwrap()]).unwrap_err();
    assert_eq!(problems.0.len(), 101);
    let last = problems.0[100].to_string();
    assert_eq!(
        last,
        "q.toml: 100 mistakes: what may be wrong beyond them was not looked for"
    );
    let huge = vec![b'#'; Source::LONGEST + 1];
    let error = Source::new(Path::new("q.toml"), &huge).unwrap_err().to_string();
    assert_eq!(
        error,
        "q.toml: 1048577 bytes are more than a quota file may have (1048576)"
    );
    fuzz(&"[tenants.a]\nmatch = [".repeat(1000).into_bytes());
    fuzz(&vec![b'['; Source::LONGEST]);
    fuzz(&[b"a=".as_slice(), &vec![b'['; 500_000]].concat());
    fuzz(&[b"a=".as_slice(), &b"{a=".repeat(300_000)].concat());
    let tenants: String = (0..20_000)
        .map(|n| format!("[tenants.t{n}]\nshare=\"1%\"\n"))
        .collect();
    fuzz(tenants.as_bytes());
}
