//! The packages on a system of their own: `packages/files.rs` what they bring and leave, `packages/host.rs` host mode,
//! `packages/service.rs` the daemon under systemd, `packages/versions.rs` upgrades and removal while programs run,
//! `packages/minutes.rs` what an administrator types first, `packages/release.rs` how they are made.

mod files;
mod host;
mod minutes;
mod release;
mod service;
mod versions;

use std::{fs, path::PathBuf, sync::Mutex};

use serde_json::Value;

use super::{OUT_OF_MEMORY, begin};
use crate::harness::{
    artefacts,
    machine::Machine,
    outcome,
    programs::{Link, program},
    root,
    rootfs::{self, Overlay},
    session::Session,
    target,
    wait::until,
};

/// The version most tests install.
const VERSION: &str = "1.0";

/// Where packages are seen from inside a system.
const PACKAGES: &str = "/packages";

/// Where `tests/programs/steps.c` is seen from inside a system.
const STEPS: &str = "/opt/steps";

/// What a quiet machine says: nothing else runs on it that could be slow.
const PREPARE: &str = "useradd --create-home alice && useradd --create-home bob && systemctl mask --quiet getty.target cron.service";

/// The packages `stint` and `stint-sim` of `version`, made of the built artefacts.
#[track_caller]
fn make(version: &str) -> PathBuf {
    static MADE: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !made.iter().any(|one| one == version) {
        artefacts::directory();
        artefacts::xtask(&["dist", "--as-built", "--version", version]);
        made.push(version.to_owned());
    }
    target().join("dist/as-built")
}

/// The packages' paths inside a system.
fn paths(version: &str) -> String {
    format!("{PACKAGES}/stint_{version}_amd64.deb {PACKAGES}/stint-sim_{version}_amd64.deb")
}

/// A machine with users alice and bob and nothing of Stint but its packages at hand.
#[track_caller]
fn machine(what: &str, versions: &[&str]) -> Option<Machine> {
    let system = Overlay::bare(rootfs::base(what)?);
    for version in versions {
        system.bind(&make(version), PACKAGES);
    }
    system.bind(&program("steps", Link::Cuda), STEPS);
    let mut prepare = system.outside("chroot");
    outcome::run(prepare.arg(system.root()).args(["sh", "-ec", PREPARE])).success();
    Some(Machine::boot(system))
}

/// Tells the daemon to work on the stand-in, as the package's example does, with more lines for the unit.
#[track_caller]
fn use_stand_in(machine: &Machine, more: &str) {
    let drop_ins = "/etc/systemd/system/stintd.service.d";
    machine
        .sh(&format!(
            "install -D -t {drop_ins} /usr/share/doc/stint-sim/examples/stintd-sim.conf && \
             printf '[Service]\\n{more}' > {drop_ins}/test.conf && \
             systemctl daemon-reload && systemctl restart stintd"
        ))
        .success();
}

/// Writes the quota file.
#[track_caller]
fn quota(machine: &Machine, text: &str) {
    fs::write(machine.file("/etc/stint/stint.toml"), text).expect("the quota file can be written");
}

/// A session of `steps.c` under the shim as `user`, not yet begun.
#[track_caller]
fn program_of(machine: &Machine, user: &str) -> Session {
    let mut command = machine.command("setpriv");
    command
        .arg(format!("--reuid={user}"))
        .arg(format!("--regid={user}"))
        .args(["--init-groups", "env"])
        .arg("LD_PRELOAD=/usr/lib/stint/lib/libstint.so:/usr/lib/stint/lib/libstint-nvml.so")
        .arg("LD_LIBRARY_PATH=/usr/lib/stint/sim/13/lib:/usr/lib/stint/sim/lib")
        .arg(STEPS);
    Session::start(&mut command)
}

/// The same with device 0's context.
#[track_caller]
fn client_of(machine: &Machine, user: &str) -> Session {
    begin(program_of(machine, user))
}

/// `stint status --json`, once the daemon answers.
#[track_caller]
fn status(machine: &Machine) -> Value {
    until("the daemon answers", || {
        let answer = machine.sh("stint status --json");
        (answer.code == 0).then(|| serde_json::from_str(&answer.stdout).expect("status is JSON"))
    })
}

/// The daemon's process on the machine.
#[track_caller]
fn daemon(machine: &Machine) -> String {
    machine
        .sh("systemctl show --value --property=MainPID stintd")
        .success()
        .stdout
        .trim()
        .to_owned()
}

/// The processes of a tenant's clients, as the machine and the daemon count them.
#[track_caller]
fn clients_of(machine: &Machine, tenant: &str) -> Vec<u64> {
    let tenants = status(machine)["tenants"].clone();
    let of_tenant = tenants
        .as_array()
        .expect("tenants")
        .iter()
        .filter(|found| found["name"] == tenant);
    let clients = of_tenant.flat_map(|tenant| tenant["clients"].as_array().expect("clients"));
    let mut pids: Vec<u64> = clients
        .map(|client| client["pid"].as_u64().expect("pid"))
        .collect();
    pids.sort_unstable();
    pids
}
