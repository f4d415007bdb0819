//! When a stanza holds: `until` and `hours`. Both are read in the node's time zone, which is an argument, as the time is.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use serde::{Serialize, Serializer};

/// When a stanza ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// With the end of this day where the node is.
    Day(Date),
    /// At this time where the node is.
    Local(DateTime),
    /// At this instant.
    Instant(Timestamp),
}

impl Until {
    /// The first instant at which the stanza does not hold any more.
    pub fn end(&self, zone: &TimeZone) -> SystemTime {
        let local = |at: DateTime| zone.to_timestamp(at).unwrap_or(Timestamp::MAX);
        let end = match self {
            Until::Day(day) => day
                .tomorrow()
                .map_or(Timestamp::MAX, |next| local(next.to_datetime(Time::midnight()))),
            Until::Local(at) => local(*at),
            Until::Instant(at) => *at,
        };
        SystemTime::try_from(end).unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

impl FromStr for Until {
    type Err = String;

    /// `2026-12-15`, `2026-12-15T18:00` or `2026-12-15T18:00:00+01:00`. The error is one line.
    fn from_str(text: &str) -> Result<Until, String> {
        let wrong = |why: String| {
            format!(
                "`{text}` is not a date{why}: write for example `2026-12-15`, `2026-12-15T18:00` or `2026-12-15T18:00:00Z`"
            )
        };
        let bytes = text.as_bytes();
        let digits = |range: std::ops::Range<usize>| {
            bytes
                .get(range)
                .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
        };
        let dashes = bytes.get(4) == Some(&b'-') && bytes.get(7) == Some(&b'-');
        if !(digits(0..4) && digits(5..7) && digits(8..10) && dashes) {
            return Err(wrong(String::new()));
        }
        let day =
            || -> Result<Date, String> { text[..10].parse().map_err(|_| wrong(" of the calendar".into())) };
        if bytes.len() == 10 {
            return day().map(Until::Day);
        }
        day()?;
        let has_time = matches!(bytes[10], b'T' | b't' | b' ');
        let rest = text.get(11..).unwrap_or_default();
        if !has_time || rest.contains('[') {
            return Err(wrong(String::new()));
        }
        if rest.ends_with(['Z', 'z']) || rest.contains(['+', '-']) {
            return text
                .parse()
                .map(Until::Instant)
                .map_err(|_| wrong(" and time".into()));
        }
        text.parse()
            .map(Until::Local)
            .map_err(|_| wrong(" and time".into()))
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Until::Day(day) => day.fmt(f),
            Until::Local(at) => at.fmt(f),
            Until::Instant(at) => at.fmt(f),
        }
    }
}

/// A part of every day, over midnight where it ends before it begins. Minutes from midnight, at most 24:00.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    from: u16,
    to: u16,
}

const DAY: u16 = 24 * 60;

impl Hours {
    /// Whether `now` is within.
    pub fn contain(&self, now: SystemTime, zone: &TimeZone) -> bool {
        let Some(now) = local(now, zone) else {
            return true;
        };
        let minute = now.hour() as u16 * 60 + now.minute() as u16;
        if self.from < self.to {
            (self.from..self.to).contains(&minute)
        } else {
            minute >= self.from || minute < self.to
        }
    }
}

fn local(now: SystemTime, zone: &TimeZone) -> Option<DateTime> {
    Timestamp::try_from(now).ok().map(|now| zone.to_datetime(now))
}

impl FromStr for Hours {
    type Err = String;

    /// `22:00-06:00`. The error is one line.
    fn from_str(text: &str) -> Result<Hours, String> {
        let wrong = || format!("`{text}` is not a part of the day: write for example `22:00-06:00`");
        let minute = |text: &str| -> Option<u16> {
            let (hour, minute) = text.split_once(':')?;
            let number = |text: &str| -> Option<u16> {
                let two = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
                two.then(|| text.parse().ok()).flatten()
            };
            let (hour, minute) = (number(hour)?, number(minute)?);
            (minute < 60 && hour * 60 + minute <= DAY).then_some(hour * 60 + minute)
        };
        let (from, to) = text.split_once('-').ok_or_else(wrong)?;
        let (from, to) = (minute(from).ok_or_else(wrong)?, minute(to).ok_or_else(wrong)?);
        if from == to || from == DAY {
            return Err(format!(
                "`{text}` holds at no time: write for example `22:00-06:00`, or leave `hours` out for the whole day"
            ));
        }
        Ok(Hours { from, to })
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hours { from, to } = self;
        write!(
            f,
            "{:02}:{:02}-{:02}:{:02}",
            from / 60,
            from % 60,
            to / 60,
            to % 60
        )
    }
}

impl Serialize for Until {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Hours {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::Offset;

    fn at(text: &str) -> SystemTime {
        text.parse::<Timestamp>().unwrap().try_into().unwrap()
    }

    fn berlin_in_winter() -> TimeZone {
        TimeZone::fixed(Offset::constant(1))
    }

    #[test]
    fn a_day_ends_at_midnight_where_the_node_is() {
        let end = |text: &str| text.parse::<Until>().unwrap().end(&berlin_in_winter());
        assert_eq!(end("2026-12-15"), at("2026-12-15T23:00:00Z"));
        assert_eq!(end("2026-12-15T18:00"), at("2026-12-15T17:00:00Z"));
        assert_eq!(end("2026-12-15 18:00:00"), at("2026-12-15T17:00:00Z"));
        assert_eq!(end("2026-12-15T18:00:00Z"), at("2026-12-15T18:00:00Z"));
        assert_eq!(end("2026-12-15T18:00:00-05:00"), at("2026-12-15T23:00:00Z"));
    }

    #[test]
    fn what_is_no_date_is_told() {
        for text in [
            "",
            "tomorrow",
            "2026-13-01",
            "2026-02-30",
            "15.12.2026",
            "2026-12-15T",
            "2026-12-15T25:00",
            "2026-12-15x",
            "2026-1-1",
            "2026-12-15T18:00[Europe/Berlin]",
            "2026‑12‑15",
        ] {
            let error = text.parse::<Until>().expect_err(text);
            assert!(
                error.contains("is not a date") && !error.contains('\n'),
                "{error}"
            );
        }
    }

    #[test]
    fn hours_may_go_over_midnight() {
        let hours: Hours = "22:00-06:00".parse().unwrap();
        let zone = berlin_in_winter();
        for (time, within) in [
            ("2026-12-15T20:59:59Z", false),
            ("2026-12-15T21:00:00Z", true),
            ("2026-12-16T04:59:59Z", true),
            ("2026-12-16T05:00:00Z", false),
        ] {
            assert_eq!(hours.contain(at(time), &zone), within, "{time}");
        }
        let all_day: Hours = "00:00-24:00".parse().unwrap();
        assert!(all_day.contain(at("2026-12-15T22:59:59Z"), &zone));
        assert_eq!(hours.to_string(), "22:00-06:00");
    }

    #[test]
    fn what_is_no_part_of_the_day_is_told() {
        for text in [
            "",
            "22:00",
            "22-06",
            "22:00-25:00",
            "22:60-06:00",
            "6:00-8:00",
            "24:00-06:00",
            "08:00-08:00",
            "22:00–06:00",
        ] {
            let error = text.parse::<Hours>().expect_err(text);
            assert!(error.contains("write for example `22:00-06:00`"), "{error}");
        }
    }
}
