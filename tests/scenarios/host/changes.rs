//! Another driver, an interrupted command, damage.

use std::collections::BTreeSet;

use super::{GIBIBYTE_EACH, Lab, assert_same, refused};
use crate::{
    harness::{
        elf,
        programs::{Link, program, program_for},
        root,
        session::Session,
    },
    scenarios::{MIB, OUT_OF_MEMORY, begin, loading::profile},
};

#[test]
fn the_copy_fits_a_newer_and_an_older_driver_and_is_made_again_on_a_change() {
    let Some(mut lab) = Lab::open("host mode, drivers of other ages") else {
        return;
    };
    let made = tempfile::tempdir().expect("a directory for drivers");
    let (newer, older) = (made.path().join("newer"), made.path().join("older"));
    let all = || driver::table::SYMBOLS.iter();
    let more = all()
        .map(|symbol| symbol.name)
        .chain(["cuBrandNew"])
        .map(str::to_owned);
    profile(&newer, more, Some(&root().join("tests/programs/newer_driver.c")));
    let fewer = all()
        .filter(|symbol| symbol.version <= 11080)
        .map(|symbol| symbol.name.to_owned());
    profile(&older, fewer, None);

    lab.install_driver(&newer);
    lab.stint(&["host", "enable"]).success();
    lab.start_daemon(GIBIBYTE_EACH);
    for link in [Link::Cuda, Link::CudaLazy] {
        let path = lab.put(&program_for("newer", link, &newer), "newer", "root", "755");
        let outcome = lab.overlay.sh(&path);
        refused(&outcome);
        assert_eq!(outcome.value("new"), "0 42", "{link:?}");
        assert_eq!(outcome.value("looked_up"), "0", "{link:?}");
        assert_eq!(outcome.value("unknown"), "500 0 1", "{link:?}");
        assert_eq!(
            (outcome.value("absent"), outcome.value("dlerror")),
            ("0", "libc's"),
            "{link:?}"
        );
    }

    // A program that runs meanwhile keeps the copy it has, and its cap.
    let opens = lab.put(&program("dynamic", Link::Nothing), "opens", "root", "755");
    let steps = lab.put(&program("steps", Link::Cuda), "steps", "root", "755");
    let mut running = begin(Session::start(&mut lab.overlay.command(steps)));
    lab.install_driver(&older);
    assert_eq!(lab.state(), "stale");
    refused(&lab.overlay.sh(&opens));
    lab.stint(&["host", "enable", "--if-enabled"]).success();
    assert_eq!(lab.state(), "on");
    let outcome = lab.overlay.sh(&opens);
    refused(&outcome);
    let found: BTreeSet<&str> = outcome
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("symbol ")?.strip_suffix(" 1"))
        .collect();
    let has = elf::exported_names(&older.join("libcuda.so.1"));
    for line in outcome
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("symbol "))
    {
        let (name, _) = line.split_once(' ').expect("a name and whether it was found");
        assert_eq!(found.contains(name), has.contains(name), "{name} by dlsym");
    }
    let report = lab.json(&["host", "status", "--json"]);
    let missing = all().filter(|symbol| !has.contains(symbol.name)).count() as u64;
    assert_eq!(report["libraries"][0]["hidden"], missing, "{report}");

    let again = lab.stint(&["host", "enable"]).success();
    assert_eq!(
        lab.json(&["host", "status", "--json"]),
        report,
        "enabled twice is enabled: {again:?}"
    );
    lab.stint(&["host", "disable"]).success();
    lab.stint(&["host", "enable", "--if-enabled"]).success();
    assert_eq!(lab.state(), "off", "only where it is on");
    assert_eq!(running.error(&format!("alloc {}", 512 * MIB)), 0);
    assert_eq!(running.error(&format!("alloc {}", 2048 * MIB)), OUT_OF_MEMORY);
}

/// Puts `script` in place of the root's `ldconfig` until the guard is dropped.
struct Ldconfig<'a>(&'a Lab);

impl<'a> Ldconfig<'a> {
    fn replaced(lab: &'a Lab, script: &str) -> Ldconfig<'a> {
        lab.overlay
            .sh("mv /usr/sbin/ldconfig /usr/sbin/ldconfig.kept")
            .success();
        lab.overlay
            .write("/usr/sbin/ldconfig", format!("#!/bin/sh\n{script}\n"));
        lab.overlay.sh("chmod 755 /usr/sbin/ldconfig").success();
        Ldconfig(lab)
    }
}

impl Drop for Ldconfig<'_> {
    fn drop(&mut self) {
        self.0.overlay.sh("mv /usr/sbin/ldconfig.kept /usr/sbin/ldconfig");
    }
}

#[test]
fn an_interrupted_change_is_completed_or_undone_and_programs_start_meanwhile() {
    let Some(lab) = Lab::open("host mode, interrupted") else {
        return;
    };
    let opens = lab.put(&program("dynamic", Link::Nothing), "opens", "root", "755");
    // Without a node there is no GPU here, but the driver and all its functions are found.
    let starts = || {
        let outcome = lab.overlay.sh(&opens);
        assert!(
            outcome.stdout.contains("symbol cuMemAlloc_v2 1") && outcome.code == 1,
            "{outcome:?}"
        );
    };
    let before = lab.system();
    {
        let _fails = Ldconfig::replaced(&lab, "echo 'cannot write' >&2; exit 1");
        let outcome = lab.stint(&["host", "enable"]);
        assert_eq!(outcome.code, 1);
        assert!(
            outcome.stderr.contains("ldconfig failed: cannot write"),
            "{outcome:?}"
        );
        assert!(outcome.stderr.contains("nothing was changed"), "{outcome:?}");
    }
    assert_same(&lab.system(), &before, "a failure undoes what was done");
    let killed = |verb: &str| {
        let _kills = Ldconfig::replaced(&lab, "kill -KILL $PPID");
        assert_eq!(lab.stint(&["host", verb]).code, -9, "{verb} is killed");
        assert_eq!(lab.state(), "stale");
        starts();
    };
    killed("enable");
    lab.stint(&["host", "disable"]).success();
    assert_same(&lab.system(), &before, "undone");
    killed("enable");
    lab.stint(&["host", "enable"]).success();
    assert_eq!(lab.state(), "on");
    starts();
    killed("disable");
    lab.stint(&["host", "enable"]).success();
    assert_eq!(lab.state(), "on");

    for damage in [
        "rm -r /usr/lib/stint/host",
        "for f in /usr/lib/stint/host/*/libcuda.so.1; do head -c 100000 $f > $f.cut; mv $f.cut $f; done",
        "rm /etc/tmpfiles.d/stint.conf",
        "rm /etc/ld.so.conf.d/000-stint.conf",
    ] {
        lab.overlay.sh(damage).success();
        assert_eq!(lab.state(), "stale", "{damage}");
        lab.stint(&["host", "enable"]).success();
        assert_eq!(lab.state(), "on", "{damage}");
        starts();
    }
    {
        // A trigger may watch the cache: it must not call itself for ever.
        let _fails = Ldconfig::replaced(&lab, "exit 1");
        lab.stint(&["host", "enable"]).success();
    }
    lab.stint(&["host", "disable"]).success();
    lab.stint(&["host", "disable"]).success();
    assert_same(&lab.system(), &before, "off twice is off");
}
