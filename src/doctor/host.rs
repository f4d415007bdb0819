//! What this machine offers: kernel, limits, control groups, and what is preloaded into every program. The next file of the
//! walk is `doctor/files.rs`.

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

use cgroup::{Layout, Membership, Mounts};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use super::check::Check;

/// Descriptors a daemon should be able to hold: one per client, six per account and device.
const DESCRIPTORS: u64 = 16_384;

/// Kernel versions that bring what we use: one wait for many futexes, and a descriptor for a socket's peer.
const WAITV: (u32, u32) = (5, 16);
const PEER_PIDFD: (u32, u32) = (6, 5);

pub fn kernel() -> Check {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty());
    let memfd = rustix::fs::memfd_create("stint-doctor", rustix::fs::MemfdFlags::CLOEXEC);
    if let Err(error) = pidfd {
        return Check::fail(
            "kernel",
            format!("{release}: no pidfd_open ({error})"),
            "Linux 5.3 or newer is needed",
        );
    }
    if let Err(error) = memfd {
        return Check::fail(
            "kernel",
            format!("{release}: no memfd_create ({error})"),
            "allow it where a seccomp filter forbids it; Linux has it since 3.17",
        );
    }
    features(&release)
}

/// What is slower or weaker on a kernel of that release.
fn features(release: &str) -> Check {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < WAITV {
        return Check::warn(
            "kernel",
            format!(
                "{release}: no futex_waitv, so that the daemon looks at its clients' events every millisecond"
            ),
            "Linux 5.16 or newer has it",
        );
    }
    if version < PEER_PIDFD {
        let found = format!(
            "{release}: pidfd, memfd, futex_waitv; who attaches is found by a challenge, for want of SO_PEERPIDFD"
        );
        return Check::ok("kernel", found);
    }
    Check::ok(
        "kernel",
        format!("{release}: pidfd, memfd, futex_waitv, SO_PEERPIDFD"),
    )
}

/// Open files the daemon `pid` may have.
pub fn limits(pid: u32) -> Check {
    match fs::read_to_string(format!("/proc/{pid}/limits")) {
        Ok(text) => open_files(&text),
        Err(error) => Check::warn(
            "limits",
            format!("the limits of the daemon (pid {pid}) cannot be read: {error}"),
            "run the doctor as root",
        ),
    }
}

fn open_files(limits: &str) -> Check {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let word = line
        .and_then(|line| line.split_ascii_whitespace().next())
        .unwrap_or("?");
    let most = if word == "unlimited" {
        Ok(u64::MAX)
    } else {
        word.parse()
    };
    match most {
        Ok(most) if most >= DESCRIPTORS => Check::ok("limits", format!("the daemon may open {word} files")),
        _ => Check::warn(
            "limits",
            format!("the daemon may open {word} files: one is needed per client, six per account and device"),
            format!("raise it to {DESCRIPTORS}: `LimitNOFILE=` in its unit, or `ulimit -Hn`"),
        ),
    }
}

pub fn cgroup() -> Check {
    let mounts = match Mounts::read() {
        Ok(mounts) => mounts,
        Err(error) => {
            let found = format!("/proc/self/mountinfo cannot be read: {error}");
            return Check::fail("cgroup", found, "mount /proc");
        }
    };
    let pid = getpid();
    let own = pidfd_open(pid, PidfdFlags::empty())
        .map_err(std::io::Error::from)
        .and_then(|pidfd| Membership::of(Pid::as_raw(Some(pid)).unsigned_abs(), pidfd.as_fd()));
    match (mounts.layout(), own) {
        (_, Err(error)) => Check::fail(
            "cgroup",
            format!("/proc/self/cgroup cannot be read: {error}"),
            "mount /proc",
        ),
        (Layout::Absent, _) => Check::warn(
            "cgroup",
            "no control groups are mounted: containers, jobs and services cannot be told apart",
            "mount cgroup2 at /sys/fs/cgroup; tenants are then matched by user and group only",
        ),
        (layout, Ok(own)) => {
            let name = match layout {
                Layout::Unified => "unified (v2)",
                Layout::Hybrid => "hybrid (v1 and v2)",
                _ => "legacy (v1)",
            };
            let group = own
                .as_ref()
                .and_then(Membership::named)
                .map_or("/", |group| group.path.as_str());
            Check::ok("cgroup", format!("{name}; this command is in {group}"))
        }
    }
}

/// Whether the shim stands in front of the driver for the whole host, where it should.
pub fn host_mode() -> Check {
    match crate::host::standing() {
        Ok((true, how)) => Check::ok("host mode", how),
        Ok((false, how)) => Check::fail(
            "host mode",
            how,
            "`stint host enable` puts it right, `stint host disable` ends it",
        ),
        Err(failure) => Check::fail("host mode", failure.message, "install stint again"),
    }
}

/// Libraries that the loader puts into every program.
pub fn preload(file: &Path) -> Check {
    let shown = file.display();
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Check::ok("preload", format!("{shown} is not there"));
        }
        Err(error) => {
            return Check::warn(
                "preload",
                format!("{shown}: {error}"),
                "make it readable for everybody, mode 0644",
            );
        }
    };
    let named = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let named: Vec<&str> = named
        .flat_map(|line| line.split([' ', '\t', ':']))
        .filter(|name| !name.is_empty())
        .collect();
    let missing = |name: &&&str| name.starts_with('/') && !name.contains('$') && !Path::new(name).exists();
    if let Some(missing) = named.iter().find(missing) {
        return Check::fail(
            "preload",
            format!("{shown} names {missing}, which is not there: every program complains"),
            format!("take the line out of {shown}, or install what it names"),
        );
    }
    Check::ok(
        "preload",
        format!(
            "{shown} names {}",
            if named.is_empty() {
                "nothing".into()
            } else {
                named.join(", ")
            }
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::Verdict;

    #[test]
    fn what_a_kernel_lacks_is_told() {
        for (release, verdict, part) in [
            ("5.15.0-91-generic", Verdict::Warn, "no futex_waitv"),
            ("6.1.0-13-amd64", Verdict::Ok, "challenge"),
            ("6.12.3", Verdict::Ok, "SO_PEERPIDFD"),
        ] {
            let check = features(release);
            assert_eq!(check.verdict, verdict, "{release}");
            assert!(check.found.contains(part), "{check:?}");
        }
    }

    #[test]
    fn few_open_files_are_a_warning() {
        let limits = |most: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                                           Max open files            {most}                 {most}              files     \n"
            )
        };
        assert_eq!(open_files(&limits("1024")).verdict, Verdict::Warn);
        assert_eq!(open_files(&limits("1048576")).verdict, Verdict::Ok);
        assert_eq!(open_files(&limits("unlimited")).verdict, Verdict::Ok);
        assert_eq!(open_files("").verdict, Verdict::Warn);
        assert_eq!(
            limits_of_self().verdict,
            open_files(&fs::read_to_string("/proc/self/limits").unwrap()).verdict
        );
    }

    fn limits_of_self() -> Check {
        super::limits(std::process::id())
    }

    #[test]
    fn a_preloaded_library_that_is_not_there_is_a_fault() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ld.so.preload");
        assert_eq!(preload(&file).verdict, Verdict::Ok);
        fs::write(&file, "# a comment /nowhere.so\n").unwrap();
        assert_eq!(preload(&file).verdict, Verdict::Ok);
        fs::write(&file, format!("{} /nowhere/libstint.so\n", file.display())).unwrap();
        let check = preload(&file);
        assert_eq!(check.verdict, Verdict::Fail);
        assert!(check.found.contains("/nowhere/libstint.so"), "{check:?}");
    }

    #[test]
    fn this_kernel_can_run_a_node() {
        assert_ne!(kernel().verdict, Verdict::Fail);
        assert_ne!(cgroup().verdict, Verdict::Fail);
    }
}
