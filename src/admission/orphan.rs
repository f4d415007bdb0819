//! Whether anybody alive answers for a process. `stint status` names those that hold a device and have nobody, `stint reap`
//! ends them; so in doubt somebody does.
//!
//! A process is an orphan when
//! 1. it was adopted: going up from it, parent by parent within its session, one comes to a process that is not the
//!    session's leader and whose parent is outside the session (process 1, or another that adopts). What started it there has
//!    ended. Or: it descends from no launch any more, but was a client of one whose `stint run` has ended; and
//! 2. of its session's leader, its process group's leader and that launch one has ended; and
//! 3. nothing else answers for it: it is in no pid namespace of its own (a container's first process lives as long as that),
//!    in no service but those that start other people's processes (logins, cron), and in no Slurm job whose slurmstepd lives.
//!
//! One that ignores SIGHUP, as under `nohup`, was meant to outlive its session: it is named and spared.

use std::fs;

use super::process::{self, Stat};

/// Services that start processes for others and do not answer for what is left of them. The part before `@` or `.`.
const STARTERS: [&str; 14] = [
    "ssh",
    "sshd",
    "dropbear",
    "xrdp",
    "getty",
    "serial-getty",
    "console-getty",
    "cron",
    "crond",
    "anacron",
    "atd",
    "docker",
    "containerd",
    "slurmd",
];

/// Longest way up within a session that is looked at.
const LONGEST_WAY: usize = 256;

/// Why nobody answers for a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    pub why: &'static str,
    /// Why it is left alone all the same.
    pub spared: Option<&'static str>,
}

/// What is known of a process beside what the kernel tells.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// It was the client of a launch that has ended.
    pub launch_over: bool,
    /// Path of its control group.
    pub cgroup: Option<&'a str>,
    /// The Slurm job it is in.
    pub job: Option<u64>,
}

/// Judges the process of `stat`. `None`: somebody answers for it, or it has ended.
pub fn orphan(stat: Stat, known: Known<'_>) -> Option<Orphan> {
    let why = gone(stat, known.launch_over, process::stat)?;
    let more = process::standing(stat.identity.pid)?;
    let service = known.cgroup.and_then(cgroup::service);
    let answered = more.nested
        || service.is_some_and(|service| !starts_others(service))
        || known.job.is_some_and(has_step);
    let spared = more.ignores_hangup.then_some("it ignores SIGHUP, as under nohup");
    (!answered).then_some(Orphan { why, spared })
}

/// Points 1 and 2: which of those above it has ended.
fn gone(stat: Stat, launch_over: bool, look: impl Fn(u32) -> Option<Stat>) -> Option<&'static str> {
    let lives = |pid: u32| pid == stat.identity.pid || look(pid).is_some_and(|found| !found.ended);
    if launch_over {
        return Some("the `stint run` it was started by has ended");
    }
    if stat.session == stat.identity.pid || !adopted(stat, &look) {
        return None;
    }
    if !lives(stat.session) {
        return Some("its session's leader has ended");
    }
    (!lives(stat.group)).then_some("the leader of its process group has ended")
}

/// Whether the way up within the session ends before the session's leader.
fn adopted(of: Stat, look: impl Fn(u32) -> Option<Stat>) -> bool {
    let mut child = of;
    for _ in 0..LONGEST_WAY {
        if child.identity.pid == of.session {
            return false;
        }
        match look(child.parent) {
            Some(parent) if parent.session == of.session => child = parent,
            Some(_) => return true,
            // It ended just now; whoever looks again will see who adopted its child.
            None => return child.parent <= 1,
        }
    }
    false
}

fn starts_others(service: &str) -> bool {
    let end = service.find(['@', '.']).unwrap_or(service.len());
    STARTERS.contains(&&service[..end])
}

/// Whether a process of root's answers for a step of Slurm job `job`: it calls itself `slurmstepd: [JOB.STEP]`.
fn has_step(job: u64) -> bool {
    let title = format!("slurmstepd: [{job}.");
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.any(|pid| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.starts_with(title.as_bytes()) && process::credentials(pid).is_some_and(|(uid, _)| uid == 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::process::Identity;
    use std::collections::BTreeMap;

    /// pid → (parent, group, session)
    fn world(rows: &[(u32, u32, u32, u32)]) -> BTreeMap<u32, Stat> {
        let stat = |&(pid, parent, group, session): &(u32, u32, u32, u32)| {
            let identity = Identity { pid, start_time: 1 };
            let image = [0; 3];
            (
                pid,
                Stat {
                    identity,
                    parent,
                    ended: false,
                    group,
                    session,
                    image,
                },
            )
        };
        rows.iter().map(stat).collect()
    }

    fn why(world: &BTreeMap<u32, Stat>, pid: u32, launch_over: bool) -> Option<&'static str> {
        gone(world[&pid], launch_over, |pid| world.get(&pid).copied())
    }

    const SESSION: Option<&str> = Some("its session's leader has ended");
    const GROUP: Option<&str> = Some("the leader of its process group has ended");

    #[test]
    fn a_process_below_its_sessions_leader_belongs_to_it() {
        let world = world(&[(1, 0, 1, 1), (10, 1, 10, 10), (20, 10, 20, 10), (21, 20, 20, 10)]);
        for pid in [1, 10, 20, 21] {
            assert_eq!(why(&world, pid, false), None, "{pid}");
        }
        assert!(why(&world, 21, true).unwrap().contains("stint run"));
    }

    #[test]
    fn what_outlives_its_login_is_an_orphan_with_all_its_children() {
        let world = world(&[
            (1, 0, 1, 1),
            (5, 1, 5, 5),
            (20, 1, 20, 10),
            (21, 20, 20, 10),
            (30, 5, 30, 10),
        ]);
        assert_eq!(why(&world, 20, false), SESSION);
        assert_eq!(why(&world, 21, false), SESSION, "a worker of an orphan");
        assert_eq!(why(&world, 30, false), SESSION, "adopted by a user's own manager");
    }

    #[test]
    fn a_child_whose_parent_was_killed_in_a_living_session_is_an_orphan() {
        // A shell started 20, which started 21; 20 was killed. 31's parent ended too, but the leader of its group lives on.
        let world = world(&[
            (1, 0, 1, 1),
            (10, 1, 10, 10),
            (21, 1, 20, 10),
            (30, 10, 30, 10),
            (31, 1, 30, 10),
        ]);
        assert_eq!(why(&world, 21, false), GROUP);
        assert_eq!(why(&world, 31, false), None);
    }

    #[test]
    fn a_leader_nobody_has_waited_for_has_ended() {
        let mut world = world(&[(1, 0, 1, 1), (10, 5, 10, 10), (20, 1, 20, 10)]);
        assert_eq!(why(&world, 20, false), None);
        world.get_mut(&10).unwrap().ended = true;
        assert_eq!(why(&world, 20, false), SESSION);
    }

    #[test]
    fn a_process_that_made_its_own_session_answers_for_itself() {
        let world = world(&[(1, 0, 1, 1), (40, 1, 40, 40), (41, 40, 40, 40)]);
        assert_eq!(why(&world, 40, false), None);
        assert_eq!(why(&world, 41, false), None);
    }

    #[test]
    fn a_parent_that_ends_during_the_look_decides_nothing() {
        let world = world(&[(1, 0, 1, 1), (21, 20, 20, 10)]);
        assert_eq!(why(&world, 21, false), None);
    }

    #[test]
    fn services_answer_for_their_processes_unless_they_start_other_peoples() {
        for service in [
            "ssh.service",
            "sshd@3-1.service",
            "cron.service",
            "getty@tty1.service",
        ] {
            assert!(starts_others(service), "{service}");
        }
        for service in ["jupyterhub.service", "ssh-agent.service", "slurmdbd.service"] {
            assert!(!starts_others(service), "{service}");
        }
    }

    #[test]
    fn a_session_whose_leader_is_killed_leaves_orphans_and_nohup_spares_them() {
        use std::io::{BufRead, BufReader};
        use std::process::{Command, Stdio};
        for (prefix, spared) in [("", false), ("trap '' HUP; ", true)] {
            let script = format!("{prefix}sleep 1000 & echo $!; wait");
            let mut command = Command::new("setsid");
            command
                .args(["--wait", "sh", "-c", &script])
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
            let mut leader = command.spawn().unwrap();
            let mut line = String::new();
            BufReader::new(leader.stdout.take().unwrap())
                .read_line(&mut line)
                .unwrap();
            let pid: u32 = line.trim().parse().unwrap();
            let look = || orphan(process::stat(pid).unwrap(), Known::default());
            assert_eq!(look(), None);
            let shell = process::stat(pid).unwrap().session;
            let kill = |pid: u32| {
                Command::new("kill")
                    .args(["-KILL", &pid.to_string()])
                    .status()
                    .unwrap()
            };
            kill(shell);
            leader.wait().unwrap();
            let found = loop {
                if let Some(found) = look() {
                    break found;
                }
                std::thread::yield_now();
            };
            kill(pid);
            assert_eq!(found.why, SESSION.unwrap());
            assert_eq!(found.spared.is_some(), spared, "{prefix}");
        }
    }
}
