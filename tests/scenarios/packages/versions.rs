//! Another version comes and goes while programs run: they must not notice, and nobody may slip through meanwhile.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use super::{
    super::{GRANULE, MIB},
    files::files,
    service::{NOT_READY, caps},
    *,
};
use crate::harness::long;

/// The version that comes after [`VERSION`].
const NEXT: &str = "1.1";

/// What each user may hold.
const CAP: u64 = 8 << 30;

/// A program that works without a pause until it is told to end.
struct Worker {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Session>,
}

impl Worker {
    /// Holds one granule and allocates and frees others, every call checked.
    fn start(mut session: Session) -> Worker {
        assert_eq!(session.error(&format!("alloc {GRANULE}")), 0);
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                assert_eq!(
                    session.numbers(&format!("churn 20 {MIB}")),
                    [0, 20],
                    "a running program saw an error"
                );
            }
            session
        });
        Worker { stop, thread }
    }

    #[track_caller]
    fn end(self) -> Session {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .expect("a running program noticed what was done to the packages")
    }
}

/// What became of programs that began while versions changed.
#[derive(Debug, Default)]
struct Newcomers {
    capped: usize,
    refused: usize,
}

/// Starts one program after another; each must be capped or refused. Stopped when dropped, so that a failing test lets go of
/// its machine too.
struct Door {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Newcomers>>,
}

impl Door {
    fn open(machine: Arc<Machine>) -> Door {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut seen = Newcomers::default();
            while !told.load(Ordering::Relaxed) {
                let mut session = program_of(&machine, "bob");
                match session.ask("init").as_str() {
                    "0" => {
                        assert_eq!(session.numbers("total 0"), [0, CAP], "a newcomer is not capped");
                        seen.capped += 1;
                    }
                    answer => {
                        assert_eq!(answer, NOT_READY, "a newcomer is neither admitted nor refused");
                        seen.refused += 1;
                    }
                }
            }
            seen
        });
        Door {
            stop,
            thread: Some(thread),
        }
    }

    #[track_caller]
    fn close(mut self) -> Newcomers {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("a door is closed once");
        thread.join().expect("a newcomer slipped through")
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _failed_already = thread.join();
        }
    }
}

/// A version that cannot read the quota file comes: the daemon that could goes on, and the administrator is told.
#[track_caller]
fn a_broken_quota_file_keeps_the_daemon(machine: &Machine, version: &str, good: &str) {
    let (running, clients) = (daemon(machine), clients_of(machine, "alice"));
    quota(machine, "[defaults]\nmemori = \"1GiB\"\n");
    let told = machine.sh(&format!("dpkg -i {}", paths(version))).success();
    assert_eq!(daemon(machine), running, "{told:?}");
    assert_eq!(clients_of(machine, "alice"), clients);
    for part in [
        "stint: /etc/stint/stint.toml:2:1: there is no key `memori` here; did you mean `memory`?",
        "goes on; mend the quota file, then: systemctl restart stintd",
    ] {
        assert!(told.stderr.contains(part), "{part}: {told:?}");
    }
    quota(machine, good);
    machine.sh("systemctl restart stintd").success();
    assert_ne!(
        daemon(machine),
        running,
        "the new version's, now that it can read the file"
    );
    assert_eq!(clients_of(machine, "alice"), clients);
}

#[test]
fn programs_notice_neither_upgrades_nor_downgrades_nor_the_removal() {
    let Some(machine) = machine("upgrades of the packages", &[VERSION, NEXT]) else {
        return;
    };
    let machine = Arc::new(machine);
    let before = files(|line| machine.sh(line));
    machine.sh(&format!("dpkg -i {}", paths(VERSION))).success();
    let good = format!("[defaults]\nmemory = \"{CAP}B\"\n{}", caps("8GiB"));
    quota(&machine, &good);
    use_stand_in(&machine, "");
    let (programs, changes) = if long() { (50, 21) } else { (4, 3) };
    let workers: Vec<_> = (0..programs)
        .map(|_| Worker::start(client_of(&machine, "alice")))
        .collect();
    let door = Door::open(Arc::clone(&machine));

    for change in 0..changes {
        let version = if change % 2 == 0 { NEXT } else { VERSION };
        let (old, clients) = (daemon(&machine), clients_of(&machine, "alice"));
        assert_eq!(clients.len(), programs);
        machine.sh(&format!("dpkg -i {}", paths(version))).success();
        assert_ne!(daemon(&machine), old, "the daemon is of the new version");
        assert_eq!(
            clients_of(&machine, "alice"),
            clients,
            "it knows every program that runs"
        );
        let shims = machine.sh("ls /usr/lib/stint/lib").success().stdout;
        let expected =
            format!("libstint-{version}.so\nlibstint-nvml-{version}.so\nlibstint-nvml.so\nlibstint.so\n");
        assert_eq!(shims, expected);
    }
    a_broken_quota_file_keeps_the_daemon(&machine, VERSION, &good);
    let seen = door.close();
    println!("{changes} changes of version, {programs} programs without an error, meanwhile begun: {seen:?}");
    assert!(seen.capped > 0, "{seen:?}");

    let maps = machine
        .sh("cat /proc/[0-9]*/maps 2> /dev/null | grep -o 'libstint-1[^ ]* *(deleted)' | sort -u")
        .stdout;
    assert_eq!(
        maps,
        format!("libstint-{VERSION}.so (deleted)\n"),
        "programs keep the shim they began with"
    );

    fs::write(machine.file("/etc/stint/stint.d/mine.toml"), "[node]\n").expect("a drop-in can be written");
    machine
        .sh("rm -r /etc/systemd/system/stintd.service.d && dpkg -P stint-sim stint")
        .success();
    let mut sessions: Vec<Session> = workers.into_iter().map(Worker::end).collect();
    for session in &mut sessions {
        assert_eq!(
            session.error(&format!("alloc {CAP}")),
            OUT_OF_MEMORY,
            "the last cap stays in force"
        );
    }
    let after = files(|line| machine.sh(line));
    let new: Vec<_> = after.iter().filter(|line| !before.contains(line)).collect();
    assert!(new.is_empty(), "left behind {new:#?}");
    assert_eq!(
        machine
            .sh("systemctl list-unit-files --no-legend 'stint*'")
            .stdout,
        ""
    );
    let running = machine.sh("cat /proc/[0-9]*/comm | grep -x stint").stdout;
    assert_eq!(running, "", "no process of the daemon is left");
}
