//! Where a node keeps its sockets: one rule for the daemon, the shim and the stand-in.

use std::path::{Path, PathBuf};

use crate::environment::variable;

/// The run directory of an installed node.
pub const SYSTEM: &str = "/run/stint";

/// The attach socket below a run directory.
pub const ATTACH_SOCKET: &str = "attach/attach.sock";
/// What a shim does when no daemon answers, below a run directory.
pub const ATTACH_POLICY: &str = "attach/policy";
/// The admin socket below a run directory.
pub const ADMIN_SOCKET: &str = "stint.sock";
/// The stand-in's device socket below a run directory.
pub const SIM_SOCKET: &str = "sim/sim.sock";

/// The run directory of the calling user when nobody named one: `/run/stint` for root, else
/// `$XDG_RUNTIME_DIR/stint`, else `/var/tmp/stint-UID`.
pub fn default_for_user() -> PathBuf {
    // SAFETY: geteuid has no preconditions and cannot fail.
    let uid = unsafe { libc::geteuid() };
    if uid == 0 {
        return SYSTEM.into();
    }
    match variable(c"XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute())
    {
        Some(dir) => dir.join("stint"),
        None => PathBuf::from(format!("/var/tmp/stint-{uid}")),
    }
}

/// `$STINT_RUN_DIR`; `None` under `AT_SECURE`.
pub fn named() -> Option<PathBuf> {
    variable(c"STINT_RUN_DIR")
        .map(PathBuf::from)
        .filter(|dir| !dir.as_os_str().is_empty())
}

/// The run directory whose node a shim belongs to. An installed node comes before any variable, so that
/// nobody leaves it by naming another; `None` means this machine has no node and nothing is capped.
pub fn of_shim() -> Option<PathBuf> {
    let present = |dir: &Path| dir.join(ATTACH_SOCKET).exists() || dir.join(ATTACH_POLICY).exists();
    let system = PathBuf::from(SYSTEM);
    if present(&system) {
        return Some(system);
    }
    named().filter(|dir| present(dir))
}

/// The run directory whose stand-in GPU a program sees: the named one, the installed node's if it runs a
/// stand-in, else the user's own.
pub fn of_sim() -> PathBuf {
    if let Some(dir) = named() {
        return dir;
    }
    let system = PathBuf::from(SYSTEM);
    if system.join(SIM_SOCKET).exists() {
        system
    } else {
        default_for_user()
    }
}

/// The part of `path` that keeps the caller out: the first directory it may not search, else `path` itself. Of use after
/// the system said "permission denied", which names neither.
pub fn closed_part(path: &Path) -> PathBuf {
    let mut parts: Vec<&Path> = path
        .ancestors()
        .filter(|part| !part.as_os_str().is_empty())
        .collect();
    parts.reverse();
    for pair in parts.windows(2) {
        let seen = std::fs::symlink_metadata(pair[1]);
        if seen.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied) {
            return pair[0].into();
        }
    }
    path.into()
}

/// What `[node] absent` says, as the daemon left it beside its socket: whether a program runs uncapped when no daemon
/// answers. Whatever cannot be read means "refuse".
pub fn absent_may_run(run_dir: &Path) -> bool {
    let text = std::fs::read_to_string(run_dir.join(ATTACH_POLICY)).unwrap_or_default();
    may_run(&text)
}

fn may_run(policy: &str) -> bool {
    policy.lines().any(|line| {
        let mut sides = line.splitn(2, '=').map(str::trim);
        sides.next() == Some("absent") && sides.next() == Some("\"run\"")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_nobody_out_is_the_path_itself() {
        assert_eq!(closed_part(Path::new("/dev/null")), Path::new("/dev/null"));
        assert_eq!(closed_part(Path::new("nowhere/x")), Path::new("nowhere/x"));
    }

    #[test]
    fn only_the_word_run_lets_a_process_run() {
        assert!(may_run("absent = \"run\"\n"));
        assert!(may_run("# comment\nabsent=\"run\""));
        for refused in [
            "",
            "absent = \"refuse\"",
            "absent = run",
            "absent = \"runs\"",
            "# absent = \"run\"",
        ] {
            assert!(!may_run(refused), "{refused:?}");
        }
    }
}
