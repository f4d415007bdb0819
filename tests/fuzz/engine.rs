//! Puts a plain function to the test with bytes nobody meant: first the corpus, then mutations of it. A part of the code that
//! reads what others wrote includes this file in its tests, in a module `fuzzed`.
//!
//! An ordinary test run makes a few hundred mutations, always the same; `cargo xtask fuzz SECONDS` makes new ones for that
//! long. An input that panics, or that keeps the function busy for a minute, is written to `target/fuzz`; mend the fault and
//! put the file into the directory `fuzz/NAME` of `tests/corpus`, where every test run tries it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Set by `cargo xtask fuzz`: how long each target is fuzzed.
const SECONDS: &str = "STINT_FUZZ_SECONDS";
/// Mutations in an ordinary test run.
const FEW: u64 = 400;
/// How long one input may take before it counts as a loop.
const PATIENCE: Duration = Duration::from_secs(60);
/// No input grows longer, in bytes.
const LONGEST: usize = 64 << 10;

/// Runs `body` over `seeds`, the corpus of `name`, and mutations of both.
pub fn fuzz(name: &str, mut seeds: Vec<Vec<u8>>, mut body: impl FnMut(&[u8])) {
    seeds.extend(corpus(&format!("fuzz/{name}")));
    seeds.push(Vec::new());
    let watch = Watch::start(name);
    for seed in &seeds {
        watch.run(seed, &mut body);
    }
    let seconds = std::env::var(SECONDS).ok().and_then(|text| text.parse().ok());
    let mut dice = Dice(match seconds {
        Some(_) => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(1, |now| now.as_nanos() as u64),
        None => 0x5717,
    });
    let (start, mut count) = (Instant::now(), 0);
    let more = |count| match seconds {
        Some(seconds) => start.elapsed() < Duration::from_secs(seconds),
        None => count < FEW,
    };
    while more(count) {
        watch.run(&mutated(&seeds, &mut dice), &mut body);
        count += 1;
    }
    if seconds.is_some() {
        println!("{name}: {count} inputs, {} in the corpus", seeds.len());
    }
}

/// The files of `tests/corpus` in the directory `below`, in order of their names; none where there is no such directory.
pub fn corpus(below: &str) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(root().join("tests/corpus").join(below)) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

fn root() -> &'static Path {
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above
        .find(|directory| directory.join("tests/corpus").is_dir())
        .expect("the package lies below the workspace")
}

/// The input under test, kept so that a loop can be told from work, and told of.
struct Watch {
    name: String,
    input: Arc<Mutex<Vec<u8>>>,
    turn: Arc<AtomicU64>,
    /// Dropped when it is over.
    _leash: Sender<()>,
}

impl Watch {
    fn start(name: &str) -> Watch {
        let (leash, held) = channel();
        let watch = Watch {
            name: name.to_owned(),
            input: Arc::default(),
            turn: Arc::default(),
            _leash: leash,
        };
        let (name, input, turn) = (watch.name.clone(), watch.input.clone(), watch.turn.clone());
        std::thread::spawn(move || {
            let (mut seen, mut since) = (0, Instant::now());
            while held.recv_timeout(PATIENCE / 60) == Err(RecvTimeoutError::Timeout) {
                let now = turn.load(Relaxed);
                if now != seen {
                    (seen, since) = (now, Instant::now());
                } else if since.elapsed() > PATIENCE {
                    let input = input.lock().map(|input| input.clone()).unwrap_or_default();
                    eprintln!("{name}: no end after {PATIENCE:?}: {}", kept(&name, &input));
                    std::process::abort();
                }
            }
        });
        watch
    }

    fn run(&self, input: &[u8], body: &mut impl FnMut(&[u8])) {
        if let Ok(mut kept) = self.input.lock() {
            kept.clear();
            kept.extend_from_slice(input);
        }
        self.turn.fetch_add(1, Relaxed);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(input))) {
            eprintln!("{}: panicked on {}", self.name, kept(&self.name, input));
            resume_unwind(panic);
        }
    }
}

/// Writes an input where its finder looks for it; says where, or what it is.
fn kept(name: &str, input: &[u8]) -> String {
    let directory = root().join("target/fuzz");
    let sum = input.iter().fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    let path = directory.join(format!("{name}-{sum:016x}"));
    match std::fs::create_dir_all(&directory).and_then(|()| std::fs::write(&path, input)) {
        Ok(()) => path.display().to_string(),
        Err(_) => format!("{input:?}"),
    }
}

/// A generator of numbers that look random (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`; 0 where that is 0.
    fn below(&mut self, end: usize) -> usize {
        self.roll().checked_rem(end as u64).unwrap_or(0) as usize
    }
}

/// Numbers at which readers change their minds.
const EDGES: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 52,
    i64::MAX as u64,
    u64::MAX,
];

fn mutated(seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seeds[dice.below(seeds.len())].clone();
    for _ in 0..=dice.below(6) {
        let at = dice.below(bytes.len());
        let length = dice.below((bytes.len() - at).min(64) + 1);
        match dice.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 if at < bytes.len() => bytes[at] = dice.roll() as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..at + length)),
            4 => {
                let part = bytes[at..at + length].to_vec();
                bytes.splice(at..at, part);
            }
            5 => {
                let other = &seeds[dice.below(seeds.len())];
                let from = dice.below(other.len());
                let part = &other[from..from + dice.below(other.len() - from + 1)];
                bytes.splice(at..at + length, part.iter().copied());
            }
            6 => {
                let width = 1 << dice.below(4);
                let value = EDGES[dice.below(EDGES.len())].to_le_bytes();
                let end = (at + width).min(bytes.len());
                bytes[at..end].copy_from_slice(&value[..end - at]);
            }
            _ => {
                let text = EDGES[dice.below(EDGES.len())].to_string();
                bytes.splice(at..at + length, text.into_bytes());
            }
        }
        bytes.truncate(LONGEST);
    }
    bytes
}
