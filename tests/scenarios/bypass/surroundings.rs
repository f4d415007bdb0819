//! Places where the shim, or the program it is in, lacks something: it works all the same, or refuses.

use super::*;
use crate::harness::outcome::run;

/// `CUDA_ERROR_SYSTEM_NOT_READY`: the node refuses.
const REFUSED: &str = "802";

#[test]
fn a_shim_that_cannot_be_loaded_refuses_or_is_reported() {
    let Some(node) = node("a broken shim") else {
        return;
    };
    node.sh("mkdir /run/noexec && mount -t tmpfs -o noexec none /run/noexec && cp /run/art/lib/libstint.so /run/noexec/");
    let breaks = [
        ("missing", "true"),
        ("empty", ": > $1"),
        ("cut off", "head -c 20000 /run/art/lib/libstint.so > $1"),
        ("garbage", "head -c 100000 /dev/urandom > $1"),
        (
            "of 32 bits",
            "cp /run/art/preload/lib32/libstint.so $1 2>/dev/null || : > $1",
        ),
        ("not executable", "ln -s /run/noexec/libstint.so $1"),
        ("not readable", "cp /run/art/lib/libstint.so $1; chmod 000 $1"),
    ];
    let lib = "/run/cap/libcuda.so.1";
    for (how, script) in breaks {
        node.sh(&format!("rm -f {lib}; set -- {lib}; {script}"));
        let outcome = run(&mut node.user_command(TENANT, steps()));
        assert_ne!(outcome.code, 0, "{how}: the loader starts nothing: {outcome:?}");

        // Preloaded, the loader goes on without it.
        let preload = "/run/users/tenant/libstint.so";
        node.sh(&format!("rm -f {preload}; set -- {preload}; {script}"));
        let mut command = node.user_command(TENANT, "env");
        command.args([
            "LD_LIBRARY_PATH=/run/art/sim/13/lib",
            &format!("LD_PRELOAD={preload}"),
        ]);
        let mut session = Session::start(command.arg(steps()).stderr(std::process::Stdio::null()));
        let told = session.is_told("init");
        match session.last_answer().filter(|_| told) {
            Some(error) => assert_eq!(error, "0", "{how}"),
            None if how == "cut off" => continue, // Some loaders end the program instead.
            None => panic!("{how}: the program has ended"),
        }
        assert_eq!(session.ask("context 0"), "0", "{how}");
        assert_eq!(session.error(&format!("alloc {}", 2048 * MIB)), 0, "{how}");
        reported_session(&node, &format!("a shim that is {how}"), &session);
    }
}

#[test]
fn a_poor_place_to_run_in_changes_no_cap() {
    let Some(node) = node("poor places") else {
        return;
    };
    let places = [
        (
            "a root that is read only",
            "mount -o remount,bind,ro /; mount -o remount,bind,ro /run",
        ),
        ("no /tmp", "mount -t tmpfs -o mode=000,ro none /tmp"),
        (
            "a full /tmp",
            "mount -t tmpfs -o size=4k none /tmp; head -c 4096 /dev/zero > /tmp/full",
        ),
        (
            "a full /dev/shm",
            "mount -t tmpfs -o size=4k none /dev/shm; head -c 4096 /dev/zero > /dev/shm/full",
        ),
        ("no home", "mount -t tmpfs -o mode=000 none /run/users"),
        ("few descriptors", "ulimit -n 16"),
        ("no core, no locked memory", "ulimit -c 0 -l 0"),
    ];
    let drop = format!(
        "exec setpriv --reuid {0} --regid {0} --clear-groups \"$@\"",
        TENANT.0
    );
    for (place, script) in places {
        let mut command = node.command("unshare");
        command.args(["--mount", "bash", "-ec", &format!("{script}; {drop}"), "bash"]);
        let session = capped(place, command.arg(steps()));
        std::mem::drop(session);
        until("its memory is back", || {
            (charged(&node, TENANT.1) == 0).then_some(())
        });
    }
}

#[test]
fn without_its_processes_file_system_a_tenant_is_capped_or_refused() {
    let Some(node) = node("no /proc") else {
        return;
    };
    let mut command = node.command("unshare");
    let script = format!(
        "mount -t tmpfs none /proc; exec setpriv --reuid {0} --regid {0} --clear-groups \"$@\"",
        TENANT.0
    );
    let mut session = Session::start(command.args(["--mount", "sh", "-ec", &script, "sh"]).arg(steps()));
    match session.ask("init").as_str() {
        "0" => {
            assert_eq!(session.ask("context 0"), "0");
            assert_eq!(session.error(&format!("alloc {}", 2048 * MIB)), OUT_OF_MEMORY);
        }
        other => assert_eq!(other, REFUSED),
    }
    println!("without /proc: {} bytes at most", most(&node, session.pid()));
    assert!(most(&node, session.pid()) <= 1024 * MIB);
}

#[test]
fn what_the_kernel_denies_a_tenant_loosens_no_cap() {
    let Some(node) = node("denied system calls") else {
        return;
    };
    let denied = inside("denied", Link::Nothing);
    let mut command = node.user_command(TENANT, &denied);
    std::mem::drop(capped("random", command.args(["random", "0", &steps()])));
    until("its memory is back", || {
        (charged(&node, TENANT.1) == 0).then_some(())
    });
    // The stand-in needs memfd_create itself: with the shim it fails as without, and gets no more.
    let ask = |variables: &[&str]| {
        let mut command = node.user_command(TENANT, "env");
        command.args(variables).args([&denied, "memfd", "0", &steps()]);
        let mut session = Session::start(&mut command);
        let calls = ["init", "context 0", "alloc 67108864"].map(|call| session.ask(call));
        (calls, most(&node, session.pid()))
    };
    assert_eq!(ask(&[]), ask(&["LD_LIBRARY_PATH=/run/art/sim/13/lib"]));
    // As long as the account object is, which a client maps.
    let mut session = begin(Session::start(&mut node.user_command(TENANT, steps())));
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", session.pid())).expect("its maps");
    let range = maps
        .lines()
        .find(|line| line.contains("memfd:stint-account"))
        .and_then(|line| line.split_once(' ')?.0.split_once('-'))
        .expect("a client maps its account");
    let number = |text: &str| u64::from_str_radix(text, 16).expect("an address");
    let length = (number(range.1) - number(range.0)).to_string();
    session.kill();
    let mut command = node.user_command(TENANT, &denied);
    let mut session = Session::start(command.args(["account", &length, &steps()]));
    assert_eq!(
        session.ask("init"),
        REFUSED,
        "without its account it does not run"
    );
    assert_eq!(most(&node, session.pid()), 0);
}
