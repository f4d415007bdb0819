//! `docs/first-five-minutes.md` is what really happens: each command of its transcript is typed on a machine, by root after
//! `#` and by alice after `$`, and must answer what is written there.

use super::*;

/// Stands for any text within a line, alone for any number of lines.
const ANYTHING: &str = "…";

/// One command and what it answers.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    by_root: bool,
    command: String,
    answer: Vec<String>,
}

/// The steps in a document's `console` blocks; a command goes on in lines that begin with `> `.
fn steps(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let blocks = document
        .split("```console\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    for line in blocks.flat_map(str::lines) {
        if let Some((by_root, command)) = line
            .strip_prefix("# ")
            .map(|command| (true, command))
            .or_else(|| line.strip_prefix("$ ").map(|command| (false, command)))
        {
            steps.push(Step {
                by_root,
                command: command.to_owned(),
                answer: Vec::new(),
            });
        } else if let Some(step) = steps.last_mut() {
            match line.strip_prefix("> ") {
                Some(more) => step.command.push_str(&format!("\n{more}")),
                None => step.answer.push(line.to_owned()),
            }
        }
    }
    steps
}

/// Whether `said` is what `written` says. How wide a column is depends on what is in it.
fn is_answer(written: &[String], said: &[&str]) -> bool {
    let Some((first, rest)) = written.split_first() else {
        return said.is_empty();
    };
    if first == ANYTHING {
        return (0..=said.len()).any(|skipped| is_answer(rest, &said[skipped..]));
    }
    said.split_first()
        .is_some_and(|(line, more)| is_line(first, line) && is_answer(rest, more))
}

fn is_line(written: &str, said: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (written, said) = (plain(written), plain(said));
    let parts: Vec<&str> = written.split(ANYTHING).collect();
    let [first, middle @ .., last] = parts.as_slice() else {
        return written == said;
    };
    let Some(mut open) = said.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else {
        return false;
    };
    middle.iter().all(|part| match open.split_once(part) {
        Some((_, rest)) => {
            open = rest;
            true
        }
        None => false,
    })
}

#[test]
fn the_first_five_minutes_are_as_the_document_says() {
    let Some(machine) = machine("an administrator's first five minutes", &[VERSION]) else {
        return;
    };
    let document =
        fs::read_to_string(root().join("docs/first-five-minutes.md")).expect("the document can be read");
    let mut transcript = String::new();
    let mut wrong = Vec::new();
    for step in steps(&document) {
        let typed = step.command.replace("VERSION", VERSION);
        let said = if step.by_root {
            machine.sh(&format!("exec 2>&1; cd {PACKAGES}; {typed}"))
        } else {
            let mut command = machine.command("setpriv");
            command.args(["--reuid=alice", "--regid=alice", "--init-groups", "sh", "-c"]);
            outcome::run(command.arg(format!("exec 2>&1; cd ~alice; export HOME=$PWD; {typed}")))
        };
        transcript.push_str(&format!(
            "{} {}\n{}",
            if step.by_root { '#' } else { '$' },
            step.command,
            said.stdout
        ));
        if !is_answer(&step.answer, &said.stdout.lines().collect::<Vec<_>>()) {
            wrong.push(step);
        }
    }
    assert!(
        wrong.is_empty(),
        "answered otherwise: {wrong:#?}\nthe whole transcript:\n{transcript}"
    );
}

#[test]
fn a_transcript_is_read_as_it_is_typed() {
    let read =
        steps("text\n```console\n# cat <<E\n> one\n> E\none\n$ id\nuid …\n…\n```\nmore\n```\n# none\n```\n");
    let answer = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert_eq!(read.len(), 2);
    assert_eq!(
        (read[0].command.as_str(), read[0].by_root),
        ("cat <<E\none\nE", true)
    );
    assert_eq!(
        read[1],
        Step {
            by_root: false,
            command: "id".into(),
            answer: answer(&["uid …", "…"])
        }
    );
    assert!(is_answer(&read[1].answer, &["uid 7"]) && is_answer(&read[1].answer, &["uid 7", "more"]));
    assert!(!is_answer(&read[1].answer, &[]) && !is_answer(&read[1].answer, &["gid 7"]));
    assert!(
        is_line("a  … c", "a b  c") && is_line("…", "") && !is_line("a … c", "a b d") && !is_line("a", "b")
    );
    assert!(is_line("x … y … z", "x 1 y 2 z") && !is_line("x … y … z", "x 1 2 z"));
}
