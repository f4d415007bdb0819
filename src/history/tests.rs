//! A fortnight in a moment: time is an argument.

use super::*;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DEVICE: u64 = 80 * GIB;
const HOUR: Duration = Duration::from_secs(3600);

fn at(days: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs((20_000 + days) * DAY + 5)
}

fn holding(bytes: u64) -> Sample {
    Sample {
        used_bytes: bytes,
        peak_bytes: bytes,
        idle: false,
    }
}

fn advice(history: &History, name: &str) -> Advice {
    let mut of = history.subjects().filter(|(subject, _)| *subject == name);
    of.next().unwrap().1.advice(DEVICE)
}

#[test]
fn the_cap_that_fits_is_the_peak_and_a_tenth_in_steps_of_256_mib() {
    let mut history = History::default();
    history.note("a", "a", holding(10 * GIB), HOUR, at(0));
    let said = advice(&history, "a");
    assert_eq!(said.cap, Ok(11 * GIB));
    assert_eq!((said.peak_bytes, said.p99_bytes), (10 * GIB, 10 * GIB));
    // A moment's peak is a peak, and leaves the 99 % as they were.
    let spike = Sample {
        peak_bytes: 20 * GIB,
        ..holding(10 * GIB)
    };
    history.note("a", "a", spike, Duration::from_secs(1), at(1));
    let said = advice(&history, "a");
    assert_eq!((said.cap, said.p99_bytes), (Ok(22 * GIB), 10 * GIB));
    history.note("a", "a", holding(70 * GIB), HOUR, at(1));
    assert_eq!(advice(&history, "a").cap, Ok(77 * GIB));
    history.note("a", "a", holding(79 * GIB), HOUR, at(1));
    assert_eq!(advice(&history, "a").cap, Ok(DEVICE), "no device has more");
}

#[test]
fn less_than_an_hour_of_use_recommends_nothing() {
    let mut history = History::default();
    for _ in 0..3599 {
        history.note("a", "a", holding(GIB), Duration::from_secs(1), at(0));
        // Time without memory is no use.
        history.note("a", "a", holding(0), Duration::from_secs(1), at(0));
    }
    assert_eq!(advice(&history, "a").cap, Err(Lacks::Time));
    history.note("a", "a", holding(GIB), Duration::from_secs(1), at(0));
    assert_eq!(advice(&history, "a").cap, Ok(1280 * MIB));
}

#[test]
fn what_was_refused_at_the_cap_would_fit() {
    let mut history = History::default();
    history.note("a", "a", holding(8 * GIB), HOUR, at(0));
    history.refused("a", "a", 13 * GIB + 1, at(0));
    history.refused("a", "a", 9 * GIB, at(0));
    let said = advice(&history, "a");
    assert_eq!((said.refusals, said.wanted_bytes), (2, 13 * GIB + 1));
    assert_eq!(said.cap, Ok(13 * GIB + 256 * MIB));
    history.refused("a", "a", u64::MAX, at(0));
    assert_eq!(advice(&history, "a").cap, Ok(DEVICE));
}

#[test]
fn idle_is_the_time_memory_was_held_without_work() {
    let mut history = History::default();
    let idle = Sample {
        idle: true,
        ..holding(GIB)
    };
    history.note("a", "a", idle, HOUR, at(0));
    history.note("a", "a", holding(GIB), 3 * HOUR, at(1));
    let empty = Sample {
        used_bytes: 0,
        ..idle
    };
    history.note("a", "a", empty, 50 * HOUR, at(1));
    let said = advice(&history, "a");
    assert_eq!((said.held, said.idle, said.days), (4 * HOUR, HOUR, 2));
}

#[test]
fn after_a_fortnight_a_day_no_longer_counts() {
    let mut history = History::default();
    history.note("a", "a", holding(60 * GIB), HOUR, at(0));
    history.note("a", "a", holding(10 * GIB), HOUR, at(13));
    assert_eq!(advice(&history, "a").peak_bytes, 60 * GIB);
    history.note("a", "a", holding(10 * GIB), HOUR, at(14));
    let said = advice(&history, "a");
    assert_eq!((said.peak_bytes, said.held), (10 * GIB, 2 * HOUR));
    history.trim(at(40));
    assert_eq!(history.subjects().count(), 0);
}

#[test]
fn a_clock_that_jumps_back_and_forth_loses_days_and_keeps_bounds() {
    let mut history = History::default();
    for day in [5, 3, 30, 4, 0, 13, 5, 5, 12] {
        history.note("a", "a", holding(GIB), HOUR, at(day));
        let subject = &history.subjects["a"];
        assert!(subject.days.len() <= DAYS);
        assert_eq!(subject.days.back().unwrap().date, date(at(day)));
    }
    history.trim(at(12));
    let dates: Vec<u64> = history.subjects["a"].days.iter().map(|day| day.date).collect();
    assert!(dates.is_sorted(), "{dates:?}");
}

#[test]
fn however_many_accounts_come_a_bounded_number_is_kept_and_those_of_a_moment_go() {
    let mut history = History::default();
    history.note("alice", "alice", holding(GIB), HOUR, at(0));
    for number in 0..3 * SUBJECTS {
        history.note(&format!("job{number}"), "a", holding(GIB), HOUR / 60, at(1));
        history.note(&format!("none{number}"), "a", holding(0), HOUR, at(1));
        assert!(history.subjects().count() <= SUBJECTS);
    }
    assert_eq!(history.subjects().count(), SUBJECTS);
    assert!(history.subjects.contains_key("alice"));
    assert!(history.subjects.contains_key(&format!("job{}", 3 * SUBJECTS - 1)));
    assert!(history.subjects.keys().all(|name| !name.starts_with("none")));
    let text = serde_json::to_string(&history).unwrap();
    let mut again: History = serde_json::from_str(&text).unwrap();
    again.trim(at(1));
    assert_eq!(again, history);
}
