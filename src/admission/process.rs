//! A process as the kernel tells it: who it is, since when, whose child. Everything here is read from `/proc` under a
//! pidfd that is checked afterwards, so that what was read is about that process and no later one with its number.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{UnixCredentials, getsockopt, sockopt};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::Timespec;

/// Parents looked at; a longer chain is cut.
const LONGEST_CHAIN: usize = 256;

/// One process for as long as the machine runs: a pid alone is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`, in clock ticks since boot.
    pub start_time: u64,
}

/// What `/proc/PID/stat` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub identity: Identity,
    pub parent: u32,
    /// It has ended, and its parent has not asked how.
    pub ended: bool,
    /// Its process group and its session, by the numbers of their leaders.
    pub group: u32,
    pub session: u32,
    /// Addresses that change when the process executes another program: start of code, of the stack, of its arguments.
    /// Zero where we may not look.
    pub image: [u64; 3],
}

/// A file of `/proc/PID`. A process may give itself a name of any bytes, which stands in several of them as it is.
fn text_of(pid: u32, file: &str) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/{file}")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The process with number `pid` now, if there is one.
pub fn stat(pid: u32) -> Option<Stat> {
    parse_stat(pid, &text_of(pid, "stat")?)
}

fn parse_stat(pid: u32, text: &str) -> Option<Stat> {
    // The name in parentheses may hold anything, also `) `: the last one ends it.
    let fields: Vec<&str> = text
        .get(text.rfind(')')? + 1..)?
        .split_ascii_whitespace()
        .collect();
    // `fields[0]` is field 3 of proc_pid_stat(5).
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        identity: Identity {
            pid,
            start_time: number(22)?,
        },
        parent: u32::try_from(number(4)?).ok()?,
        ended: matches!(fields.first(), Some(&("Z" | "X"))),
        group: u32::try_from(number(5)?).unwrap_or(0),
        session: u32::try_from(number(6)?).unwrap_or(0),
        image: [
            number(26).unwrap_or(0),
            number(28).unwrap_or(0),
            number(48).unwrap_or(0),
        ],
    })
}

/// Who a socket's peer was when it connected, as the kernel tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credentials {
    pub pid: u32,
    /// Effective user.
    pub uid: u32,
}

impl Credentials {
    /// The peer of `socket`. `None`: it is in no pid namespace we can see into, and has no number here.
    pub fn of(socket: &impl AsFd) -> Option<Credentials> {
        Credentials::from_kernel(getsockopt(socket, sockopt::PeerCredentials).ok()?)
    }

    pub fn from_kernel(credentials: UnixCredentials) -> Option<Credentials> {
        let pid = u32::try_from(credentials.pid()).ok().filter(|pid| *pid != 0)?;
        Some(Credentials {
            pid,
            uid: credentials.uid(),
        })
    }
}

/// Whether the process behind `pidfd` has ended.
pub fn ended(pidfd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    matches!(poll(&mut fds, Some(&now)), Ok(ready) if ready > 0)
}

/// A descriptor for `identity`; `None` when that process has ended.
pub fn open(identity: Identity) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(identity.pid).ok()?)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // Opened first, compared afterwards: if this is still the same process, the descriptor is its own.
    (stat(identity.pid)?.identity == identity && !ended(pidfd.as_fd())).then_some(pidfd)
}

/// The process, its parent, and so on; itself first. A parent that ends meanwhile is replaced by whoever adopts the child.
pub fn chain(of: Stat) -> Vec<Identity> {
    chain_in(stat, of)
}

/// The same, where `stat` tells of processes.
fn chain_in(stat: impl Fn(u32) -> Option<Stat>, of: Stat) -> Vec<Identity> {
    let mut chain = vec![of.identity];
    let mut child = of;
    while child.parent > 1 && chain.len() < LONGEST_CHAIN {
        // Nobody is older than its parent: who is has the number of one that has ended.
        let is_older = |parent: &Stat| parent.identity.start_time <= child.identity.start_time;
        let Some(parent) = stat(child.parent).filter(is_older) else {
            match stat(child.identity.pid) {
                Some(again) if again.identity == child.identity && again.parent != child.parent => {
                    child = again;
                    continue;
                }
                _ => break,
            }
        };
        chain.push(parent.identity);
        child = parent;
    }
    chain
}

/// Name of the program, without its arguments; empty when the process has gone.
pub fn command(pid: u32) -> String {
    text_of(pid, "comm").unwrap_or_default().trim_end().to_string()
}

/// The process's user (real uid is what it is billed as) and all its groups.
pub fn credentials(pid: u32) -> Option<(u32, Vec<u32>)> {
    parse_status(&text_of(pid, "status")?)
}

fn parse_status(text: &str) -> Option<(u32, Vec<u32>)> {
    let numbers = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(
            line.split_ascii_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect::<Vec<u32>>(),
        )
    };
    let user = *numbers("Uid:")?.first()?;
    let mut groups = numbers("Gid:")?;
    groups.extend(numbers("Groups:").unwrap_or_default());
    groups.sort_unstable();
    groups.dedup();
    Some((user, groups))
}

/// The processes there are now, by their numbers.
pub fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// How a process stands to its session and to our pid namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub ignores_hangup: bool,
    /// It is in a pid namespace below ours.
    pub nested: bool,
}

/// That of the process with number `pid` now, if there is one.
pub fn standing(pid: u32) -> Option<Standing> {
    parse_standing(&text_of(pid, "status")?)
}

fn parse_standing(text: &str) -> Option<Standing> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let ignored = u64::from_str_radix(value("SigIgn:")?.trim(), 16).ok()?;
    Some(Standing {
        // SIGHUP is signal 1, the lowest bit.
        ignores_hangup: ignored & 1 != 0,
        nested: value("NSpid:").is_some_and(|numbers| numbers.split_ascii_whitespace().count() > 1),
    })
}

/// Whether the process maps one of the files `inodes`, told by device and inode. `None`: we may not look, or it has gone.
pub fn maps_any(pid: u32, inodes: &[(u64, u64)]) -> Option<bool> {
    let maps = fs::read(format!("/proc/{pid}/maps")).ok()?;
    Some(mapped_files(&maps).any(|file| inodes.contains(&file)))
}

/// Those of the files `inodes` that the process maps, and how many bytes told so. `None`: we may not look, or it has gone.
pub fn mapped(pid: u32, inodes: &[(u64, u64)]) -> Option<(BTreeSet<(u64, u64)>, usize)> {
    let maps = fs::read(format!("/proc/{pid}/maps")).ok()?;
    let found = mapped_files(&maps).filter(|file| inodes.contains(file));
    Some((found.collect(), maps.len()))
}

/// Device and inode of the file behind each line of `/proc/PID/maps`.
fn mapped_files(maps: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    let lines = maps.split(|byte| *byte == b'\n');
    lines.filter_map(|line| {
        std::str::from_utf8(line)
            .ok()
            .or_else(|| first_fields(line))
            .and_then(mapped_file)
    })
}

/// The part of a line of `maps` before its path, which need not be text.
fn first_fields(line: &[u8]) -> Option<&str> {
    let end = line
        .iter()
        .position(|byte| !byte.is_ascii())
        .unwrap_or(line.len());
    std::str::from_utf8(&line[..end]).ok()
}

/// Device and inode of a line of `/proc/PID/maps`.
fn mapped_file(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_ascii_whitespace().skip(3);
    let (major, minor) = fields.next()?.split_once(':')?;
    let major = u32::from_str_radix(major, 16).ok()?;
    let minor = u32::from_str_radix(minor, 16).ok()?;
    Some((rustix::fs::makedev(major, minor), fields.next()?.parse().ok()?))
}

/// Whether the process is in the same namespace `kind` (`user`, `pid`) as we are. `None`: we may not look.
pub fn same_namespace(pid: u32, kind: &str) -> Option<bool> {
    let theirs = fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()?;
    let ours = fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    Some(theirs == ours)
}

#[cfg(test)]
mod fuzzed;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let text = "7 (a) b (c)) S 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 5 6 7 26 27 28 29 30 31 32 33 34 35 36 37 \
                    38 39 40 41 42 43 44 45 46 47 48 49 50 51";
        let stat = parse_stat(7, text).unwrap();
        assert_eq!(
            stat.identity,
            Identity {
                pid: 7,
                start_time: 4242
            }
        );
        assert_eq!(
            (stat.parent, stat.group, stat.session, stat.ended),
            (3, 7, 7, false)
        );
        assert!(parse_stat(7, &text.replacen("S 3", "Z 3", 1)).unwrap().ended);
        assert_eq!(stat.image, [26, 28, 48]);
    }

    #[test]
    fn a_name_of_any_bytes_hides_nobody() {
        use std::os::unix::ffi::OsStrExt;
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join(std::ffi::OsStr::from_bytes(b"\xff\xfe) Z 1"));
        std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("600").spawn().unwrap();
        let pid = child.id();
        let found = (stat(pid), credentials(pid), standing(pid));
        let name = command(pid);
        child.kill().unwrap();
        child.wait().unwrap();
        let stat = found.0.expect("it is there");
        assert_eq!((stat.parent, stat.ended), (std::process::id(), false));
        assert!(found.1.is_some() && found.2.is_some());
        assert!(name.ends_with(") Z 1"), "{name}");
    }

    #[test]
    fn this_process_is_itself_and_its_chain_reaches_its_parent() {
        let me = stat(std::process::id()).unwrap();
        let chain = chain(me);
        assert_eq!(chain[0], me.identity);
        assert!(chain.len() >= 2 || me.parent <= 1);
        let pidfd = open(me.identity).unwrap();
        assert!(!ended(pidfd.as_fd()));
        let later = Identity {
            start_time: me.identity.start_time + 1,
            ..me.identity
        };
        assert!(open(later).is_none(), "another process that had this number");
        assert_eq!(same_namespace(me.identity.pid, "pid"), Some(true));
    }

    #[test]
    fn a_number_used_again_is_no_parent() {
        let of = |pid, start_time, parent| {
            let text = format!("{pid} (x) S {parent} 7 7 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 {start_time} 5 6");
            parse_stat(pid, &text).unwrap()
        };
        let child = of(70, 500, 60);
        // Its parent has ended, 60 is another's number, and 70 has been adopted by 50.
        let table = |pid| {
            [of(60, 900, 1), of(50, 100, 1), of(70, 500, 50)]
                .into_iter()
                .find(|one| one.identity.pid == pid)
        };
        let pids = |chain: Vec<Identity>| chain.into_iter().map(|one| one.pid).collect::<Vec<_>>();
        assert_eq!(pids(chain_in(table, child)), [70, 50]);
        // The adoption is not to be seen yet: the chain ends rather than lead to a stranger.
        let before = |pid| {
            [of(60, 900, 1), child]
                .into_iter()
                .find(|one| one.identity.pid == pid)
        };
        assert_eq!(pids(chain_in(before, child)), [70]);
        assert_eq!(
            pids(chain_in(|_| Some(of(60, 500, 1)), child)),
            [70, 60],
            "of the same tick"
        );
    }

    #[test]
    fn an_ended_process_is_told_by_its_descriptor() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid::from_raw(child.id() as i32).unwrap();
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        child.wait().unwrap();
        assert!(ended(pidfd.as_fd()));
    }

    #[test]
    fn user_and_groups_are_the_real_ones() {
        let text = "Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t100\t0\t0\t0\nGroups:\t4 27 \n";
        assert_eq!(parse_status(text), Some((1000, vec![0, 4, 27, 100])));
    }

    #[test]
    fn a_process_under_nohup_or_in_a_namespace_is_told() {
        let standing = |text| parse_standing(text).unwrap();
        let of_nohup = standing("NSpid:\t7\nSigIgn:\t0000000000001001\n");
        assert!(of_nohup.ignores_hangup && !of_nohup.nested);
        assert!(standing("NSpid:\t7\t1\nSigIgn:\t0000000000001000\n").nested);
        assert_eq!(parse_standing("Name:\tx\n"), None);
    }

    #[test]
    fn a_mapped_object_is_seen_in_maps() {
        let (fd, mapping) = ledger::mapping::create::<ledger::Account>(c"stint-test").unwrap();
        let file = rustix::fs::fstat(&fd).unwrap();
        let inode = [(file.st_dev, file.st_ino)];
        assert_eq!(maps_any(std::process::id(), &inode), Some(true));
        let more = [inode[0], (inode[0].0, u64::MAX)];
        let (found, bytes) = mapped(std::process::id(), &more).unwrap();
        assert!(found == inode.into() && bytes > 0);
        drop(mapping);
        assert_eq!(maps_any(std::process::id(), &inode), Some(false));
    }
}
