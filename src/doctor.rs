//! `stint doctor`: what is wrong with a node and how to mend it, ending with the proof: a real client that tries to get more
//! than its cap. The walk: `doctor/check.rs` is one line of it, `doctor/host.rs` looks at this machine, `doctor/files.rs` at
//! the node's files, `doctor/node.rs` at what the daemon says, `doctor/proof.rs` tries to break a cap.

mod check;
mod files;
mod host;
mod node;
mod proof;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cli::Driver;
use crate::exit::{Exit, Failure};
use crate::protocol::Connection;
use crate::{output, place};
use check::{Check, Verdict};

/// Value of `schema`.
const SCHEMA: &str = "stint.doctor/v1";

/// Exit 1 where a check fails; warnings alone are exit 0.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Leave out the client that tries to exceed its cap: nothing is started
    #[arg(long)]
    pub no_proof: bool,
    /// Schema `stint.doctor/v1`
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    schema: String,
    ok: bool,
    checks: Vec<Check>,
}

/// Runs the verb.
pub fn main(args: &Args, run_dir: Option<&Path>) -> Result<Exit, Failure> {
    let place = run_dir.map_or_else(place::usual, Path::to_path_buf);
    let checks = examine(&place, !args.no_proof);
    let ok = checks.iter().all(|check| check.verdict != Verdict::Fail);
    if args.json {
        let schema = SCHEMA.into();
        output::json(&Document { schema, ok, checks })?;
    } else {
        output::line(&checks.iter().map(Check::text).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(if ok { Exit::OK } else { Exit::FAILED })
}

fn examine(run_dir: &Path, prove: bool) -> Vec<Check> {
    let mut checks = vec![
        host::kernel(),
        host::cgroup(),
        host::preload(Path::new("/etc/ld.so.preload")),
        host::host_mode(),
        files::libraries(),
    ];
    if run_dir == Path::new(driver::run_dir::SYSTEM) {
        checks.push(files::quota());
    }
    let mut connection = match Connection::open(run_dir) {
        Ok(connection) => connection,
        Err(failure) => {
            checks.extend(files::policy(run_dir, None));
            checks.push(Check::fail(
                "daemon",
                failure.message,
                "start it: `systemctl start stintd`, or `stint daemon`",
            ));
            return checks;
        }
    };
    let daemon = connection.peer();
    checks.extend(files::policy(run_dir, daemon.map(|daemon| daemon.uid)));
    checks.extend(files::sockets(run_dir, daemon.map(|daemon| daemon.uid)));
    checks.extend(daemon.map(|daemon| host::limits(daemon.pid)));
    let node = match connection.status() {
        Ok(node) => node,
        Err(failure) => {
            checks.push(Check::fail(
                "daemon",
                failure.message,
                "look into its log: `journalctl -u stintd`",
            ));
            return checks;
        }
    };
    if daemon.is_some_and(|daemon| daemon.uid == 0) {
        checks.push(files::reach(&absolute(run_dir), node.driver.kind == Driver::Sim));
    }
    checks.extend(node::checks(&node, env!("CARGO_PKG_VERSION")));
    if prove {
        checks.push(proof::prove(&absolute(run_dir), &node, &mut connection));
    }
    checks
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}
