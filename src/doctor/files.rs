//! The files of a node: its libraries, its quota file, its run directory with sockets and policy. The next file of the walk
//! is `doctor/node.rs`.

use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use super::check::Check;
use crate::artefacts::Artefacts;
use crate::daemon::QuotaFiles;

/// The shim that `stint run` preloads.
pub fn libraries() -> Check {
    let mend = "install stint again, or run `cargo xtask build`";
    let artefacts = match Artefacts::find() {
        Ok(artefacts) => artefacts,
        Err(failure) => return Check::fail("shim", failure.message, mend),
    };
    let shim = artefacts.shim();
    match driver::elf::is_ours(&shim) {
        Some(true) => Check::ok("shim", shim.display().to_string()),
        Some(false) => Check::fail("shim", format!("{} is another library", shim.display()), mend),
        None => Check::fail(
            "shim",
            format!("{} is no library that can be loaded here", shim.display()),
            mend,
        ),
    }
}

/// The installed quota file and its drop-ins, as the next daemon would read them.
pub fn quota() -> Check {
    match QuotaFiles::installed().config() {
        Ok(_) => Check::ok("quota file", "no mistakes"),
        Err(problems) => {
            let count = problems.0.len();
            let first = problems.0.first().map_or(String::new(), ToString::to_string);
            Check::fail(
                "quota file",
                format!("{count} mistakes, the first: {first}"),
                "`stint config check` lists them; until they are mended a restart keeps the daemon down",
            )
        }
    }
}

/// What a program does that finds no daemon. `owner`: whose the files must be, where that is known.
pub fn policy(run_dir: &Path, owner: Option<u32>) -> Vec<Check> {
    let path = run_dir.join(driver::run_dir::ATTACH_POLICY);
    let (name, shown) = ("policy", path.display());
    let mend = match owner {
        Some(_) => "restart the daemon: it writes it",
        None => "start the daemon: it writes it",
    };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            let found = format!("{shown}: {error}: programs that find no daemon run uncapped");
            return vec![Check::fail(name, found, mend)];
        }
    };
    let mut checks = match text.trim() {
        "absent = \"refuse\"" => vec![Check::ok(
            name,
            "programs that find no daemon are refused (CUDA error 802)",
        )],
        "absent = \"run\"" => vec![Check::warn(
            name,
            "programs that find no daemon run uncapped",
            "[node] absent = \"refuse\" turns them away",
        )],
        other => vec![Check::fail(name, format!("{shown} holds `{other}`"), mend)],
    };
    checks.extend(rights(name, &path, owner, 0o022));
    checks
}

/// Whether every user of this machine reaches the node of root in `run_dir`. The stand-in's socket is its device node: who
/// cannot open it has no GPU.
pub fn reach(run_dir: &Path, sim: bool) -> Check {
    let stand_in = run_dir.join(driver::run_dir::SIM_SOCKET);
    let attach = run_dir.join("attach");
    let mut directories: Vec<&Path> = run_dir.ancestors().collect();
    directories.reverse();
    directories.push(&attach);
    directories.extend(stand_in.parent().filter(|_| sim));
    let mode = |path: &Path| fs::metadata(path).map(|found| found.mode() & 0o777).ok();
    for directory in directories {
        if let Some(mode) = mode(directory).filter(|mode| mode & 0o001 == 0) {
            return Check::warn(
                "reach",
                format!(
                    "{} is closed to other users (mode {mode:o}): of theirs no program can be a client here",
                    directory.display()
                ),
                format!(
                    "nothing, if the node is yours alone; else `chmod o+x {}`, or leave --run-dir and STINT_RUN_DIR out",
                    directory.display()
                ),
            );
        }
    }
    if let Some(mode) = mode(&stand_in).filter(|mode| sim && mode & 0o006 != 0o006) {
        return Check::fail(
            "reach",
            format!(
                "{} has mode {mode:o}: other users have no GPU",
                stand_in.display()
            ),
            format!(
                "`chmod 666 {}`, or end the stand-in, `stint sim stop`, and restart the daemon",
                stand_in.display()
            ),
        );
    }
    Check::ok("reach", "every user's programs reach the node")
}

/// The run directory and what listens in it.
pub fn sockets(run_dir: &Path, owner: Option<u32>) -> Vec<Check> {
    let mut faults = Vec::new();
    let attach_dir = run_dir.join("attach");
    for directory in [run_dir, &attach_dir] {
        faults.extend(rights("sockets", directory, owner, 0o022));
    }
    for socket in [driver::run_dir::ATTACH_SOCKET, driver::run_dir::ADMIN_SOCKET] {
        let path = run_dir.join(socket);
        faults.extend(rights("sockets", &path, owner, 0));
        let mode = fs::symlink_metadata(&path)
            .ok()
            .filter(|found| found.file_type().is_socket())
            .map(|found| found.mode() & 0o777);
        match mode {
            Some(0o666) => {}
            Some(mode) => faults.push(Check::fail(
                "sockets",
                format!(
                    "{} has mode {mode:o}: not every user can reach it",
                    path.display()
                ),
                format!("`chmod 666 {}`, or restart the daemon", path.display()),
            )),
            None => faults.push(Check::fail(
                "sockets",
                format!("{} is no socket", path.display()),
                "restart the daemon: it makes it",
            )),
        }
    }
    if faults.is_empty() {
        faults.push(Check::ok(
            "sockets",
            format!("{}: owner and modes are right", run_dir.display()),
        ));
    }
    faults
}

/// A file of another owner, or with rights it must not give.
fn rights(name: &str, path: &Path, owner: Option<u32>, forbidden: u32) -> Option<Check> {
    let found: Metadata = fs::symlink_metadata(path).ok()?;
    let shown = path.display();
    if let Some(owner) = owner.filter(|owner| *owner != found.uid()) {
        return Some(Check::fail(
            name,
            format!(
                "{shown} belongs to user {}, the daemon is user {owner}",
                found.uid()
            ),
            format!("`chown {owner} {shown}`, and find out who made it"),
        ));
    }
    let mode = found.mode() & 0o7777;
    (mode & forbidden != 0).then(|| {
        Check::fail(
            name,
            format!("{shown} may be written by others (mode {mode:o}): they can put themselves in the daemon's place"),
            format!("`chmod go-w {shown}`"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::Verdict;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    fn verdicts(checks: &[Check]) -> Vec<Verdict> {
        checks.iter().map(|check| check.verdict).collect()
    }

    #[test]
    fn a_policy_that_is_gone_strange_or_open_is_a_fault() {
        let dir = tempfile::tempdir().unwrap();
        let own = Some(rustix::process::geteuid().as_raw());
        fs::create_dir(dir.path().join("attach")).unwrap();
        assert_eq!(verdicts(&policy(dir.path(), own)), [Verdict::Fail]);
        let file = dir.path().join("attach/policy");
        for (text, expected) in [
            ("absent = \"refuse\"\n", Verdict::Ok),
            ("absent = \"run\"\n", Verdict::Warn),
            ("absent = ", Verdict::Fail),
        ] {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
            assert_eq!(verdicts(&policy(dir.path(), own)), [expected], "{text}");
        }
        fs::write(&file, "absent = \"refuse\"\n").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
        assert_eq!(verdicts(&policy(dir.path(), own)), [Verdict::Ok, Verdict::Fail]);
        fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        assert_eq!(
            verdicts(&policy(dir.path(), own.map(|uid| uid + 1))),
            [Verdict::Ok, Verdict::Fail]
        );
    }

    #[test]
    fn what_keeps_other_users_out_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("node");
        for directory in ["node", "node/attach", "node/sim"] {
            fs::create_dir(dir.path().join(directory)).unwrap();
        }
        let mode = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        let (closed, socket) = (dir.path().to_path_buf(), path.join("sim/sim.sock"));
        let _listening = UnixListener::bind(&socket).unwrap();
        for open in [&closed, &path, &path.join("attach"), &path.join("sim")] {
            mode(open, 0o755);
        }
        mode(&socket, 0o666);
        assert_eq!(reach(&path, true).verdict, Verdict::Ok);
        mode(&socket, 0o600);
        assert_eq!(reach(&path, true).verdict, Verdict::Fail);
        assert_eq!(reach(&path, false).verdict, Verdict::Ok, "it is not of this node");
        mode(&path.join("sim"), 0o700);
        let check = reach(&path, true);
        assert_eq!(check.verdict, Verdict::Warn);
        assert!(
            check
                .found
                .starts_with(&format!("{} is", path.join("sim").display()))
        );
        mode(&closed, 0o700);
        let check = reach(&path, false);
        assert!(
            check.found.starts_with(&format!("{} is", closed.display())),
            "{check:?}"
        );
    }

    #[test]
    fn sockets_that_are_closed_gone_or_in_an_open_directory_are_faults() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("attach")).unwrap();
        let own = Some(rustix::process::geteuid().as_raw());
        let paths = ["attach/attach.sock", "stint.sock"].map(|name| dir.path().join(name));
        let _listening: Vec<UnixListener> = paths
            .iter()
            .map(|path| UnixListener::bind(path).unwrap())
            .collect();
        let mode = |path: &Path, mode| fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        paths.iter().for_each(|path| mode(path, 0o666));
        mode(&dir.path().join("attach"), 0o755);
        assert_eq!(verdicts(&sockets(dir.path(), own)), [Verdict::Ok]);
        mode(&paths[0], 0o600);
        assert_eq!(verdicts(&sockets(dir.path(), own)), [Verdict::Fail]);
        mode(&paths[0], 0o666);
        mode(dir.path(), 0o777);
        assert_eq!(verdicts(&sockets(dir.path(), own)), [Verdict::Fail]);
        mode(dir.path(), 0o755);
        fs::remove_file(&paths[1]).unwrap();
        assert_eq!(verdicts(&sockets(dir.path(), own)), [Verdict::Fail]);
    }
}
