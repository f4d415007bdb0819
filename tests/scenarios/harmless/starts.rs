//! What the shim adds to the start of programs that never use a GPU, as time of processors: that of a clock would be the
//! machine's other work as well. `cargo xtask bench starts` takes the table of docs/performance.md, of all programs that
//! `harmless/programs.rs` lists, each with all that its script starts; the usual test takes one of few and short ones.

use std::fmt::Write;

use super::*;

/// What is timed: its name, the command, and numpy's directory where it needs that.
struct Start {
    name: String,
    words: Vec<&'static str>,
    numpy: Option<PathBuf>,
}

fn starts() -> Vec<Start> {
    if long() {
        let whole = |(program, numpy): (&Program, _)| Start {
            name: program.name.to_owned(),
            words: vec!["sh", "-c", program.script],
            numpy,
        };
        return rows().into_iter().map(whole).collect();
    }
    let short = |words: &&[&'static str]| {
        let usable = Command::new(words[0]).args(&words[1..]).output();
        if usable.is_err() {
            skip(&format!("start of {}", words[0]), "it is not here");
            return None;
        }
        Some(Start {
            name: words.join(" "),
            words: words.to_vec(),
            numpy: None,
        })
    };
    programs::STARTS.iter().filter_map(short).collect()
}

/// Microseconds of processors that one run takes.
#[track_caller]
fn run_once(node: &Node, start: &Start, capped: bool) -> i64 {
    let scratch = Scratch::new(node);
    let processors = program("processors", Link::Static);
    let mut command = if capped {
        node.capped_command(processors)
    } else {
        node.bare_command(processors)
    };
    command.args(&start.words).current_dir(&scratch.0);
    command.env("HOME", &scratch.0).env("LC_ALL", "C.UTF-8");
    command.envs(start.numpy.as_ref().map(|numpy| ("PYTHONPATH", numpy)));
    let outcome = run(&mut command).success();
    assert_ne!(outcome.number("exit"), 127, "{}", start.name);
    outcome.number("microseconds")
}

/// Medians by turns, bare and capped.
#[track_caller]
fn medians(node: &Node, start: &Start, turns: usize) -> [i64; 2] {
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..2 * turns {
        let capped = turn % 2 == 1;
        times[usize::from(capped)].push(run_once(node, start, capped));
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[turns / 2]
    })
}

#[test]
fn what_the_shim_adds_to_the_start_of_programs_is_told() {
    let node = Node::start(Setup::cap("1GiB"));
    let turns = if long() { 15 } else { 5 };
    let mut table = String::from(
        "| program, with all it starts | alone, ms | with the shim, ms | added, ms |\n| --- | --- | --- | --- |\n",
    );
    let starts = starts();
    let mut added = Vec::new();
    for start in &starts {
        let [bare, capped] = medians(&node, start, turns);
        let shown = |microseconds: i64| microseconds as f64 / 1e3;
        added.push(capped - bare);
        writeln!(
            table,
            "| {} | {:.2} | {:.2} | {:+.2} |",
            start.name,
            shown(bare),
            shown(capped),
            shown(capped - bare)
        )
        .expect("a string can be written to");
    }
    added.sort_unstable();
    // Seen with --nocapture; figures, not judged.
    println!("{table}\nmedian of what is added: {} us", added[added.len() / 2]);
    assert_eq!(table.lines().count(), 2 + starts.len(), "{table}");
    assert!(starts.len() > 1);
}
