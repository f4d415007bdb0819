//! A booted system: a root filesystem of its own under systemd, as a node has it. It is switched off, hard, when dropped.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use super::{
    outcome::{self, Outcome, Running},
    rootfs::{Overlay, PATH},
    wait::until,
};

/// The machine's own group in every tree of groups that systemd uses: two machines in one group would find each other's
/// processes. $1 is its name, $2 the root.
const BOOT: &str = r#"
for tree in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
    [ -e "$tree/cgroup.procs" ] || continue
    mkdir "$tree/$1"
    echo 0 > "$tree/$1/cgroup.procs"
done
exec systemd-nspawn --quiet --register=no --keep-unit --boot --console=pipe --machine=node -D "$2"
"#;

/// A running system.
pub struct Machine {
    /// Dropped first: every process of the machine ends with it.
    overlay: Option<Overlay>,
    nspawn: Option<Running>,
    group: String,
    /// The machine's first process, as this machine counts.
    first: String,
}

impl Machine {
    /// Boots what `overlay` (`Overlay::bare`) holds, and waits until everything has started.
    #[track_caller]
    pub fn boot(overlay: Overlay) -> Machine {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let group = format!(
            "stint-test-{}.{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let mut boot = overlay.outside("sh");
        boot.args(["-euc", BOOT, "sh", &group]).arg(overlay.root());
        let mut machine = Machine {
            nspawn: Some(outcome::start(&mut boot)),
            overlay: Some(overlay),
            first: String::new(),
            group,
        };
        machine.first = until("the machine's first process begins", || {
            if let Some(early) = machine.nspawn.as_mut().and_then(Running::ended) {
                panic!("the machine did not boot: {early:?}");
            }
            first_process(&machine.group)
        });
        until("the machine has booted", || {
            let said = machine.sh("systemctl is-system-running").stdout;
            ["running", "degraded"].contains(&said.trim()).then_some(())
        });
        machine
    }

    /// `program` on the machine, as root, with nothing of this environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.first, "--root", "--wd"]);
        command.args(["--mount", "--pid", "--net", "--ipc", "--uts", "--"]);
        command.arg(program).env_clear();
        command
            .env("PATH", PATH)
            .env("HOME", "/")
            .env("LC_ALL", "C.UTF-8");
        command
    }

    /// Runs the line in the machine's shell.
    #[track_caller]
    pub fn sh(&self, line: &str) -> Outcome {
        outcome::run(self.command("sh").args(["-c", line]))
    }

    /// A file of the machine, to be read and written from here. An absolute link in it leads out of the machine.
    pub fn file(&self, path: &str) -> PathBuf {
        Path::new("/proc")
            .join(&self.first)
            .join("root")
            .join(path.trim_start_matches('/'))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.overlay.take());
        drop(self.nspawn.take());
        for tree in [
            "/sys/fs/cgroup/systemd",
            "/sys/fs/cgroup/unified",
            "/sys/fs/cgroup",
        ] {
            remove_groups(&Path::new(tree).join(&self.group));
        }
    }
}

/// A group can be removed once those below it are; its files are the kernel's.
fn remove_groups(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups(&entry.path());
        }
    }
    let _not_there_or_still_in_use = fs::remove_dir(group);
}

/// The process that is the first of its own process namespace, in `group`.
fn first_process(group: &str) -> Option<String> {
    let entries = fs::read_dir("/proc").expect("/proc can be read");
    entries.flatten().find_map(|entry| {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        let groups = fs::read_to_string(entry.path().join("cgroup")).ok()?;
        // Below the group: the manager itself is in it too.
        let inside = groups
            .lines()
            .any(|line| line.contains(&format!("/{group}/payload")));
        let first =
            numbers.split_whitespace().next_back() == Some("1") && numbers.split_whitespace().count() > 2;
        (inside && first).then(|| entry.file_name().to_string_lossy().into_owned())
    })
}

#[test]
fn a_machine_boots_and_leaves_nothing_behind() {
    let Some(base) = super::rootfs::base("a booted root filesystem") else {
        return;
    };
    let [one, other] = [(), ()].map(|()| Machine::boot(Overlay::bare(base)));
    for machine in [&one, &other] {
        assert_eq!(machine.sh("cat /proc/1/comm").stdout, "systemd\n");
    }
    one.sh("echo x > /of-this-machine").success();
    assert_eq!(
        fs::read_to_string(one.file("/of-this-machine")).ok().as_deref(),
        Some("x\n")
    );
    assert!(!other.file("/of-this-machine").exists());
    let (group, first) = (one.group.clone(), one.first.clone());
    drop(one);
    assert!(!Path::new("/proc").join(first).exists(), "no process is left");
    let trees = [
        "/sys/fs/cgroup/systemd",
        "/sys/fs/cgroup/unified",
        "/sys/fs/cgroup",
    ];
    let left: Vec<_> = trees
        .iter()
        .map(|tree| Path::new(tree).join(&group))
        .filter(|path| path.exists())
        .collect();
    assert!(left.is_empty(), "{left:?}");
    other.sh("systemctl is-system-running").success();
}
