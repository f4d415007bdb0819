//! A private node per test: its run directory, a stand-in and, unless the node is bare, a daemon with its keeper. All of it
//! ends when the node is dropped.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;

use super::{
    artefacts::{self, Profile},
    outcome::{self, Outcome, Running, run},
    wait::until,
};

/// Longest run directory whose sockets still fit into a socket address (108 bytes).
const LONGEST: usize = 80;

/// What a test's node looks like.
#[derive(Clone, Debug)]
pub struct Setup {
    /// As `--devices` takes them.
    pub devices: &'static str,
    /// The symbol profile that programs get.
    pub profile: Profile,
    /// The quota file.
    pub quota: String,
    /// Further options of `stint sim start`.
    pub options: Vec<String>,
    /// The run directory is a file system of its own, of this size as `mount` takes it. Needs root.
    pub disk: Option<&'static str>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            devices: "h200:1",
            profile: Profile::V13,
            quota: String::new(),
            options: vec!["--noise".into(), "off".into()],
            disk: None,
        }
    }
}

impl Setup {
    /// One H200, and `quota` as the quota file.
    pub fn quota(quota: impl Into<String>) -> Setup {
        Setup {
            quota: quota.into(),
            ..Setup::default()
        }
    }

    /// Every user has `memory` per device.
    pub fn cap(memory: &str) -> Setup {
        Setup::quota(format!("[defaults]\nper = \"user\"\nmemory = \"{memory}\"\n"))
    }

    /// The same with other stand-in devices.
    pub fn devices(self, devices: &'static str) -> Setup {
        Setup { devices, ..self }
    }

    /// The same with another symbol profile.
    pub fn profile(self, profile: Profile) -> Setup {
        Setup { profile, ..self }
    }

    /// The same with one more option of `stint sim start` and its value.
    pub fn option(mut self, name: &str, value: &str) -> Setup {
        self.options.extend([name.to_owned(), value.to_owned()]);
        self
    }
}

/// A running private node.
pub struct Node {
    directory: PathBuf,
    setup: Setup,
    daemon: Option<Running>,
}

impl Node {
    /// A run directory for commands that need neither stand-in nor daemon.
    pub fn unstarted(setup: Setup) -> Node {
        Node {
            directory: run_directory(),
            setup,
            daemon: None,
        }
    }

    /// A stand-in without a daemon.
    #[track_caller]
    pub fn bare(setup: Setup) -> Node {
        let node = Node::unstarted(setup);
        if let Some(size) = node.setup.disk {
            let options = format!("size={size},mode=700");
            let mut mount = Command::new("mount");
            run(mount
                .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
                .arg(&node.directory))
            .success();
        }
        let mut start = node.stint(&[
            "sim",
            "start",
            "--devices",
            node.setup.devices,
            "--profile",
            node.setup.profile.name(),
        ]);
        run(start.args(&node.setup.options)).success();
        node
    }

    /// A stand-in and a daemon that answers.
    #[track_caller]
    pub fn start(setup: Setup) -> Node {
        let mut node = Node::bare(setup);
        node.start_daemon();
        node
    }

    /// Starts the daemon (again) and waits until it answers.
    #[track_caller]
    pub fn start_daemon(&mut self) {
        let config = self.directory.join("stint.toml");
        fs::write(&config, &self.setup.quota).expect("a quota file can be written");
        let mut command = self.stint(&["daemon", "--driver", "sim", "--config"]);
        self.daemon = Some(outcome::start(command.arg(config)));
        until("the daemon answers", || {
            if let Some(early) = self.daemon.as_mut().and_then(Running::ended) {
                panic!("the daemon ended: {early:?}");
            }
            self.ask_status()
        });
    }

    /// Puts another quota file in place of the daemon's, which reads it when it sees that, or is told to.
    #[track_caller]
    pub fn set_quota(&mut self, quota: &str) {
        self.setup.quota = quota.to_owned();
        fs::write(self.directory.join("stint.toml"), quota).expect("a quota file can be written");
    }

    /// SIGKILL to the daemon.
    pub fn kill_daemon(&mut self) {
        self.daemon = None;
    }

    /// SIGKILL to the daemon, and another in its place.
    #[track_caller]
    pub fn restart_daemon(&mut self) {
        self.kill_daemon();
        self.start_daemon();
    }

    /// The daemon's process id.
    #[track_caller]
    pub fn daemon_pid(&self) -> u32 {
        self.daemon.as_ref().expect("the daemon runs").pid()
    }

    /// The run directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// `stint WORDS…` of this node.
    pub fn stint(&self, words: &[&str]) -> Command {
        let mut command = self.clean(artefacts::directory().join("bin/stint"));
        command.args(words);
        command
    }

    /// `program` on the stand-in without the shim.
    pub fn bare_command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.clean(program);
        let path = [artefacts::stand_in(self.setup.profile), artefacts::runtimes()];
        command.env(
            "LD_LIBRARY_PATH",
            std::env::join_paths(path).expect("paths without colons"),
        );
        command
    }

    /// `program` under the shim, as a client of this node's daemon.
    pub fn capped_command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.bare_command(program);
        command.env("LD_PRELOAD", artefacts::preload());
        command
    }

    /// `program` as `stint run` starts it for `tenant` with `memory`.
    pub fn tenant_command(&self, tenant: &str, memory: &str, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.stint(&["run", "--tenant", tenant, "--memory", memory, "--"]);
        command.arg(program);
        command
    }

    /// The stand-in's own truth, `stint.sim/v1`.
    #[track_caller]
    pub fn truth(&self) -> Value {
        json(&run(&mut self.stint(&["sim", "status", "--json"])).success())
    }

    /// The daemon's view, `stint.node/v1`.
    #[track_caller]
    pub fn status(&self) -> Value {
        self.ask_status().expect("the daemon answers")
    }

    /// The events so far, one JSON object each.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        let text = run(&mut self.stint(&["events", "--json"])).success().stdout;
        text.lines()
            .map(|line| serde_json::from_str(line).expect("an event is JSON"))
            .collect()
    }

    /// Physical bytes in use on device `index` now.
    #[track_caller]
    pub fn used(&self, index: usize) -> u64 {
        self.truth()["devices"][index]["used_bytes"]
            .as_u64()
            .expect("used_bytes")
    }

    /// Most physical bytes that were ever in use on device `index`.
    #[track_caller]
    pub fn high_water(&self, index: usize) -> u64 {
        self.truth()["devices"][index]["high_water_bytes"]
            .as_u64()
            .expect("high_water_bytes")
    }

    fn ask_status(&self) -> Option<Value> {
        let outcome = run(&mut self.stint(&["status", "--json"]));
        (outcome.code == 0).then(|| json(&outcome))
    }

    /// A command with this node's run directory and nothing of the caller's that concerns loading.
    fn clean(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for name in [
            "LD_LIBRARY_PATH",
            "LD_PRELOAD",
            "CUDA_VISIBLE_DEVICES",
            "PYTHONPATH",
            "PYTHONHOME",
        ] {
            command.env_remove(name);
        }
        command.env("STINT_RUN_DIR", &self.directory);
        command
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill_daemon();
        let _none_left = self.stint(&["keeper", "--end"]).output();
        let _stopped_already = self.stint(&["sim", "stop"]).output();
        if self.setup.disk.is_some() {
            run(Command::new("umount").arg("-l").arg(&self.directory));
        }
        let _left_for_inspection = fs::remove_dir_all(&self.directory);
    }
}

#[track_caller]
fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error} in {}", outcome.stdout))
}

/// A new directory that only we can enter, short enough for a socket's address.
fn run_directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("n{}.{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let near = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
    let path = if near.as_os_str().len() <= LONGEST {
        near
    } else {
        std::env::temp_dir().join(format!("stint-{name}"))
    };
    fs::create_dir_all(&path).expect("a run directory can be made");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .expect("a run directory can be closed");
    path
}
