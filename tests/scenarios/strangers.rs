//! Root's node in a named run directory, as other users of the machine meet it: open to them like the installed one, and
//! where it is not, what keeps them out is named.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::harness::{
    artefacts,
    outcome::{Outcome, run},
    skip::skip,
};

/// A user that owns nothing here.
const NOBODY: &str = "65534";

/// Two programs and a run directory where every user can reach them; the stand-in is stopped when this is dropped.
struct Shared {
    directory: tempfile::TempDir,
}

impl Shared {
    fn make(what: &str) -> Option<Shared> {
        if !rustix::process::geteuid().is_root() {
            skip(what, "needs root, to be somebody else");
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory can be made");
        open(directory.path(), 0o755);
        for program in ["bin/stint", "sim/bin/stint-sim"] {
            let copy = directory.path().join(program);
            fs::create_dir_all(copy.parent().expect("a directory")).expect("it can be made");
            // By another process: a file that this one has open to write, and so the children it forks, cannot be executed.
            run(Command::new("cp")
                .arg(artefacts::directory().join(program))
                .arg(copy))
            .success();
        }
        let shared = Shared { directory };
        shared.root(&["sim", "start"]).success();
        Some(shared)
    }

    fn run_dir(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    fn root(&self, words: &[&str]) -> Outcome {
        self.run(Command::new(self.directory.path().join("bin/stint")).args(words))
    }

    fn nobody(&self, words: &[&str]) -> Outcome {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
        self.run(command.arg(self.directory.path().join("bin/stint")).args(words))
    }

    fn run(&self, command: &mut Command) -> Outcome {
        run(command.env("STINT_RUN_DIR", self.run_dir()))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.root(&["sim", "stop"]);
    }
}

fn open(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode can be changed");
}

#[test]
fn the_stand_in_of_root_is_everybodys_and_only_root_ends_it() {
    let Some(node) = Shared::make("a stand-in of root's, used by another user") else {
        return;
    };
    let seen = node.nobody(&["sim", "status"]).success();
    assert!(seen.stdout.contains("NVIDIA H200"), "{seen:?}");
    let refused = node.nobody(&["sim", "stop"]);
    assert_eq!(refused.code, 77, "{refused:?}");
    assert!(refused.stderr.contains("is another user's"), "{refused:?}");
    node.nobody(&["sim", "status"]).success();
}

#[test]
fn a_closed_directory_is_named_and_never_taken_for_a_node_that_is_not_there() {
    let Some(node) = Shared::make("a run directory that is closed to another user") else {
        return;
    };
    open(&node.run_dir(), 0o700);
    let told = format!("permission denied by {}", node.run_dir().display());
    for words in [
        &["sim", "status"] as &[&str],
        &["sim", "stop"],
        &["status"],
        &["run", "--", "true"],
    ] {
        let refused = node.nobody(words);
        assert_eq!(refused.code, 77, "{words:?}: {refused:?}");
        assert!(refused.stderr.contains(&told), "{words:?}: {refused:?}");
        assert!(!refused.stderr.contains("start one"), "{words:?}: {refused:?}");
    }
    node.root(&["sim", "status"]).success();
}

#[test]
fn a_place_for_private_nodes_that_somebody_else_made_is_not_used() {
    let Some(node) = Shared::make("a place for private nodes that another user made") else {
        return;
    };
    let place = node.directory.path().join("stint");
    fs::create_dir(&place).expect("a directory can be made");
    open(&place, 0o777);
    for words in [&["status"] as &[&str], &["run", "--driver", "sim", "--", "true"]] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
        command.arg(node.directory.path().join("bin/stint")).args(words);
        let refused = run(command
            .env_remove("STINT_RUN_DIR")
            .env("XDG_RUNTIME_DIR", node.directory.path()));
        assert_eq!(refused.code, 77, "{words:?}: {refused:?}");
        assert!(
            refused.stderr.contains("it belongs to user 0"),
            "{words:?}: {refused:?}"
        );
        assert!(fs::read_dir(&place).is_ok_and(|mut entries| entries.next().is_none()));
    }
}
