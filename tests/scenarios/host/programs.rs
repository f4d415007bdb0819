//! Who is capped, who is reported, who is not touched.

use std::{fs, process::Command};

use super::{DRIVER, GIBIBYTE_EACH, Lab, assert_same, refused};
use crate::{
    harness::{
        outcome::run,
        programs::{Link, program},
        root,
        session::Session,
        wait::until,
    },
    scenarios::MIB,
};

#[test]
fn every_login_and_job_is_capped_and_the_way_back_leaves_nothing() {
    let Some(mut lab) = Lab::open("host mode") else {
        return;
    };
    let (opens, linked) = (program("dynamic", Link::Nothing), program("linked", Link::Cuda));
    let (opens, linked) = (
        lab.put(&opens, "opens", "root", "755"),
        lab.put(&linked, "linked", "root", "755"),
    );
    let setuid = lab.put(&program("dynamic", Link::Nothing), "setuid", "bob", "4755");
    let before = lab.system();
    assert_eq!(lab.state(), "off");
    lab.stint(&["host", "enable"]).success();
    assert_eq!(lab.state(), "on");

    // Before the daemon runs nobody gets past it.
    let reboot = "rm -r /run/stint && systemd-tmpfiles --create --prefix=/run/stint";
    for line in [":", reboot] {
        lab.overlay.sh(line).success();
        let early = lab.overlay.sh(&format!("su - alice -c {opens}"));
        assert!(
            early.code == 1 && early.stderr.contains("no context: 802"),
            "{early:?}"
        );
    }
    lab.start_daemon(GIBIBYTE_EACH);

    let as_alice = |words: &str| lab.overlay.sh(&format!("su - alice -c '{words}'"));
    refused(&as_alice(&opens));
    refused(&as_alice(&linked));
    refused(&as_alice(&format!("{opens} libcuda.so")));
    refused(&as_alice(&format!("env -i {opens}")));
    refused(&as_alice(&format!(
        "env -i HOME=/ LOGNAME=alice SHELL=/bin/sh PATH=/usr/bin:/bin /bin/sh -c {linked}"
    )));
    refused(&as_alice(&format!("nohup setsid -w {opens} < /dev/null")));
    refused(&as_alice(&format!("LD_PRELOAD= XDG_RUNTIME_DIR=/tmp {opens}")));
    // Set-user-id: the loader and the shim ignore what the caller set, and the account is the program's user's.
    refused(&as_alice(&format!(
        "LD_LIBRARY_PATH={DRIVER} STINT_RUN_DIR=/tmp {setuid}"
    )));
    refused(&lab.overlay.sh(&opens)); // root as well, where the file says so

    let nvml = lab.put(&program("nvml", Link::Nothing), "nvml", "root", "755");
    assert_eq!(
        as_alice(&nvml).success().number("total"),
        1 << 30,
        "NVML shows the cap"
    );

    // Who does not use the driver never meets the shim.
    let maps =
        as_alice("cat /proc/self/maps; echo; python3 -c \"print(open(\\\"/proc/self/maps\\\").read())\"");
    assert!(
        maps.stdout.contains("libc.so.6") && !maps.stdout.contains("stint"),
        "{maps:?}"
    );

    lab.daemon = None;
    lab.stint(&["host", "disable"]).success();
    lab.overlay
        .sh("rm -r /etc/stint; rm -rf /run/stint /run/user")
        .success();
    assert_eq!(lab.state(), "off");
    assert_same(&lab.system(), &before, "nothing is left");
}

#[test]
fn who_reaches_the_driver_another_way_is_reported() {
    let Some(mut lab) = Lab::open("host mode, ways around it") else {
        return;
    };
    let opens = lab.put(&program("dynamic", Link::Nothing), "opens", "root", "755");
    lab.stint(&["host", "enable"]).success();
    lab.start_daemon(GIBIBYTE_EACH);
    for around in [
        format!("{opens} {DRIVER}/libcuda.so.1 hold"),
        format!("LD_LIBRARY_PATH={DRIVER} {opens} libcuda.so.1 hold"),
    ] {
        let mut command = lab.overlay.command("su");
        let mut session = Session::start(command.args(["-", "alice", "-c", &around]));
        let last = std::iter::repeat_with(|| session.answer()).find(|line| !line.starts_with("symbol"));
        assert_eq!(last.as_deref(), Some("refused=0"), "no cap for {around}");
        let reported = until("the process is reported", || {
            let status = lab.json(&["status", "--json"]);
            status["unattached"].as_array()?.first().cloned()
        });
        assert_eq!(reported["user"], "alice", "{reported}");
        assert!(reported["used_bytes"].as_u64() >= Some(4096 * MIB), "{reported}");
        assert_eq!(session.close(), 0);
        until("the report ends with the process", || {
            lab.json(&["status", "--json"])["unattached"]
                .as_array()?
                .is_empty()
                .then_some(())
        });
    }
}

#[test]
fn a_32_bit_program_keeps_its_own_driver() {
    let Some(lab) = Lab::open("host mode, 32-bit programs") else {
        return;
    };
    let made = tempfile::tempdir().expect("a directory for programs");
    let (driver, narrow) = (made.path().join("libcuda.so.1"), made.path().join("narrow"));
    let gcc = || {
        let mut command = Command::new("gcc");
        command.args([
            "-m32",
            "-nostdlib",
            "-fno-stack-protector",
            "-fcf-protection=none",
            "-o",
        ]);
        command
    };
    let source = |name: &str| root().join("tests/programs").join(name);
    run(gcc()
        .arg(&driver)
        .args(["-shared", "-Wl,-soname,libcuda.so.1"])
        .arg(source("narrow_driver.c")))
    .success();
    run(gcc().arg(&narrow).arg(source("narrow.c")).arg(&driver)).success();
    let narrow = lab.put(&narrow, "narrow", "root", "755");
    let run_narrow = || lab.overlay.sh(&narrow);
    assert_eq!(run_narrow().code, 127, "no 32-bit driver is installed");
    let missing = run_narrow();
    lab.stint(&["host", "enable"]).success();
    assert_eq!(run_narrow(), missing);
    fs::copy(&driver, lab.overlay.file("/usr/lib32/libcuda.so.1")).expect("a driver can be copied");
    lab.overlay.sh("ldconfig").success();
    assert_eq!(run_narrow().code, 40, "its own driver answers");
    assert_eq!(lab.state(), "on");
}
