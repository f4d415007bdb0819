//! Several devices and the ways a program chooses among them: the right account is charged whatever they are called.

use super::*;
use crate::harness::node::Setup;

/// The sixteen bytes of a device's UUID in its text form.
fn text(uuid: &[u64]) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "GPU-{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// UUIDs in the driver's order.
#[track_caller]
fn uuids(node: &Node, count: u64) -> Vec<Vec<u64>> {
    let mut session = Session::start(&mut node.bare_command(program("steps", Link::Cuda)));
    assert_eq!(session.ask("init"), "0");
    assert_eq!(session.numbers("count"), [0, count]);
    (0..count)
        .map(|i| session.numbers(&format!("uuid {i}"))[1..].to_vec())
        .collect()
}

#[test]
fn each_ordinal_is_charged_to_the_device_behind_it() {
    let node = Node::start(Setup::cap("2GiB").devices("h200:8"));
    let uuids = uuids(&node, 8);
    let by_uuid = format!("{},{}", text(&uuids[5]), text(&uuids[2]));
    let lists: [(&str, &[usize]); 4] = [
        ("3,1,7", &[3, 1, 7]),
        ("7,6,5,4,3,2,1,0", &[7, 6, 5, 4, 3, 2, 1, 0]),
        (&by_uuid, &[5, 2]),
        ("0", &[0]),
    ];
    for (list, physical) in lists {
        let mut session = Session::start(
            node.capped_command(program("steps", Link::Cuda))
                .env("CUDA_VISIBLE_DEVICES", list),
        );
        assert_eq!(session.ask("init"), "0");
        assert_eq!(session.numbers("count"), [0, physical.len() as u64], "{list}");
        for (ordinal, &device) in physical.iter().enumerate() {
            assert_eq!(
                session.numbers(&format!("uuid {ordinal}"))[1..],
                uuids[device],
                "{list}: ordinal {ordinal}"
            );
            assert_eq!(session.error(&format!("context {ordinal}")), 0);
            let before = node.used(device);
            assert_eq!(session.error(&format!("alloc {}", 512 * MIB)), 0);
            assert_eq!(
                node.used(device) - before,
                512 * MIB,
                "{list}: ordinal {ordinal} is device {device}"
            );
            assert_eq!(
                session.error(&format!("alloc {}", 2048 * MIB)),
                OUT_OF_MEMORY,
                "{list}: the cap of device {device}"
            );
            let entry = node.status()["tenants"][0]["devices"]
                .as_array()
                .into_iter()
                .flatten()
                .find(|entry| entry["index"] == device)
                .cloned()
                .expect("an entry per device");
            assert_eq!(
                entry["memory"]["used_bytes"].as_u64(),
                Some(512 * MIB + CONTEXT),
                "{list}: the daemon's view of device {device}"
            );
        }
        assert_eq!(session.close(), 0);
    }
}

#[test]
fn an_empty_list_shows_no_device_and_is_no_error_of_ours() {
    let node = Node::start(Setup::cap("2GiB").devices("h200:2"));
    let ask = |mut command: std::process::Command| {
        let mut session = Session::start(command.env("CUDA_VISIBLE_DEVICES", ""));
        (session.ask("init"), session.ask("count"))
    };
    let bare = ask(node.bare_command(program("steps", Link::Cuda)));
    assert_eq!(bare, ask(node.capped_command(program("steps", Link::Cuda))));
}

#[test]
fn a_mig_instance_that_is_none_ends_the_list_as_for_the_driver() {
    let node = Node::start(Setup::cap("2GiB").devices("h200:2"));
    let mig = "MIG-4b2c1f0e-0d3a-5c6b-8e7f-0123456789ab";
    let visible = |mut command: std::process::Command, list: &str| -> (Vec<String>, Vec<Vec<u64>>) {
        let mut session = Session::start(command.env("CUDA_VISIBLE_DEVICES", list));
        let errors = vec![session.ask("init"), session.ask("count")];
        let count = session.numbers("count")[1];
        (
            errors,
            (0..count)
                .map(|i| session.numbers(&format!("uuid {i}")))
                .collect(),
        )
    };
    for list in [
        mig,
        &format!("1,{mig},0"),
        &format!("{mig},0"),
        "MIG-GPU-0/1/0",
        "1,MIG-0",
    ] {
        let bare = visible(node.bare_command(program("steps", Link::Cuda)), list);
        assert_eq!(
            visible(node.capped_command(program("steps", Link::Cuda)), list),
            bare,
            "{list}"
        );
        assert_eq!(
            bare.1.len(),
            usize::from(list.starts_with('1')),
            "{list}: {bare:?}"
        );
    }
    let mut command = node.capped_command(program("steps", Link::Cuda));
    let mut session = begin(Session::start(
        command.env("CUDA_VISIBLE_DEVICES", format!("1,{mig},0")),
    ));
    assert_eq!(session.error(&format!("alloc {}", 512 * MIB)), 0);
    assert_eq!((node.used(0), node.used(1)), (0, 512 * MIB + CONTEXT));
    assert_eq!(session.error(&format!("alloc {}", 2048 * MIB)), OUT_OF_MEMORY);
}

#[test]
fn totals_are_the_cap_and_what_is_free_is_within_it() {
    let node = Node::start(Setup::cap("2GiB").devices("h200:2"));
    let mut session = client(&node);
    for ordinal in 0..2 {
        assert_eq!(session.numbers(&format!("total {ordinal}")), [0, 2048 * MIB]);
        assert_eq!(session.error(&format!("context {ordinal}")), 0);
        assert_eq!(session.numbers("info"), [0, 2048 * MIB - CONTEXT, 2048 * MIB]);
    }
}

#[test]
fn the_cap_is_per_device() {
    let node = Node::start(Setup::cap("1GiB").devices("h200:2"));
    let mut session = client(&node);
    for ordinal in 0..2 {
        assert_eq!(session.error(&format!("context {ordinal}")), 0);
        assert_eq!(session.error(&format!("alloc {}", 896 * MIB)), 0);
        assert_eq!(session.error(&format!("alloc {}", 128 * MIB)), OUT_OF_MEMORY);
    }
    assert!(node.high_water(0) <= 1024 * MIB && node.high_water(1) <= 1024 * MIB);
}
