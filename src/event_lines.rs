//! `stint events`: the node's event log, one line an event, as JSON or for people.

use std::path::Path;

use crate::events::Event;
use crate::exit::{Exit, Failure};
use crate::{output, status};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Go on with what happens from now
    #[arg(short, long)]
    pub follow: bool,
    /// One `stint.event/v1` object a line
    #[arg(long)]
    pub json: bool,
}

/// Runs the verb. With `follow` it ends with the daemon or the reader.
pub fn main(args: Args, run_dir: Option<&Path>) -> Result<Exit, Failure> {
    for event in status::connect(run_dir)?.events(args.follow)? {
        let event = event?;
        let goes_on = if args.json {
            output::json(&event)?
        } else {
            output::line(&text(&event))?
        };
        if !goes_on {
            break;
        }
    }
    Ok(Exit::OK)
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
    use crate::events::Kind;

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
}
