//! A node as an administrator installs it: run directory `/run/stint`, the shim first in the loader's cache, users of their
//! own. All of it in a mount namespace that one process holds, so that the machine itself is not touched.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use super::{
    artefacts,
    outcome::{self, Running, run},
    programs::{Link, program},
    skip::skip,
    wait::until,
};

/// Users of the node beside root: number and name.
pub const TENANT: (u32, &str) = (1024, "tenant");
pub const NEIGHBOUR: (u32, &str) = (1025, "neighbour");

/// What is mounted before anything starts; `$1` are the artefacts, `$2` the compiled programs, `$3` the quota file.
const MOUNTS: &str = r#"
set -e
mount -t tmpfs -o mode=755 none /run
mkdir /run/art /run/programs /run/cap /run/tmp
chmod 1777 /run/tmp
mount --bind "$1" /run/art
mount --bind "$2" /run/programs
printf '%s' "$3" > /run/stint.toml
ln -s /run/art/lib/libstint.so /run/cap/libcuda.so.1
ln -s libcuda.so.1 /run/cap/libcuda.so
ln -s /run/art/lib/libstint-nvml.so /run/cap/libnvidia-ml.so.1
printf '/run/cap\n/run/art/sim/13/lib\n/run/art/sim/lib\ninclude /etc/ld.so.conf\n' > /run/ld.so.conf
ldconfig -X -f /run/ld.so.conf -C /run/ld.so.cache
mount --bind /run/ld.so.cache /etc/ld.so.cache
for file in passwd group shadow; do cp -p /etc/$file /run/$file; done
for user in tenant:1024 neighbour:1025; do
  name=${user%:*} number=${user#*:}
  echo "$name:x:$number:$number::/run/users/$name:/bin/sh" >> /run/passwd
  echo "$name:x:$number:" >> /run/group
  echo "$name:*:19000:0:99999:7:::" >> /run/shadow
  mkdir -p /run/users/$name
  chown $number:$number /run/users/$name
done
for file in passwd group shadow; do mount --bind /run/$file /etc/$file; done
echo ready
exec cat
"#;

/// A running node, gone when dropped.
pub struct Installed {
    /// Holds the namespace as long as its stdin is open.
    holder: Child,
    daemon: Option<Running>,
}

impl Installed {
    /// A node with one H200 and `quota`; `None`, and one line for `what`, where this machine cannot hold one.
    #[track_caller]
    pub fn start(what: &str, quota: &str) -> Option<Installed> {
        if !rustix::process::geteuid().is_root() {
            skip(what, "needs root, for a node of its own at /run/stint");
            return None;
        }
        let programs = program("steps", Link::Cuda);
        let programs = programs.parent().expect("programs lie in a directory");
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation", "private", "sh", "-c", MOUNTS, "sh"])
            .args([artefacts::directory(), programs])
            .arg(quota)
            .env("PATH", PATH)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut holder = command.spawn().expect("unshare can be started");
        let stdout = holder.stdout.take().expect("stdout is a pipe");
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("stdout can be read");
        if line != "ready\n" {
            let end = holder.wait_with_output().expect("it ends");
            skip(what, &String::from_utf8_lossy(&end.stderr));
            return None;
        }
        let mut node = Installed { holder, daemon: None };
        run(&mut node.stint(&["sim", "start", "--devices", "h200:1", "--noise", "off"])).success();
        node.start_daemon();
        Some(node)
    }

    /// Starts the daemon and waits until it answers.
    #[track_caller]
    fn start_daemon(&mut self) {
        let mut command = self.stint(&["daemon", "--driver", "sim", "--config", "/run/stint.toml"]);
        self.daemon = Some(outcome::start(&mut command));
        until("the daemon answers", || {
            if let Some(early) = self.daemon.as_mut().and_then(Running::ended) {
                panic!("the daemon ended: {early:?}");
            }
            (run(&mut self.stint(&["status", "--json"])).code == 0).then_some(())
        });
    }

    /// Whether the daemon still runs.
    pub fn daemon_lives(&mut self) -> bool {
        self.daemon
            .as_mut()
            .is_some_and(|daemon| daemon.ended().is_none())
    }

    /// `program`, an absolute path or one on the usual search path, as root with nothing in its environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args([
                "--target",
                &self.holder.id().to_string(),
                "--mount",
                "--wd=/",
                "--",
            ])
            .args(["env", "-i", &format!("PATH={PATH}")])
            .arg(program);
        command
    }

    /// The same as `user`, who has no other privileges.
    pub fn user_command(&self, user: (u32, &str), program: impl AsRef<OsStr>) -> Command {
        let mut command = self.command("setpriv");
        let number = user.0.to_string();
        command.args(["--reuid", &number, "--regid", &number, "--clear-groups", "--"]);
        command.arg(program);
        command
    }

    /// `script` of `sh` as root, which must succeed.
    #[track_caller]
    pub fn sh(&self, script: &str) -> String {
        run(self.command("sh").args(["-ec", script])).success().stdout
    }

    /// `stint WORDS…` as root.
    pub fn stint(&self, words: &[&str]) -> Command {
        let mut command = self.command("/run/art/bin/stint");
        command.args(words);
        command
    }

    /// The daemon's view.
    #[track_caller]
    pub fn status(&self) -> Value {
        json(&run(&mut self.stint(&["status", "--json"])).success().stdout)
    }

    /// The stand-in's own truth.
    #[track_caller]
    pub fn truth(&self) -> Value {
        json(
            &run(&mut self.stint(&["sim", "status", "--json"]))
                .success()
                .stdout,
        )
    }

    /// The events so far.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        let text = run(&mut self.stint(&["events", "--json"])).success().stdout;
        text.lines().map(json).collect()
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        self.daemon = None;
        for words in [["keeper", "--end"], ["sim", "stop"]] {
            let _ended_already = self.stint(&words).output();
        }
        drop(self.holder.stdin.take());
        let _ended = self.holder.wait();
    }
}

/// Search path inside the node.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Where a program of `tests/programs` lies inside the node.
#[track_caller]
pub fn inside(name: &str, link: Link) -> String {
    let path = program(name, link);
    let file = Path::new(path.file_name().expect("a program has a name"));
    Path::new("/run/programs").join(file).display().to_string()
}

#[track_caller]
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}
