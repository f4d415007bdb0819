//! The attach protocol: what is said is what is heard, and nothing else is taken for it.

use ledger::wire::{
    Challenge, Hello, LONGEST_REPLY, MOST_OBJECTS, ObjectEntry, ObjectKind, PROTOCOL, REPLY_HEAD, Reply,
    Status, WireError, answer_in, flags,
};
use proptest::prelude::*;

fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        flags: flags::OBSERVER,
        pid: 0x0102_0304,
        nonce: 0x1122_3344_5566_7788,
        build: *b"0.1.0+abcdef\0\0\0\0",
    }
}

#[test]
fn the_bytes_of_a_hello_are_these_on_every_machine() {
    let mut expected = Vec::new();
    expected.extend(b"StHe\x01\0\x01\0\x04\x03\x02\x01\x88\x77\x66\x55\x44\x33\x22\x11");
    expected.extend(b"0.1.0+abcdef\0\0\0\0");
    assert_eq!(hello().encode().as_slice(), expected);
}

#[test]
fn messages_come_back_as_they_were_sent() {
    assert_eq!(Hello::decode(&hello().encode()), Ok(hello()));
    let challenge = Challenge {
        protocol: PROTOCOL,
        nonce: 42,
    };
    assert_eq!(Challenge::decode(&challenge.encode()), Ok(challenge));
    for count in [0, 1, 2, MOST_OBJECTS] {
        let kinds = [
            ObjectKind::Policy,
            ObjectKind::Account,
            ObjectKind::Board,
            ObjectKind::Demand,
        ];
        let entries: Vec<ObjectEntry> = (0..count)
            .map(|at| ObjectEntry::new(kinds[at % 4], at as u16, [at as u8; 16], 4096 * at as u64))
            .collect();
        for status in [Status::Admitted, Status::Predecessor, Status::Failed] {
            let mut bytes = [0; LONGEST_REPLY];
            let length = Reply::new(PROTOCOL, status, &entries).encode(&mut bytes);
            assert_eq!(length, REPLY_HEAD + count * ObjectEntry::LENGTH);
            let reply = Reply::decode(&bytes[..length]).expect("a reply");
            assert_eq!((reply.protocol, reply.status), (PROTOCOL, status));
            assert!(reply.objects().eq(entries.iter().copied()));
            assert_eq!(Reply::decode(&bytes[..length - 1]).err(), Some(WireError::Short));
        }
    }
}

#[test]
fn neighbouring_versions_are_answered_and_no_others() {
    assert_eq!(answer_in(PROTOCOL), Some(PROTOCOL));
    assert_eq!(
        answer_in(PROTOCOL + 1),
        Some(PROTOCOL),
        "a newer client understands ours"
    );
    assert_eq!(answer_in(PROTOCOL + 2), None);
    assert_eq!(answer_in(0), None);
    assert_eq!(answer_in(u16::MAX), None);
}

#[test]
fn a_longer_message_of_a_newer_build_is_read_as_far_as_it_is_known() {
    let mut bytes = hello().encode().to_vec();
    bytes.extend([9; 12]);
    assert_eq!(Hello::decode(&bytes), Ok(hello()));
}

#[test]
fn a_kind_of_object_not_known_yet_keeps_its_place() {
    let entries = [
        ObjectEntry::new(ObjectKind::Policy, 0, [1; 16], 4096),
        ObjectEntry::new(ObjectKind::Account, 5, [1; 16], 8192),
    ];
    let mut bytes = [0; LONGEST_REPLY];
    let length = Reply::new(PROTOCOL, Status::Admitted, &entries).encode(&mut bytes);
    bytes[REPLY_HEAD..REPLY_HEAD + 2].copy_from_slice(&999u16.to_le_bytes());
    let reply = Reply::decode(&bytes[..length]).expect("a reply");
    let read: Vec<_> = reply.objects().collect();
    assert_eq!((read[0].kind, read[1]), (None, entries[1]));
}

#[test]
fn slots_and_counts_out_of_range_are_refused() {
    let entry = ObjectEntry::new(ObjectKind::Account, 1024, [0; 16], 1);
    let mut bytes = [0; LONGEST_REPLY];
    let length = Reply::new(PROTOCOL, Status::Admitted, &[entry]).encode(&mut bytes);
    assert_eq!(Reply::decode(&bytes[..length]).err(), Some(WireError::Value));
    bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(Reply::decode(&bytes[..length]).err(), Some(WireError::Value));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_decoder_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        magic in prop_oneof![Just(*b"StHe"), Just(*b"StCh"), Just(*b"StRe"), any::<[u8; 4]>()],
    ) {
        for (byte, known) in bytes.iter_mut().zip(magic) {
            *byte = known;
        }
        let heard = [
            Hello::decode(&bytes).is_ok(),
            Challenge::decode(&bytes).is_ok(),
            Reply::decode(&bytes).is_ok_and(|reply| reply.objects().count() <= MOST_OBJECTS),
        ];
        prop_assert!(heard.into_iter().filter(|heard| *heard).count() <= 1, "one message is of one kind");
    }
}
