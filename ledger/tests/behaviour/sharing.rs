//! Descriptors, other processes, and the doorbell between them.

use crate::setup::{Crowd, Pair, slot};
use ledger::doorbell::{Doorbell, MOST_BELLS, Seen, Woken, wait};
use ledger::layout::HeaderError;
use ledger::mapping::{MapError, reopen_read_only};
use ledger::ring::{Event, Kind};
use ledger::{Account, Client, Mapping, Policy, View};
use rustix::fd::AsFd;
use rustix::fs::{MemfdFlags, OFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

#[test]
fn an_object_cannot_be_resized_and_its_seals_are_final() {
    let pair = Pair::new(4096);
    for fd in [pair.policy_fd.as_fd(), pair.account_fd.as_fd()] {
        for size in [0, 1 << 30] {
            assert_eq!(rustix::fs::ftruncate(fd, size), Err(Errno::PERM));
        }
        assert_eq!(
            rustix::fs::fcntl_add_seals(fd, SealFlags::WRITE),
            Err(Errno::PERM)
        );
        assert_eq!(
            rustix::fs::fstat(fd).expect("an open descriptor").st_mode & 0o7777,
            0o600
        );
        assert!(
            rustix::io::fcntl_getfd(fd)
                .expect("an open descriptor")
                .contains(rustix::io::FdFlags::CLOEXEC)
        );
    }
}

#[test]
fn what_clients_get_of_the_policy_can_only_be_read() {
    let pair = Pair::new(4096);
    let read_only = reopen_read_only(&pair.policy_fd).expect("a descriptor");
    assert!(matches!(
        Mapping::<Policy>::open(&read_only),
        Err(MapError::System(Errno::ACCESS))
    ));
    let flags = rustix::fs::fcntl_getfl(&read_only).expect("an open descriptor");
    assert_eq!(flags & OFlags::RWMODE, OFlags::RDONLY);
    let view = View::<Policy>::open(&read_only).expect("a policy");
    assert_eq!(view.cap(), 4096);
    pair.daemon().set_context_bytes(99);
    pair.daemon()
        .set_cap(8192, ledger::Mode::Enforce)
        .expect("nobody else is here");
    assert_eq!(
        (view.cap(), view.context_bytes()),
        (8192, 99),
        "it is the same memory"
    );
    let mut client = Client::new(&view, &pair.account, slot(1));
    assert_eq!(
        client.reserve(8192),
        Ok(()),
        "a client needs no more than the view"
    );
}

#[test]
fn an_observer_sees_the_account_through_a_view() {
    let pair = Pair::new(1 << 20);
    let view =
        View::<Account>::open(reopen_read_only(&pair.account_fd).expect("a descriptor")).expect("an account");
    pair.client(3).reserve(4096).expect("it fits");
    assert_eq!((view.used(), view.slot(slot(3)).charge()), (4096, 4096));
    assert_eq!(view.occupied().collect::<Vec<_>>(), [slot(3)]);
}

#[test]
fn other_files_are_not_taken_for_objects() {
    let pair = Pair::new(4096);
    let policy_size = size_of::<Policy>() as u64;
    assert_eq!(
        Mapping::<Account>::open(&pair.policy_fd).err(),
        Some(MapError::Header(HeaderError::Size(policy_size)))
    );

    let file = rustix::fs::memfd_create(c"stranger", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .expect("a memfd");
    rustix::fs::ftruncate(&file, policy_size).expect("it can grow");
    assert_eq!(View::<Policy>::open(&file).err(), Some(MapError::Unsealed));
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
        .expect("it can be sealed");
    assert_eq!(
        View::<Policy>::open(&file).err(),
        Some(MapError::Header(HeaderError::Magic))
    );

    let mut head = [0; 24];
    read_head(&pair.policy_fd, &mut head);
    head[8..12].copy_from_slice(&9u32.to_le_bytes());
    rustix::io::pwrite(&file, &head, 0).expect("it can be written");
    assert_eq!(
        View::<Policy>::open(&file).err(),
        Some(MapError::Header(HeaderError::Version(9)))
    );
}

fn read_head(fd: impl AsFd, head: &mut [u8]) {
    assert_eq!(rustix::io::pread(fd, head, 0), Ok(24));
}

#[test]
fn unused_slots_take_no_memory() {
    let pair = Pair::new(1 << 30);
    for index in 1..=3 {
        pair.client(index).reserve(4096).expect("it fits");
    }
    assert_eq!(pair.account.occupied().count(), 3);
    let blocks = rustix::fs::fstat(&pair.account_fd)
        .expect("an open descriptor")
        .st_blocks;
    // Five pages of 1025, or one huge page where the kernel gives those to memfds.
    assert!(blocks * 512 <= size_of::<Account>() as i64 / 2, "{blocks} blocks");
}

#[test]
fn a_client_in_another_process_wakes_the_daemon() {
    let pair = Pair::new(4096);
    let mut cursor = pair
        .daemon()
        .claim(slot(1), &crate::setup::owner(1))
        .expect("a vacant slot");
    let others: Vec<Pair> = (0..5).map(|_| Pair::new(4096)).collect();
    let event = Event {
        kind: Kind::Fault,
        function: 0,
        thread: 0,
        at: 5,
        asked: 0,
        used: 0,
        cap: 0,
        detail: 0,
    };
    let crowd = Crowd::gather(1, |_| {
        u8::from(Client::new(&pair.policy, &pair.account, slot(1)).post(event))
    });
    for many in [false, true] {
        let bell = pair.daemon().doorbell();
        let mut bells: Vec<(&Doorbell, Seen)> = vec![(bell, bell.seen())];
        if many {
            bells.extend(
                others
                    .iter()
                    .map(|other| other.daemon().doorbell())
                    .map(|bell| (bell, bell.seen())),
            );
        }
        assert_eq!(
            wait(&bells, Duration::from_millis(5)),
            Woken::TimedOut,
            "nobody rang"
        );
    }
    let bell = pair.daemon().doorbell();
    let mut bells: Vec<(&Doorbell, Seen)> = others
        .iter()
        .map(|other| other.daemon().doorbell())
        .map(|bell| (bell, bell.seen()))
        .collect();
    bells.push((bell, bell.seen()));
    assert_eq!(crowd.results(), [1]);
    while bell.seen() == bells[5].1 {
        assert_eq!(wait(&bells, LONG), Woken::Rung);
    }
    assert_eq!(
        pair.daemon()
            .drain(slot(1), &mut cursor, |event| assert_eq!(event.at, 5))
            .events,
        1
    );
}

#[test]
fn a_sleeper_is_woken_by_any_of_its_bells() {
    let bells: Vec<Doorbell> = (0..MOST_BELLS + 10).map(|_| Doorbell::new()).collect();
    for count in [1, 2, MOST_BELLS, MOST_BELLS + 10] {
        for ringing in [0, count - 1] {
            let seen: Vec<(&Doorbell, Seen)> =
                bells[..count].iter().map(|bell| (bell, bell.seen())).collect();
            std::thread::scope(|scope| {
                scope.spawn(|| bells[ringing].ring());
                // Wakes early now and then, but must not sleep the whole time with the bell rung.
                while bells[ringing].seen() == seen[ringing].1 {
                    assert_eq!(wait(&seen, LONG), Woken::Rung, "{ringing} of {count}");
                }
            });
            assert_eq!(
                wait(&seen, LONG),
                Woken::Rung,
                "a ring before the wait is not slept over"
            );
        }
    }
}

#[test]
fn a_kernel_without_futex_waitv_is_served_by_the_tick() {
    let bells = [Doorbell::new(), Doorbell::new()];
    let seen = [(&bells[0], bells[0].seen()), (&bells[1], bells[1].seen())];
    let denied = Crowd::gather(1, |_| {
        deny_futex_waitv();
        // One bell sleeps as ever; of two the sleeper looks after them on the tick, long before the time is up.
        let alone = wait(&seen[..1], Duration::ZERO) == Woken::TimedOut;
        let together = wait(&seen, Duration::MAX) == Woken::Rung;
        let in_time = wait(&seen, Duration::ZERO) == Woken::TimedOut;
        u8::from(alone && together && in_time)
    });
    assert_eq!(denied.results(), [1]);
}

/// Makes this process's kernel one from before 5.16, as far as `futex_waitv` goes.
fn deny_futex_waitv() {
    let statement = |code: u32, jt, jf, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            libc::SYS_futex_waitv as u32,
        ),
        statement(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32,
        ),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: plain calls on this process; the kernel copies the filter, which lives until after the call.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    };
    assert!(done, "no filter could be set");
}

#[test]
fn waiting_for_no_bell_just_passes_the_time() {
    assert_eq!(wait(&[], Duration::from_millis(1)), Woken::TimedOut);
}

#[test]
fn a_private_copy_of_the_memory_is_not_what_a_mapping_is() {
    // A mapping shares: what one writes, a second mapping of the same descriptor sees at once.
    let pair = Pair::new(1 << 20);
    let second = Mapping::<Account>::open(&pair.account_fd).expect("an account");
    pair.client(1).reserve(512).expect("it fits");
    assert_eq!(second.used(), 512);
    assert_eq!(Client::new(&pair.policy, &second, slot(1)).release(512), Ok(()));
    assert_eq!(pair.account.used(), 0);
    // And a stranger's mapping of the bytes shows the documented place of the word.
    // SAFETY: a fresh mapping of a file at least this long; read once as plain memory nobody writes now.
    let word = unsafe {
        let access = ProtFlags::READ;
        let bytes = rustix::mm::mmap(
            std::ptr::null_mut(),
            4096,
            access,
            MapFlags::SHARED,
            &pair.account_fd,
            0,
        );
        let bytes = bytes.expect("memory");
        let word = bytes.cast::<u64>().add(8).read();
        rustix::mm::munmap(bytes, 4096).expect("it was mapped");
        word
    };
    assert_eq!(word >> 31, 0, "nothing used");
    assert_eq!(word >> 21 & 0x3ff, 1, "slot 1 was the last to change it");
}
