//! The torture: processes that charge and release are killed by SIGKILL at every step of the algorithm, and so are the
//! processes that recover them and the one that changes the cap. Prints its figures; fails on an overshoot, a negative
//! amount, a charge that is not what the killed step says, or anything left at the end.
//!
//! `cargo test -p stint-ledger --test torture` is the short form. The long form (`STINT_TEST_LONG=1`, or `-- --long`)
//! kills at least 20,000 times and each step at least 100 times. Steps are those of `Point::ALL`: there is no list here
//! that could miss one. Both forms end with the sabotaged recoveries, which must be noticed.
//!
//! Read next: `referee.rs`, which runs it; `arena.rs`, what the processes share; `player.rs`, what they do; `report.rs`, what came of it.

mod arena;
mod falsified;
mod player;
mod referee;
mod report;

use referee::{Plan, Recoverer};

fn main() {
    // A watchdog, not a limit: SIGALRM ends the referee and with it every player.
    let long = std::env::var_os("STINT_TEST_LONG").is_some()
        || std::env::args().any(|argument| argument == "--long");
    // SAFETY: sets a timer of this process, nothing else.
    unsafe { libc::alarm(if long { 1800 } else { 120 }) };

    let plan = if long {
        Plan {
            kills: 20_000,
            each: 100,
        }
    } else {
        Plan { kills: 800, each: 5 }
    };
    let report = referee::run(&plan, Recoverer::Honest);
    report.print();
    report.must_be_clean();

    let corrupt = falsified::run(plan.each);
    println!("falsified accounts: {corrupt} recoveries ended, each killed at every step of writing off");

    for wrong in [Recoverer::IgnoresWord, Recoverer::IgnoresCommitted] {
        // Whether a wrong step matters depends on who runs in between: as often as it takes, but not for ever.
        let mut attempts =
            (1..=100).map(|attempt| (attempt, referee::run(&Plan { kills: 300, each: 0 }, wrong)));
        let noticed = attempts.find(|(_, report)| !report.is_clean());
        let (attempt, report) = noticed.unwrap_or_else(|| panic!("{wrong:?} went unnoticed"));
        println!(
            "sabotage {wrong:?}: noticed in attempt {attempt} (overshoots {}, negative {}, wrong amounts {}, residual {})",
            report.overshoots, report.negative, report.wrong_amounts, report.residual
        );
    }
}
