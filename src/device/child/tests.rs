//! The supervisor against children that are shell scripts: one that answers, one that hangs, one that dies.

use super::*;
use std::os::unix::fs::PermissionsExt;

/// A program that is started as `PROGRAM device …` and runs `script`.
fn program(dir: &std::path::Path, script: &str) -> Libraries {
    let path = dir.join("child");
    // Written under another name first: a file that is open for writing cannot be executed.
    std::fs::write(dir.join("new"), format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(dir.join("new"), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::rename(dir.join("new"), &path).unwrap();
    Libraries {
        nvml: "x".into(),
        cuda: None,
        run_dir: None,
        program: Some(path),
    }
}

const INVENTORY: &str =
    r#"echo '{"inventory":{"driver":{},"devices":[{"index":0,"uuid":"GPU-1","name":"x","total_bytes":9}]}}'"#;

fn wait_for(supervisor: &mut Supervisor, mut enough: impl FnMut(&[Said]) -> bool) -> Vec<Said> {
    let watchdog = Instant::now() + Duration::from_secs(60);
    let mut said = Vec::new();
    while !enough(&said) {
        assert!(Instant::now() < watchdog, "{said:?}");
        if let Some(socket) = supervisor.socket() {
            let mut fds = [rustix::event::PollFd::new(&socket, rustix::event::PollFlags::IN)];
            let nap = rustix::event::Timespec {
                tv_sec: 0,
                tv_nsec: 10_000_000,
            };
            rustix::event::poll(&mut fds, Some(&nap)).unwrap();
        }
        said.extend(supervisor.read());
        said.extend(supervisor.tick(Instant::now()).0);
    }
    said
}

#[test]
fn a_child_that_answers_is_asked_again_and_again() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "{INVENTORY}\nwhile read ask; do echo '{{\"looks\":[{{\"index\":0,\"used_bytes\":4}}]}}'; done"
    );
    let mut supervisor = Supervisor::start(program(dir.path(), &script)).unwrap();
    assert_eq!(supervisor.inventory().unwrap().devices[0].total_bytes, 9);
    let said = wait_for(&mut supervisor, |said| said.len() >= 3);
    assert!(
        said.iter()
            .all(|said| matches!(said, Said::Looks(looks) if looks[0].used_bytes == Some(4)))
    );
}

#[test]
fn a_child_that_dies_is_reported_once_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("second");
    let script = format!(
        "{INVENTORY}\nif [ ! -e {mark} ]; then touch {mark}; exit 1; fi\n\
         while read ask; do echo '{{\"looks\":[]}}'; done",
        mark = mark.display()
    );
    let mut supervisor = Supervisor::start(program(dir.path(), &script)).unwrap();
    supervisor.inventory().unwrap();
    let said = wait_for(&mut supervisor, |said| {
        said.iter().any(|said| matches!(said, Said::Looks(_)))
    });
    assert!(matches!(said[0], Said::Fault(_)), "{said:?}");
    assert_eq!(said[1], Said::Works);
    assert_eq!(
        said.iter().filter(|said| matches!(said, Said::Fault(_))).count(),
        1
    );
}

#[test]
fn a_child_that_hangs_is_killed_and_blocks_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("{INVENTORY}\nexec sleep 1000");
    let mut supervisor = Supervisor::start(program(dir.path(), &script)).unwrap();
    supervisor.inventory().unwrap();
    let pid = supervisor.pids()[0];
    let now = Instant::now();
    assert_eq!(supervisor.tick(now), (Vec::new(), false), "asked");
    assert_eq!(
        supervisor.tick(now + PATIENCE / 2),
        (Vec::new(), false),
        "still patient"
    );
    let (said, _) = supervisor.tick(now + PATIENCE * 2);
    assert!(
        matches!(&said[..], [Said::Fault(why)] if why.contains("did not answer")),
        "{said:?}"
    );
    assert_ne!(supervisor.pids(), [pid]);
    let (_, restarted) = supervisor.tick(now + PATIENCE * 3);
    assert!(restarted);
}

#[test]
fn what_the_child_cannot_do_is_the_daemons_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut supervisor = Supervisor::start(program(dir.path(), r#"echo '{"failed":"no NVML"}'"#)).unwrap();
    assert_eq!(supervisor.inventory().unwrap_err().to_string(), "no NVML");
    let mut supervisor = Supervisor::start(program(dir.path(), "exit 3")).unwrap();
    assert!(matches!(supervisor.inventory(), Err(ChildError::Nonsense)));
}
