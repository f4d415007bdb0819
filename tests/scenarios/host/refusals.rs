//! What cannot work, and the system that is not the running one.

use std::{fs, process::Command};

use super::{DRIVER, Lab, STINT, assert_same};
use crate::harness::{
    artefacts::{self, Profile},
    outcome::run,
    root,
    rootfs::{self, Overlay},
};

#[test]
fn what_cannot_work_is_said_and_changes_nothing() {
    let Some(lab) = Lab::open("host mode, refusals") else {
        return;
    };
    let fails = |words: &[&str], code: i32, why: &str| {
        let before = lab.system();
        let outcome = lab.stint(words);
        assert!(
            outcome.code == code && outcome.stderr.contains(why),
            "{words:?}: {outcome:?}"
        );
        assert_same(&lab.system(), &before, &format!("{words:?}"));
    };
    let before = lab.system();
    let as_alice = lab
        .overlay
        .sh(&format!("su - alice -c '{STINT}/bin/stint host enable'"));
    assert!(
        as_alice.code == 77 && as_alice.stderr.contains("needs root"),
        "{as_alice:?}"
    );
    assert_same(&lab.system(), &before, "undone");

    // Without systemd it works from now to the next boot, and says so.
    lab.overlay.sh("mv /usr/lib/tmpfiles.d /usr/lib/away").success();
    let outcome = lab.stint(&["host", "enable"]);
    assert!(
        outcome.code == 1
            && outcome
                .stdout
                .contains("nothing makes /run/stint/attach/policy at boot"),
        "{outcome:?}"
    );
    assert!(lab.overlay.file("/run/stint/attach/policy").exists());
    lab.stint(&["host", "disable"]).success();
    lab.overlay.sh("mv /usr/lib/away /usr/lib/tmpfiles.d").success();
    assert_same(&lab.system(), &before, "undone");

    // A directory that an administrator put before everybody else's.
    lab.overlay
        .sh("mkdir /opt/compat && cp /usr/lib/x86_64-linux-gnu/libcuda.so.1 /opt/compat && sed -i '1i /opt/compat' /etc/ld.so.conf && ldconfig")
        .success();
    fails(
        &["host", "enable"],
        1,
        "programs would still get /opt/compat/libcuda.so.1 for libcuda.so.1",
    );
    lab.overlay
        .sh("sed -i 1d /etc/ld.so.conf && rm -r /opt/compat && ldconfig")
        .success();
    assert_same(&lab.system(), &before, "undone");

    lab.overlay
        .sh("rm /usr/lib/x86_64-linux-gnu/libcuda.so* && ldconfig")
        .success();
    fails(
        &["host", "enable"],
        1,
        "no 64-bit libcuda.so.1: install the GPU's driver first",
    );

    // A system whose C library is older than any that the shim can be built for.
    let made = tempfile::tempdir().expect("a directory for a C library");
    let (script, old) = (made.path().join("versions"), made.path().join("libc.so.6"));
    fs::write(
        &script,
        "GLIBC_2.2.5 { global: *; };\nGLIBC_2.12 { } GLIBC_2.2.5;\n",
    )
    .expect("a version script");
    let mut link = Command::new("gcc");
    link.args(["-shared", "-nostdlib", "-Wl,-soname,libc.so.6", "-o"])
        .arg(&old);
    link.arg(format!("-Wl,--version-script={}", script.display()));
    run(link.arg(root().join("tests/programs/old_libc.c"))).success();
    lab.overlay
        .sh("mkdir -p /srv/old/lib/x86_64-linux-gnu /srv/old/lib64 /srv/old/etc/ld.so.conf.d && cd /srv/old/lib/x86_64-linux-gnu \
             && cp /lib/x86_64-linux-gnu/libgcc_s.so.1 /lib64/ld-linux-x86-64.so.2 /opt/stint/sim/13/lib/libcuda.so.1 .")
        .success();
    fs::copy(&old, lab.overlay.file("/srv/old/lib/x86_64-linux-gnu/libc.so.6"))
        .expect("a C library can be copied");
    let tree = || {
        lab.overlay
            .sh("find /srv/old -printf '%p %s %T@\n' | sort")
            .stdout
    };
    let untouched = tree();
    fails(
        &["host", "enable", "--root", "/srv/old"],
        1,
        "/lib/x86_64-linux-gnu/libc.so.6 defines none above GLIBC_2.12",
    );
    fails(
        &["host", "enable", "--root", "/srv/old"],
        1,
        "nothing was changed",
    );
    assert_eq!(tree(), untouched);
}

#[test]
fn an_image_is_prepared_from_outside() {
    let Some(base) = rootfs::base("host mode of an image") else {
        return;
    };
    let image = Overlay::bare(base);
    let at = image.root().display().to_string();
    fs::copy(
        artefacts::stand_in(Profile::V13).join("libcuda.so.1"),
        image.file(&format!("{DRIVER}/libcuda.so.1")),
    )
    .expect("a driver");
    let stint = |verb: &str| {
        let mut command = image.outside(artefacts::directory().join("bin/stint"));
        run(command.args(["host", verb, "--root", &at])).success().stdout
    };
    let ask = |words: &[&str]| run(image.outside("chroot").arg(&at).args(words)).success().stdout;
    ask(&["ldconfig"]);
    // A package provides for the boot.
    let packaged = "f /run/stint/attach/policy 0644 root root - absent = \"refuse\"\n";
    image.write("/usr/lib/tmpfiles.d/stint.conf", packaged);
    let before = ask(&["ldconfig", "-p"]);
    let said = stint("enable");
    assert!(said.contains("host mode is on"), "{said}");
    assert!(ask(&["ldconfig", "-p"]).contains("libcuda.so.1 (libc6,x86-64) => /usr/lib/stint/host/"));
    assert!(
        !image.file("/etc/tmpfiles.d/stint.conf").exists(),
        "the package's line is enough"
    );
    assert!(!image.file("/run/stint").exists(), "nothing runs in an image");
    assert!(stint("status").contains("a program that starts before the daemon is refused"));
    stint("disable");
    assert_eq!(ask(&["ldconfig", "-p"]), before);
}

#[test]
fn a_user_who_holds_a_lock_holds_up_nobody() {
    let Some(lab) = Lab::open("host mode beside a lock") else {
        return;
    };
    let held = "su alice -c 'flock /etc/ld.so.conf.d sleep 600 > /dev/null 2>&1 & while flock -n /etc/ld.so.conf.d true; do :; done'";
    lab.overlay.sh(held).success();
    lab.stint(&["host", "enable"]).success();
    lab.stint(&["host", "disable"]).success();
    assert!(!lab.overlay.file("/run/stint-host.lock").exists());
}
