//! What the packages bring, what they say about themselves, and that nothing of them stays.

use super::*;
use crate::harness::outcome::Outcome;

/// Every file with its kind and mode, but for what belongs to the package manager itself.
#[track_caller]
pub fn files(sh: impl Fn(&str) -> Outcome) -> Vec<String> {
    let own = "-path /var/lib/dpkg -o -path /var/log -o -path /packages -o -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /opt -o -path /run/systemd";
    let list = sh(&format!("find / \\( {own} \\) -prune -o -printf '%p %y %m\\n'")).success();
    let mut lines: Vec<String> = list.stdout.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// A system without a running service manager, as an image is built, that sees the packages of `VERSION`.
#[track_caller]
fn system(what: &str) -> Option<Overlay> {
    let system = Overlay::new(rootfs::base(what)?);
    system.bind(&make(VERSION), PACKAGES);
    Some(system)
}

#[test]
fn packages_install_and_leave_nothing_where_no_service_manager_runs() {
    let Some(system) = system("packages in an image") else {
        return;
    };
    let before = files(|line| system.sh(line));
    system.sh(&format!("dpkg -i {}", paths(VERSION))).success();
    assert_eq!(
        system.sh("dpkg --verify stint stint-sim").success().stdout,
        "",
        "every file is as packed"
    );
    assert_eq!(
        system.sh("stint --version").success().stdout,
        format!("stint {}\n", env!("CARGO_PKG_VERSION"))
    );
    system
        .sh("test -L /etc/systemd/system/multi-user.target.wants/stintd.service")
        .success();
    let link = system
        .sh("readlink /usr/lib/stint/lib/libstint.so /usr/lib/stint/lib/libstint-nvml.so")
        .success();
    assert_eq!(
        link.stdout,
        format!("libstint-{VERSION}.so\nlibstint-nvml-{VERSION}.so\n")
    );
    let settings = system.sh("cat /etc/stint/stint.toml").success().stdout;
    let said: Vec<&str> = settings
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    assert!(said.is_empty(), "the installed quota file caps nobody: {said:?}");
    let examples = "sed 's/^#\\([^ ]\\)/\\1/' /etc/stint/stint.toml > /tmp/examples.toml && stint config check /tmp/examples.toml";
    system.sh(examples).success();
    // What an administrator adds goes with a purge, and not before.
    system.sh("echo '[node]' > /etc/stint/stint.d/own.toml && dpkg -r stint stint-sim && test -e /etc/stint/stint.d/own.toml").success();
    system.sh("dpkg -P stint stint-sim").success();
    let after = files(|line| system.sh(line));
    let new: Vec<_> = after.iter().filter(|line| !before.contains(line)).collect();
    let gone: Vec<_> = before.iter().filter(|line| !after.contains(line)).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "left behind {new:#?}; gone {gone:#?}"
    );
}

#[test]
fn the_unit_is_understood_and_hardened() {
    let Some(system) = system("the unit of the package") else {
        return;
    };
    system.sh(&format!("dpkg -i {}", paths(VERSION))).success();
    let verified = system.sh("systemd-analyze verify --man=no --recursive-errors=yes stintd.service");
    assert_eq!(
        (verified.code, verified.stderr.as_str()),
        (0, ""),
        "{}",
        verified.stdout
    );
    // Exposure 3.0 of 10. A line that loosens the unit has to raise this number, and say why.
    let security =
        system.sh("systemd-analyze security --offline=true --threshold=30 --no-pager stintd.service");
    assert_eq!(security.code, 0, "{}", security.stdout);
    let stricter =
        system.sh("systemd-analyze security --offline=true --threshold=20 --no-pager stintd.service");
    assert_ne!(stricter.code, 0, "the threshold is judged at all");
}
