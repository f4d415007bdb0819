//! Ways to another driver than the one behind the shim, or to the shim's own behind its back.

use super::*;
use crate::harness::{outcome::run, skip::skip};

/// More than the cap.
const MORE: &str = "2147483648";

/// Where a tenant puts a driver of its own.
const COPY: &str = "/run/users/tenant/libmine.so";

/// The shim as `stint run` preloads it.
const PRELOAD: &str = "LD_PRELOAD=/run/art/preload/$LIB/libstint.so";

#[test]
fn a_driver_of_ones_own_is_reported() {
    let Some(node) = node("drivers of a tenant's own") else {
        return;
    };
    let (sneak, opener) = (inside("sneak", Link::Cuda), inside("opener", Link::Nothing));
    node.sh(&format!("cp {DRIVER} {COPY}"));
    let ways: [(&str, &[&str]); 6] = [
        ("the driver by its path", &[&opener, DRIVER, MORE]),
        ("a copy of the driver", &[&opener, COPY, MORE]),
        (
            "a copy of the driver beside a preloaded shim",
            &[PRELOAD, &opener, COPY, MORE],
        ),
        (
            "a copy of the driver in a program linked to the shim",
            &[&sneak, "open", COPY, MORE],
        ),
        (
            "the driver's directory in front",
            &[
                "LD_LIBRARY_PATH=/run/art/sim/13/lib",
                &opener,
                "libcuda.so.1",
                MORE,
            ],
        ),
        (
            "the driver preloaded",
            &[&format!("LD_PRELOAD={DRIVER}"), &opener, "libcuda.so.1", MORE],
        ),
    ];
    for (way, words) in ways {
        reported(&node, way, node.user_command(TENANT, "env").args(words));
    }
}

#[test]
fn the_driver_opened_by_its_path_is_capped_where_the_shim_is_loaded() {
    let Some(node) = node("the driver opened by its path") else {
        return;
    };
    let (sneak, opener) = (inside("sneak", Link::Cuda), inside("opener", Link::Nothing));
    let ways: [&[&str]; 3] = [
        &[PRELOAD, &opener, DRIVER, MORE],
        &[PRELOAD, &opener, "libcuda.so", MORE],
        &[&sneak, "open", DRIVER, MORE],
    ];
    for words in ways {
        let mut session = Session::start(node.user_command(TENANT, "env").args(words));
        assert_eq!(session.answer(), OUT_OF_MEMORY.to_string(), "{words:?}");
    }
}

#[test]
fn a_static_program_that_speaks_with_the_device_itself_is_reported() {
    let Some(node) = node("a program without libraries") else {
        return;
    };
    let raw = inside("raw", Link::Static);
    let mut command = node.user_command(TENANT, &raw);
    reported(
        &node,
        "a static program",
        command.args(["/run/stint/sim/sim.sock", MORE]),
    );
}

#[test]
fn calls_behind_the_shim_are_reported_as_drift() {
    for way in ["inner", "traced"] {
        let Some(node) = node("calls behind the shim") else {
            return;
        };
        node.sh(&format!("cp {DRIVER} {COPY}"));
        let mut command = node.user_command(TENANT, inside("sneak", Link::Cuda));
        let mut session = Session::start(command.args([way, COPY, MORE]));
        match session.answer().as_str() {
            "0" => {}
            "untraceable" => {
                skip("a debugger that changes calls", "nobody may trace here");
                continue;
            }
            error => panic!("{way}: {error}"),
        }
        let held = Instant::now();
        let event = until("the drift is reported", || {
            node.events()
                .into_iter()
                .find(|event| event["kind"] == "drift" && event["account"] == "default/tenant")
        });
        println!("{way}: reported after {:.1} s", held.elapsed().as_secs_f64());
        assert!(
            event["detail"]["used_bytes"].as_u64() >= Some(2048 * MIB),
            "{event}"
        );
    }
}

#[test]
fn descriptors_closed_or_replaced_leave_the_cap() {
    let Some(node) = node("closed descriptors") else {
        return;
    };
    let sneak = inside("sneak", Link::Cuda);
    for way in ["close", "dup"] {
        let ask = |capped: bool, bytes: &str| {
            let mut command = node.user_command(TENANT, "env");
            if !capped {
                command.arg("LD_LIBRARY_PATH=/run/art/sim/13/lib");
            }
            let mut session = Session::start(command.args([&sneak, way, bytes]));
            (session.answer(), most(&node, session.pid()))
        };
        let small = (64 * MIB).to_string();
        let (bare, with) = (ask(false, &small), ask(true, &small));
        assert_eq!(bare.0, with.0, "{way}: the driver's own answer");
        let (answer, most) = ask(true, MORE);
        assert_ne!(answer, "0", "{way}");
        assert!(most <= 1024 * MIB, "{way}: {most} bytes");
    }
    // The daemon is not harmed by it.
    run(&mut node.stint(&["status"])).success();
}
