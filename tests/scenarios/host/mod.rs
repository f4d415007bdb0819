//! Host mode in a root filesystem of its own, whose driver is the stand-in's, installed where NVIDIA's would be: who is
//! capped (everybody who asks the loader), who is not touched (`programs`), what a change or a failure does (`changes`), what
//! is refused (`refusals`), and that the way back leaves nothing.

mod changes;
mod programs;
mod refusals;

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use crate::harness::{
    artefacts::{self, Profile},
    outcome::{self, Outcome, Running, run},
    rootfs::{self, Overlay},
    wait::until,
};

/// Where a tarball would have been unpacked; there is no package in these tests.
const STINT: &str = "/opt/stint";
const DRIVER: &str = "/usr/lib/x86_64-linux-gnu";

/// A machine of a laboratory: two users, a driver, Stint unpacked but not in force.
struct Lab {
    overlay: Overlay,
    daemon: Option<Running>,
}

impl Lab {
    /// `None`, and a line that says so, where there can be none.
    fn open(what: &str) -> Option<Lab> {
        let overlay = Overlay::new(rootfs::base(what)?);
        overlay.bind(artefacts::directory(), STINT);
        overlay
            .sh("useradd -m alice && useradd -m bob && mkdir /opt/programs")
            .success();
        let lab = Lab {
            overlay,
            daemon: None,
        };
        lab.install_driver(&artefacts::stand_in(Profile::V13));
        Some(lab)
    }

    /// As a driver's installer does: new files, then the loader's cache.
    fn install_driver(&self, directory: &Path) {
        for name in ["libcuda.so.1", "libnvidia-ml.so.1"] {
            let from = directory.join(name);
            if from.exists() {
                let to = self.overlay.file(&format!("{DRIVER}/{name}"));
                let _replaced = fs::remove_file(&to);
                fs::copy(&from, &to).expect("the driver can be installed");
            }
        }
        self.overlay
            .sh(&format!("ln -sf libcuda.so.1 {DRIVER}/libcuda.so && ldconfig"))
            .success();
    }

    fn stint(&self, words: &[&str]) -> Outcome {
        run(self.overlay.command(format!("{STINT}/bin/stint")).args(words))
    }

    fn start_daemon(&mut self, quota: &str) {
        self.overlay.write("/etc/stint/stint.toml", quota);
        let mut command = self.overlay.command(format!("{STINT}/bin/stint"));
        command.args(["daemon", "--driver", "sim", "--config", "/etc/stint/stint.toml"]);
        self.daemon = Some(outcome::start(&mut command));
        until("the daemon answers", || {
            if let Some(early) = self.daemon.as_mut().and_then(Running::ended) {
                panic!("the daemon ended: {early:?}");
            }
            (self.stint(&["status", "--json"]).code == 0).then_some(())
        });
    }

    fn json(&self, words: &[&str]) -> Value {
        let outcome = self.stint(words);
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:?}"))
    }

    fn state(&self) -> String {
        let outcome = self.stint(&["host", "status", "--json"]);
        let report: Value = serde_json::from_str(&outcome.stdout).expect("a report is JSON");
        let state = report["state"].as_str().expect("a state").to_owned();
        assert_eq!(outcome.code, i32::from(state == "stale"), "{outcome:?}");
        state
    }

    /// A copy of a compiled program inside; `mode` as `chmod` takes it.
    fn put(&self, from: &Path, name: &str, owner: &str, mode: &str) -> String {
        let path = format!("/opt/programs/{name}");
        fs::copy(from, self.overlay.file(&path)).expect("a program can be copied");
        self.overlay
            .sh(&format!("chown {owner} {path} && chmod {mode} {path}"))
            .success();
        path
    }

    /// Everything below `/etc` with its content, and what the loader's cache says.
    fn system(&self) -> String {
        let list = "cd / && find etc -printf '%p %y %m %u %g %l\\n' | sort && find etc -type f -exec sha256sum {} + | sort -k2 \
                    && ldconfig -p && find usr/lib/stint run 2> /dev/null | sort; true";
        self.overlay.sh(list).success().stdout
    }
}

/// The daemon's quota file in these tests.
const GIBIBYTE_EACH: &str = "[defaults]\nper = \"user\"\nmemory = \"1GiB\"\n";

/// Shows only what differs.
#[track_caller]
fn assert_same(now: &str, before: &str, what: &str) {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (now, before) = (lines(now), lines(before));
    let differing: Vec<_> = now.symmetric_difference(&before).collect();
    assert!(differing.is_empty(), "{what}: {differing:#?}");
}

#[track_caller]
fn refused(outcome: &Outcome) {
    assert_eq!((outcome.code, outcome.value("refused")), (0, "2"), "{outcome:?}");
}
