//! Host mode and packages: another driver's package is followed, Stint's own goes and takes host mode with it.

use serde_json::Value;

use super::{files::files, *};
use crate::harness::{artefacts::Profile, outcome::Outcome};

/// Packs and installs a driver as NVIDIA's package would bring it. $1 is its directory, $2 its version.
const DRIVER: &str = r#"
rm -rf /tmp/driver && mkdir -p /tmp/driver/DEBIAN /tmp/driver/usr/lib/x86_64-linux-gnu
cp "$1/libcuda.so.1" "$1/libnvidia-ml.so.1" /tmp/driver/usr/lib/x86_64-linux-gnu
printf 'Package: a-driver\nVersion: %s\nArchitecture: amd64\nMaintainer: A <a@b.invalid>\nDescription: a driver\n' "$2" > /tmp/driver/DEBIAN/control
echo activate-noawait ldconfig > /tmp/driver/DEBIAN/triggers
dpkg-deb --build /tmp/driver /tmp/driver.deb && dpkg -i /tmp/driver.deb"#;

#[track_caller]
fn install_driver(system: &Overlay, profile: Profile) -> Outcome {
    let mut command = system.command("sh");
    command.args(["-euc", DRIVER, "sh"]);
    outcome::run(command.args([&format!("/opt/{}", profile.name()), profile.name()])).success()
}

#[track_caller]
fn state(system: &Overlay) -> String {
    let report: Value =
        serde_json::from_str(&system.sh("stint host status --json").stdout).expect("a report is JSON");
    report["state"].as_str().expect("a state").to_owned()
}

#[test]
fn host_mode_follows_another_drivers_package_and_goes_with_stints() {
    let Some(base) = rootfs::base("host mode and packages") else {
        return;
    };
    let system = Overlay::new(base);
    system.bind(&make(VERSION), PACKAGES);
    for profile in [Profile::V12_9, Profile::V13] {
        system.bind(&artefacts::stand_in(profile), &format!("/opt/{}", profile.name()));
    }
    install_driver(&system, Profile::V12_9);
    install_driver(&system, Profile::V13);
    let content = "sha256sum /etc/ld.so.cache";
    let (before, cache) = (files(|line| system.sh(line)), system.sh(content).success().stdout);

    system.sh(&format!("dpkg -i {}", paths(VERSION))).success();
    assert_eq!(state(&system), "off", "nobody asked for it");
    system.sh("stint host enable").success();
    let copies = system.sh("ls /usr/lib/stint/host").success().stdout;
    install_driver(&system, Profile::V12_9);
    assert_eq!(state(&system), "on", "the copies fit the driver that came");
    assert_ne!(
        system.sh("ls /usr/lib/stint/host").success().stdout,
        copies,
        "they are other ones"
    );
    install_driver(&system, Profile::V13);

    system.sh("dpkg -P stint stint-sim").success();
    let after = files(|line| system.sh(line));
    let new: Vec<_> = after.iter().filter(|line| !before.contains(line)).collect();
    assert!(new.is_empty(), "left behind {new:#?}");
    assert_eq!(
        system.sh(content).success().stdout,
        cache,
        "the loader finds what it found before"
    );
}
