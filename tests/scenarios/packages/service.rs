//! The daemon as systemd runs it: at boot without a GPU, reloaded, hanging, killed.

use super::{
    super::{CONTEXT, MIB},
    *,
};

/// `CUDA_ERROR_SYSTEM_NOT_READY`: what a program gets that finds no daemon.
pub const NOT_READY: &str = "802";

/// Two users, one of whom is capped.
pub fn caps(alice: &str) -> String {
    format!("[tenants.alice]\nmatch = [{{ user = \"alice\" }}]\nmemory = \"{alice}\"\n")
}

/// Bytes that `alice` holds, as the daemon sees it.
#[track_caller]
fn used(machine: &Machine) -> u64 {
    of_alice(machine, "used_bytes")
}

/// The sum of a figure of `alice`'s memory on device 0.
#[track_caller]
fn of_alice(machine: &Machine, figure: &str) -> u64 {
    let tenants = status(machine)["tenants"].clone();
    let of_alice = tenants
        .as_array()
        .expect("tenants")
        .iter()
        .filter(|tenant| tenant["name"] == "alice");
    of_alice
        .map(|tenant| tenant["devices"][0]["memory"][figure].as_u64().expect("a figure"))
        .sum()
}

#[test]
fn a_machine_that_boots_without_a_daemon_refuses_and_a_reload_changes_caps() {
    let Some(machine) = machine("the packages on a booted machine", &[VERSION]) else {
        return;
    };
    // No GPU, no stand-in: the packages are installed all the same, and systemd does not try for ever.
    machine.sh(&format!("dpkg -i {}", paths(VERSION))).success();
    assert_eq!(
        machine
            .sh("systemctl show --value -p Result stintd")
            .stdout
            .trim(),
        "exit-code"
    );
    assert_eq!(machine.sh("systemctl is-failed stintd").stdout.trim(), "failed");
    assert_eq!(program_of(&machine, "bob").ask("init"), NOT_READY);

    quota(&machine, &caps("2GiB"));
    use_stand_in(&machine, "");
    let (mut alice, mut bob) = (client_of(&machine, "alice"), client_of(&machine, "bob"));
    assert_eq!(alice.error(&format!("alloc {}", 2 << 30)), OUT_OF_MEMORY);
    assert_eq!(bob.error(&format!("alloc {}", 2u64 << 30)), 0, "bob has no cap");

    quota(&machine, &caps("4GiB"));
    machine.sh("systemctl reload stintd").success();
    assert_eq!(
        alice.error(&format!("alloc {}", 2u64 << 30)),
        0,
        "the new cap is in force in a running program"
    );
    quota(&machine, "[defaults]\nmemori = \"1GiB\"\n");
    assert_ne!(
        machine.sh("systemctl reload stintd").code,
        0,
        "a file with a mistake"
    );
    assert_eq!(machine.sh("systemctl is-active stintd").stdout.trim(), "active");
    assert_eq!(
        alice.error(&format!("alloc {}", 1u64 << 30)),
        0,
        "the old file is still in force"
    );
    assert_eq!(alice.error(&format!("alloc {}", 1u64 << 30)), OUT_OF_MEMORY);
    // The admin socket is for group `stint` too.
    machine.sh("usermod --append --groups stint bob && setpriv --reuid=bob --regid=bob --init-groups stint status").success();
}

#[test]
fn a_daemon_that_hangs_or_dies_is_replaced_and_its_clients_go_on() {
    let Some(machine) = machine("a daemon that systemd starts again", &[VERSION]) else {
        return;
    };
    machine.sh(&format!("dpkg -i {}", paths(VERSION))).success();
    quota(&machine, &caps("4GiB"));
    use_stand_in(&machine, "WatchdogSec=2\\nTimeoutAbortSec=1\\n");
    let mut alice = client_of(&machine, "alice");
    assert_eq!(alice.error(&format!("alloc {}", 1u64 << 30)), 0);
    let clients = clients_of(&machine, "alice");
    assert_eq!((used(&machine), clients.len()), ((1 << 30) + CONTEXT, 1));
    for (signal, result) in [("KILL", "signal"), ("STOP", "watchdog")] {
        let hurt = daemon(&machine);
        machine.sh(&format!("kill -{signal} {hurt}")).success();
        assert_eq!(
            alice.numbers(&format!("churn 100 {MIB}")),
            [0, 100],
            "the client needs no daemon"
        );
        until("systemd starts another daemon", || {
            let now = daemon(&machine);
            (now != "0" && now != hurt).then_some(())
        });
        assert_eq!(
            clients_of(&machine, "alice"),
            clients,
            "after SIG{signal} the client is adopted with what it holds"
        );
        assert_eq!(used(&machine), (1 << 30) + CONTEXT);
        let log = machine
            .sh("journalctl --unit=stintd --output=cat --no-pager")
            .stdout;
        assert!(log.contains(&format!("Failed with result '{result}'")), "{log}");
    }
    // What was set is kept where a reboot leaves it.
    machine.sh("stint set alice memory.burst=4000MiB").success();
    until("it is kept", || {
        let kept = machine.sh("cat /var/lib/stint/settings.json").stdout;
        kept.contains("4000MiB").then_some(())
    });
    // With the directory itself goes the daemon's right to make it anew, which systemd has.
    for what in ["/run/stint/*", "/run/stint"] {
        machine.sh(&format!("rm -rf {what}")).success();
        until("the run directory is there again", || {
            let answers = machine.sh("test -S /run/stint/attach/attach.sock && stint status");
            (answers.code == 0).then_some(())
        });
        assert_eq!(clients_of(&machine, "alice"), clients, "after rm {what}");
        assert_eq!(used(&machine), (1 << 30) + CONTEXT);
        assert_eq!(of_alice(&machine, "cap_bytes"), 4000 * MIB, "what was set holds");
        assert_eq!(
            alice.numbers(&format!("churn 100 {MIB}")),
            [0, 100],
            "the client did not notice"
        );
    }
    // Adopted means: what the next program takes and what this one has are within the cap, and its end is noticed.
    let mut second = client_of(&machine, "alice");
    assert_eq!(second.error(&format!("alloc {}", 3u64 << 30)), OUT_OF_MEMORY);
    assert_eq!(second.error(&format!("alloc {}", 2u64 << 30)), 0);
    alice.kill();
    until("the killed client's memory is back", || {
        (clients_of(&machine, "alice").len() == 1).then_some(())
    });
    assert_eq!(second.error(&format!("alloc {}", 1u64 << 30)), 0);
    machine.sh("systemctl stop stintd").success();
    assert_eq!(
        second.numbers(&format!("churn 100 {MIB}")),
        [0, 100],
        "nor does it need one that is stopped"
    );
}
