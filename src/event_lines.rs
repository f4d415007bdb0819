//! `stint events`: the node's event log, one line an event, as JSON or for people. Followed, it outlives the daemon: the line
//! where it was away is marked.

use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::config::units;
use crate::events::{Event, Kind, timestamp};
use crate::exit::{Exit, Failure};
use crate::protocol::Connection;
use crate::{output, status};

/// Time between two attempts to find the daemon again.
const PACE: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Go on with what happens from now, also after the daemon was away: the gap is marked
    #[arg(short, long)]
    pub follow: bool,
    /// Only of this tenant, or this account
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// Only of this kind; may be given more than once
    #[arg(long, value_enum, value_name = "KIND")]
    pub kind: Vec<Kind>,
    /// Only what happened since then: a time such as `2026-12-01T08:00:00Z`, or so long ago, `10m`
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub since: Option<SystemTime>,
    /// One `stint.event/v1` object a line
    #[arg(long)]
    pub json: bool,
}

/// Runs the verb. Without a daemon at the beginning it ends with 69; with `follow` only its reader or a signal ends it.
pub fn main(args: &Args, run_dir: Option<&Path>) -> Result<Exit, Failure> {
    let mut connection = status::connect(run_dir)?;
    let mut seen = Seen::default();
    loop {
        if let Some(gap) = seen.by(connection.peer().map(|daemon| daemon.pid))
            && !tell(args, &gap)?
        {
            return Ok(Exit::OK);
        }
        for event in connection.events(args.follow)? {
            let event = match event {
                Ok(event) => event,
                Err(_) if args.follow => break,
                Err(failure) => return Err(failure),
            };
            for event in seen.take(event) {
                if args.wants(&event) && !tell(args, &event)? {
                    return Ok(Exit::OK);
                }
            }
        }
        if !args.follow {
            return Ok(Exit::OK);
        }
        connection = found_again(run_dir);
    }
}

/// Waits until a daemon answers.
fn found_again(run_dir: Option<&Path>) -> Connection {
    loop {
        std::thread::sleep(PACE);
        if let Ok(connection) = status::connect(run_dir) {
            return connection;
        }
    }
}

fn tell(args: &Args, event: &Event) -> Result<bool, Failure> {
    if args.json {
        output::json(event)
    } else {
        output::line(&text(event))
    }
}

fn since(text: &str) -> Result<SystemTime, String> {
    if let Ok(at) = humantime::parse_rfc3339_weak(text) {
        return Ok(at);
    }
    let ago = units::duration(text).map_err(|_| {
        format!("`{text}` is no time: write one such as 2026-12-01T08:00:00Z, or how long ago, such as 10m")
    })?;
    Ok(SystemTime::now()
        .checked_sub(ago)
        .unwrap_or(SystemTime::UNIX_EPOCH))
}

impl Args {
    /// Whether this event was asked for. A gap always was.
    fn wants(&self, event: &Event) -> bool {
        if event.detail.contains_key(GAP) {
            return true;
        }
        let of = |name: &String| event.tenant.as_ref() == Some(name) || event.account.as_ref() == Some(name);
        let late = |since: SystemTime| humantime::parse_rfc3339(&event.at).map_or(true, |at| at >= since);
        self.tenant.as_ref().is_none_or(of)
            && (self.kind.is_empty() || self.kind.contains(&event.kind))
            && self.since.is_none_or(late)
    }
}

/// In the detail of a line that marks a gap.
const GAP: &str = "gap";

/// What was told already, over restarts of the daemon and broken connections.
#[derive(Debug, Default)]
struct Seen {
    daemon: Option<u32>,
    last: u64,
}

impl Seen {
    /// The daemon that talks from now on; a gap to tell if it is another than before.
    fn by(&mut self, daemon: Option<u32>) -> Option<Event> {
        let another = self.daemon.is_some() && self.daemon != daemon;
        self.daemon = daemon;
        another.then(|| {
            self.last = 0;
            gap("another daemon answers: what happened between the last line and its start is not known")
        })
    }

    /// What to tell of `event`: nothing if it was told already; a gap first where some are missing.
    fn take(&mut self, event: Event) -> Vec<Event> {
        if event.seq <= self.last {
            return Vec::new();
        }
        let missing = self.last > 0 && event.seq > self.last + 1;
        self.last = event.seq;
        let gap = missing.then(|| gap("the connection broke, and some events are not kept any more"));
        gap.into_iter().chain([event]).collect()
    }
}

fn gap(what: &str) -> Event {
    Event {
        at: timestamp(SystemTime::now()),
        ..Event::new(Kind::State).detail(GAP, true).detail("what", what)
    }
}

/// Time, kind, whose, and what else is known of it.
fn text(event: &Event) -> String {
    let kind = serde_json::to_value(event.kind).ok();
    let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or_default();
    let mut words = vec![event.at.clone(), format!("{kind:<10}")];
    match (&event.tenant, &event.account) {
        (Some(tenant), Some(account)) if account != tenant => words.push(format!("{tenant} ({account})")),
        (tenant, account) => words.extend(tenant.clone().or_else(|| account.clone())),
    }
    words.extend(event.pid.map(|pid| format!("pid {pid}")));
    words.extend(event.device.map(|device| format!("device {device}")));
    words.extend(event.detail.iter().map(|(key, value)| match value.as_str() {
        Some(text) => format!("{key}={text}"),
        None => format!("{key}={value}"),
    }));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_who_and_why() {
        let event = Event {
            at: "2026-01-01T00:00:00.000Z".into(),
            ..Event::new(Kind::Refused)
                .account("a", "a")
                .pid(7)
                .device(0)
                .detail("reason", "cap")
                .detail("asked_bytes", 5)
        };
        assert_eq!(
            text(&event),
            "2026-01-01T00:00:00.000Z refused    a pid 7 device 0 asked_bytes=5 reason=cap"
        );
    }

    #[test]
    fn nothing_is_told_twice_and_what_is_missing_is_marked() {
        let event = |seq| Event {
            seq,
            ..Event::new(Kind::Admitted)
        };
        let mut seen = Seen::default();
        let told = |seen: &mut Seen, seq| -> Vec<u64> {
            seen.take(event(seq)).iter().map(|event| event.seq).collect()
        };
        assert!(seen.by(Some(7)).is_none());
        assert_eq!(told(&mut seen, 41), [41], "older ones are not kept any more");
        assert!(seen.by(Some(7)).is_none(), "the same daemon, connected anew");
        assert!(told(&mut seen, 41).is_empty());
        assert_eq!(told(&mut seen, 42), [42]);
        assert_eq!(told(&mut seen, 44), [0, 44], "a gap first");
        assert!(seen.by(Some(8)).is_some_and(|gap| gap.detail.contains_key(GAP)));
        assert_eq!(told(&mut seen, 1), [1]);
    }

    #[test]
    fn only_what_was_asked_for_is_told() {
        let args = Args {
            follow: false,
            tenant: Some("a".into()),
            kind: vec![Kind::Refused],
            since: Some(since("2026-01-01T00:00:00Z").unwrap()),
            json: false,
        };
        let event = |account, kind, at: &str| Event {
            at: at.into(),
            ..Event::new(kind).account("a", account)
        };
        assert!(args.wants(&event("a/x", Kind::Refused, "2026-01-01T00:00:00.000Z")));
        assert!(!args.wants(&event("a/x", Kind::Refused, "2025-12-31T23:59:59.999Z")));
        assert!(!args.wants(&event("a/x", Kind::Left, "2026-01-01T00:00:00.000Z")));
        assert!(!args.wants(&Event::new(Kind::Refused)));
        assert!(args.wants(&gap("x")));
        assert!(since("10m").unwrap() < SystemTime::now());
        assert!(since("yesterday").unwrap_err().contains("10m"));
    }
}
