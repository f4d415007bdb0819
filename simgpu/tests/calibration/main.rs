//! The timeline against what others measured on real GPUs: what the model predicts, beside the published figure.
//!
//! `cargo test -p simgpu --test calibration -- --nocapture` prints the table; `docs/simgpu-fidelity.md` says what is
//! fitted, what follows from it, and what cannot be had from a timeline. Next file of the walk: `host.rs`.

mod host;

use host::{Arrivals, Outcome, Program, kernels, play};
use simgpu::model::{DeviceConfig, Ns, Sharing};

const US: Ns = 1_000;
const MS: Ns = 1_000_000;

/// One figure of a published table.
struct Row {
    table: &'static str,
    what: &'static str,
    published: f64,
    modelled: f64,
    /// Largest relative deviation allowed.
    tolerance: f64,
    /// A parameter was chosen by this figure: it predicts nothing.
    fitted: bool,
}

fn predicted(table: &'static str, what: &'static str, published: f64, modelled: f64, tolerance: f64) -> Row {
    Row {
        table,
        what,
        published,
        modelled,
        tolerance,
        fitted: false,
    }
}

fn fitted(row: Row) -> Row {
    Row { fitted: true, ..row }
}

/// Prints the rows and wants each within its tolerance.
#[track_caller]
fn judge(rows: &[Row]) {
    for row in rows {
        let off = row.modelled / row.published - 1.0;
        println!(
            "{:<3} {:<46} published {:>9.2}  modelled {:>9.2}  {:>+6.1} % (allowed {:>4.0} %){}",
            row.table,
            row.what,
            row.published,
            row.modelled,
            100.0 * off,
            100.0 * row.tolerance,
            if row.fitted { "  fitted" } else { "" }
        );
    }
    let wrong = |row: &&Row| (row.modelled / row.published - 1.0).abs() > row.tolerance;
    let names: Vec<_> = rows.iter().filter(wrong).map(|row| row.what).collect();
    assert!(names.is_empty(), "beyond their tolerance: {names:?}");
}

fn sliced(sms: u32, switch: Ns) -> DeviceConfig {
    DeviceConfig {
        sms,
        sharing: Sharing::Sliced {
            slice: 1024 * US,
            switch,
        },
        ..DeviceConfig::default()
    }
}

/// A GV100. Its switch is fitted to one figure: how much of the throughput of two equals native slices lose (T1).
fn gv100() -> DeviceConfig {
    sliced(80, 107 * US)
}

fn program(kernels: &[Ns], arrivals: Arrivals) -> Program {
    Program {
        kernels: kernels.to_vec(),
        arrivals,
        ahead: 1,
        slice: None,
    }
}

/// The same with a slice of its own.
fn with_slice(program: &Program, slice: Ns) -> Program {
    Program {
        slice: Some(slice),
        ..program.clone()
    }
}

fn only(config: DeviceConfig, program: &Program, seconds: f64) -> Outcome {
    play(config, std::slice::from_ref(program), seconds).remove(0)
}

fn pair(config: DeviceConfig, a: &Program, b: &Program, seconds: f64) -> (Outcome, Outcome) {
    let mut both = play(config, &[a.clone(), b.clone()], seconds);
    let second = both.remove(1);
    (both.remove(0), second)
}

#[test]
fn two_inference_processes_on_a_gv100() {
    let network = kernels(200, 2 * US, 113 * US, 6_400 * US);
    let greedy = program(&network, Arrivals::Closed { gap: 20 * US });
    let rare = program(&network, Arrivals::Open { every: 32_450 * US });
    let alone = only(gv100(), &greedy, 20.0);
    // Throughput is of a program that has its next request ready.
    let ready = Program {
        ahead: 2,
        ..greedy.clone()
    };
    let (a, b) = pair(gv100(), &ready, &ready, 20.0);
    let (front, _) = pair(gv100(), &rare, &greedy, 60.0);
    // The scheduler's 75 to 25: slices of a cycle that loses as much to switches as it did.
    let (most, least) = (with_slice(&ready, 2_860 * US), with_slice(&ready, 960 * US));
    let (most, least) = pair(gv100(), &most, &least, 20.0);
    // Its third level: the background gives way at once.
    let (patient, meek) = (with_slice(&rare, 1000 * MS), with_slice(&greedy, US));
    let (urgent, _) = pair(gv100(), &patient, &meek, 60.0);
    judge(&[
        fitted(predicted("T1", "alone, requests/s", 155.7, alone.rate(), 0.01)),
        predicted("T1", "alone, p50 ms", 6.49, alone.latency(500), 0.02),
        fitted(predicted(
            "T1",
            "native slices, first, requests/s",
            70.5,
            a.rate(),
            0.01,
        )),
        predicted("T1", "native slices, second, requests/s", 70.5, b.rate(), 0.01),
        predicted(
            "T1",
            "native slices, foreground p50 ms",
            13.05,
            front.latency(500),
            0.10,
        ),
        predicted(
            "T1",
            "native slices, foreground p99 ms",
            14.11,
            front.latency(990),
            0.10,
        ),
        fitted(predicted(
            "T1",
            "75 to 25, first, requests/s",
            109.8,
            most.rate(),
            0.03,
        )),
        predicted("T1", "75 to 25, second, requests/s", 37.1, least.rate(), 0.03),
        predicted(
            "T1",
            "background gives way, p50 ms",
            6.90,
            urgent.latency(500),
            0.06,
        ),
        predicted(
            "T1",
            "background gives way, p99 ms",
            7.40,
            urgent.latency(990),
            0.13,
        ),
    ]);
}

#[test]
fn a_science_job_beside_a_financial_one_on_a_gv100() {
    let model = kernels(400, 20 * US, 400 * US, 76_100 * US);
    let stepper = kernels(8, 20 * US, 80 * US, 327_650);
    // How often the first comes is not told: fitted to what the other gets beside it.
    let first = program(&model, Arrivals::Open { every: 214 * MS });
    let other = Program {
        ahead: 2,
        ..program(&stepper, Arrivals::Closed { gap: 5 * US })
    };
    let alone = only(gv100(), &first, 60.0);
    let rate = only(gv100(), &other, 5.0);
    let (native, beside) = pair(gv100(), &first, &other, 60.0);
    let (patient, meek) = (with_slice(&first, 1000 * MS), with_slice(&other, US));
    let (urgent, rest) = pair(gv100(), &patient, &meek, 60.0);
    judge(&[
        fitted(predicted("T3", "alone, ms", 76.1, alone.mean(), 0.01)),
        fitted(predicted("T3", "other alone, steps/s", 3052.0, rate.rate(), 0.01)),
        predicted("T3", "native slices, ms", 168.0, native.mean(), 0.05),
        fitted(predicted(
            "T3",
            "native slices, other, steps/s",
            1673.0,
            beside.rate(),
            0.06,
        )),
        predicted("T3", "other gives way, ms", 76.4, urgent.mean(), 0.02),
        predicted("T3", "other gives way, other, steps/s", 2015.0, rest.rate(), 0.06),
    ]);
}

/// Inflation of the p99 of a server at 40 % load, and what is left of a training, both against being alone.
fn served(request: &Program, training: &Program) -> (f64, f64) {
    let a100 = || sliced(108, 107 * US);
    let alone = only(a100(), request, 40.0);
    let rate = only(a100(), training, 10.0);
    let (server, trainer) = pair(a100(), request, training, 40.0);
    (
        server.latency(990) / alone.latency(990),
        trainer.rate() / rate.rate(),
    )
}

#[test]
fn servers_beside_trainings_in_turns_on_an_a100() {
    let server = |ns: Ns| {
        program(
            &kernels(100, 10 * US, 100 * US, ns),
            Arrivals::Open { every: ns * 100 / 40 },
        )
    };
    let training =
        |busy: Ns, gap: Ns| program(&kernels(100, 50 * US, 900 * US, busy), Arrivals::Closed { gap });
    // Lengths of requests and gaps of trainings are not told: one of each fitted.
    let (llama, bert) = (server(40 * MS), server(3_300 * US));
    let (full, whisper) = (training(50 * MS, 0), training(30 * MS, 32 * MS));
    let (a, b) = (served(&llama, &full), served(&bert, &full));
    let (c, d) = (served(&llama, &whisper), served(&bert, &whisper));
    judge(&[
        // Means of the published rows without whisper: resnet50, pointnet, pegasus, gpt2-l, bert.
        predicted("T4", "turns, llama beside trainings, p99", 2.03, a.0, 0.20),
        predicted("T4", "turns, llama, training's throughput", 0.482, a.1, 0.10),
        fitted(predicted(
            "T4",
            "turns, bert beside trainings, p99",
            2.724,
            b.0,
            0.20,
        )),
        predicted("T4", "turns, bert, training's throughput", 0.534, b.1, 0.20),
        predicted("T4", "turns, llama beside whisper, p99", 2.04, c.0, 0.20),
        fitted(predicted(
            "T4",
            "turns, llama, whisper's throughput",
            0.72,
            c.1,
            0.10,
        )),
        predicted("T4", "turns, bert beside whisper, p99", 2.73, d.0, 0.20),
        predicted("T4", "turns, bert, whisper's throughput", 0.73, d.1, 0.10),
    ]);
}

/// What a request of one short kernel waits beside a saturating neighbour with `slice`, mean and p99 in µs.
fn waits(switch: Ns, slice: Option<Ns>) -> (f64, f64) {
    let request = Program {
        slice: slice.map(|_| 1000 * MS),
        ..program(&[10 * US], Arrivals::Open { every: 20_300 * US })
    };
    let saturating = Program {
        slice,
        ..program(
            &kernels(100, 50 * US, 900 * US, 30 * MS),
            Arrivals::Closed { gap: 0 },
        )
    };
    let (front, _) = pair(sliced(108, switch), &request, &saturating, 120.0);
    (1000.0 * front.mean() - 10.0, 1000.0 * front.latency(990) - 10.0)
}

#[test]
fn what_short_slices_of_the_background_are_worth() {
    let (gpreempt, _) = waits(100 * US, Some(200 * US));
    let (_, native) = waits(53 * US, None);
    let (_, preempted) = waits(53 * US, Some(US));
    judge(&[
        predicted("T5", "background of 200 us, mean wait us", 200.0, gpreempt, 0.10),
        predicted("T7", "native slices, p99 wait us", 1188.0, native, 0.12),
        fitted(predicted(
            "T7",
            "preempted at once, p99 wait us",
            53.0,
            preempted,
            0.05,
        )),
    ]);
}

#[test]
fn how_long_a_background_takes_to_give_way() {
    // T2 in shape: a window of eight kernels drains in eight times their length, one kernel in one, and a
    // context that gives way needs a switch, whatever their length.
    let background = |kernel: Ns| program(&[kernel; 8], Arrivals::Closed { gap: 10 * US });
    let request = program(&[10 * US], Arrivals::Open { every: 50_700 * US });
    let together = DeviceConfig {
        sms: 80,
        sharing: Sharing::Together { interference: 0 },
        ..DeviceConfig::default()
    };
    for length in [100 * US, 500 * US, 1000 * US, 2000 * US] {
        let window = only(gv100(), &background(length), 5.0).latency(990);
        let (one, _) = pair(together.clone(), &request, &background(length), 60.0);
        let (patient, meek) = (
            with_slice(&request, 1000 * MS),
            with_slice(&background(length), US),
        );
        let (turn, _) = pair(sliced(80, 32 * US), &patient, &meek, 60.0);
        let (one, turn) = (one.latency(990), turn.latency(990));
        let t = length as f64 / 1e6;
        println!(
            "T2  kernels of {t:.1} ms: window {window:.2} ms, one kernel {one:.2} ms, turn {turn:.3} ms"
        );
        assert!(
            (window / t - 8.0).abs() < 0.01 && one > 0.9 * t && one < 1.1 * t + 0.02,
            "{window} {one}"
        );
        assert!(turn < 0.06, "{turn}");
    }
}
