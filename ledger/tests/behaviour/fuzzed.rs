//! Bytes from strangers: messages of the attach protocol, and an account's memory as a tenant may leave it.

#[path = "../../../tests/fuzz/engine.rs"]
mod engine;

use crate::hostile::{exercise, overwrite};
use crate::setup::Pair;
use engine::fuzz;
use ledger::Account;
use ledger::wire::{
    Challenge, Hello, LONGEST_REPLY, ObjectEntry, ObjectKind, PROTOCOL, Reply, Status, flags,
};

#[test]
fn whatever_is_understood_of_a_message_can_be_said_again() {
    let hello = Hello {
        protocol: PROTOCOL,
        flags: flags::FORKED,
        pid: 7,
        nonce: 9,
        build: *b"0.1.0\0\0\0\0\0\0\0\0\0\0\0",
    };
    let challenge = Challenge {
        protocol: PROTOCOL,
        nonce: 42,
    };
    let entries =
        [ObjectKind::Policy, ObjectKind::Account].map(|kind| ObjectEntry::new(kind, 3, [5; 16], 4096));
    let mut reply = [0; LONGEST_REPLY];
    let length = Reply::new(PROTOCOL, Status::Admitted, &entries).encode(&mut reply);
    let seeds = vec![
        hello.encode().to_vec(),
        challenge.encode().to_vec(),
        reply[..length].to_vec(),
    ];
    fuzz("wire", seeds, |bytes| {
        if let Ok(hello) = Hello::decode(bytes) {
            assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        }
        if let Ok(challenge) = Challenge::decode(bytes) {
            assert_eq!(Challenge::decode(&challenge.encode()), Ok(challenge));
        }
        if let Ok(reply) = Reply::decode(bytes) {
            let objects: Vec<ObjectEntry> = reply.objects().collect();
            let mut again = [0; LONGEST_REPLY];
            let length = Reply::new(reply.protocol, reply.status, &objects).encode(&mut again);
            let again = Reply::decode(&again[..length]).expect("what was encoded just now");
            assert_eq!(again.status, reply.status);
            assert!(again.objects().eq(objects));
        }
    });
}

/// Lies of a tenant, ten bytes each: the 64-bit word of the account that is written, and its value.
const LIE: usize = 10;

#[test]
fn no_lie_of_a_tenant_stops_the_daemon() {
    let words = (size_of::<Account>() / 8) as u64;
    let lie = |word: u64, value: u64| {
        let mut bytes = (word as u16).to_le_bytes().to_vec();
        bytes.extend(value.to_le_bytes());
        bytes
    };
    // The word, the bell, the bits; then a slot's record, its operation and its ring.
    let mut honest = Vec::new();
    for (word, value) in [
        (8, 8 << 31 | 1 << 21 | 2),
        (16, 1),
        (24, 2),
        (1024, 8 << 21 | 1),
        (1025, 1 << 21 | 2),
        (1264, 5),
    ] {
        honest.extend(lie(word, value));
    }
    fuzz("account", vec![honest], |bytes| {
        let pair = Pair::new(1 << 20);
        pair.client(1).reserve(4096).expect("it fits");
        for lie in bytes.chunks_exact(LIE) {
            let (word, value) = lie.split_at(2);
            let word = u64::from(u16::from_le_bytes(word.try_into().expect("two bytes"))) % words;
            overwrite(&pair.account_fd, 8 * word, value);
        }
        exercise(&pair);
    });
}
