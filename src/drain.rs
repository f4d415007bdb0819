//! `stint drain`: closes the node, or one device, to newcomers, and tells who is still there. The daemon decides
//! (`src/daemon/drain.rs`).

use std::path::Path;
use std::time::Duration;

use crate::config::units::Bytes;
use crate::exit::{Exit, Failure};
use crate::protocol::drain::{Action, Closed, Drain, Drained, Left};
use crate::{output, status};

/// Time between two looks with `--wait`.
const PACE: Duration = Duration::from_millis(500);

/// Nobody is ended. A drained node turns new programs away (CUDA error 802, `stint run` fails) and lets in only what belongs
/// to a program that runs already. On a drained device an account keeps what it has for as long as it holds memory there, and
/// gets nothing there afterwards (CUDA error 2); new accounts get nothing there. It stays so until `--undo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// One device, by index or UUID, instead of the whole node
    #[arg(long, value_name = "N")]
    pub gpu: Option<String>,
    /// Lets newcomers in again; without --gpu on the node and on every device
    #[arg(long, conflicts_with = "wait")]
    pub undo: bool,
    /// Waits until nobody is left; interrupted, it stays drained
    #[arg(long)]
    pub wait: bool,
    /// Only shows what is drained and who is there
    #[arg(long, conflicts_with_all = ["undo", "wait"])]
    pub show: bool,
    /// Schema `stint.drain/v1`
    #[arg(long)]
    pub json: bool,
}

/// Runs the verb.
pub fn main(args: &Args, run_dir: Option<&Path>) -> Result<Exit, Failure> {
    let mut node = status::connect(run_dir)?;
    let mut ask = |action| {
        node.drain(Drain {
            gpu: args.gpu.clone(),
            action,
        })
    };
    let action = match args {
        Args { show: true, .. } => Action::Show,
        Args { undo: true, .. } => Action::Open,
        _ => Action::Close,
    };
    let mut drained = ask(action)?;
    tell(args, &drained)?;
    while args.wait && !drained.left.is_empty() {
        std::thread::sleep(PACE);
        let now = ask(Action::Show)?;
        let changed = pids(&now) != pids(&drained);
        drained = now;
        if changed {
            tell(args, &drained)?;
        }
    }
    Ok(Exit::OK)
}

fn pids(drained: &Drained) -> Vec<u32> {
    drained.left.iter().map(|left| left.pid).collect()
}

fn tell(args: &Args, drained: &Drained) -> Result<bool, Failure> {
    if args.json {
        output::json(drained)
    } else {
        output::line(&text(drained))
    }
}

fn text(drained: &Drained) -> String {
    let closed = |what: &str, closed: &Option<Closed>| match closed {
        Some(Closed { since, by }) => format!("{what}: drained since {since} by {by}"),
        None => format!("{what}: open"),
    };
    let mut lines = vec![closed("node", &drained.node)];
    lines.extend(
        drained
            .devices
            .iter()
            .map(|device| closed(&format!("device {}", device.index), &device.closed)),
    );
    lines.extend(drained.left.iter().map(left));
    if drained.left.is_empty() {
        lines.push("nobody is there".into());
    }
    lines.join("\n")
}

fn left(left: &Left) -> String {
    let unknown = "-".to_string();
    let user = left.user.as_ref().unwrap_or(&unknown);
    let command = left.command.as_ref().unwrap_or(&unknown);
    let held = left
        .used_bytes
        .map_or("an unknown amount".into(), |bytes| Bytes(bytes).to_string());
    let account = match &left.account {
        Some(account) => format!("of {account}"),
        None => "nobody's client".into(),
    };
    format!(
        "still there: pid {} ({command}, user {user}), {account}, holds {held}",
        left.pid
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::drain::{Device, SCHEMA};

    #[test]
    fn what_is_closed_and_who_is_there_is_told() {
        let drained = Drained {
            schema: SCHEMA.into(),
            node: None,
            devices: vec![Device {
                index: 1,
                uuid: "GPU-1".into(),
                closed: Some(Closed {
                    since: "2026-01-01T00:00:00.000Z".into(),
                    by: "root".into(),
                }),
            }],
            left: vec![Left {
                pid: 7,
                user: Some("bob".into()),
                command: None,
                account: Some("lab".into()),
                used_bytes: Some(1 << 30),
            }],
        };
        assert_eq!(
            text(&drained),
            "node: open\ndevice 1: drained since 2026-01-01T00:00:00.000Z by root\n\
             still there: pid 7 (-, user bob), of lab, holds 1 GiB"
        );
    }
}
