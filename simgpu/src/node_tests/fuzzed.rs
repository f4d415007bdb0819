//! Peers that send anything, and clients that write anything into their rings: each is answered or cut off, and the others'
//! timeline stays exact.

#[path = "../../../tests/fuzz/engine.rs"]
mod engine;

use super::hostile::{Rogue, works};
use super::{Node, config};
use crate::proto::socket::{connect, send};
use crate::proto::{Hello, MAGIC, Request, VERSION, ask, role};
use crate::shm::segment::{Entry, kind};
use engine::fuzz;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// An input's first byte says what the rest is.
const GREETING: u8 = 0;
const REQUESTS: u8 = 1;

fn say(socket: BorrowedFd<'_>, bytes: &[u8]) {
    // SAFETY: a buffer as long as said. Whether the peer still listens does not matter.
    unsafe {
        libc::send(
            socket.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
        )
    };
}

/// The integers of a message, as bytes.
fn seed(first: u8, numbers: &[(u64, usize)]) -> Vec<u8> {
    let mut bytes = vec![first];
    for (number, width) in numbers {
        bytes.extend(&number.to_le_bytes()[..*width]);
    }
    bytes
}

/// 33 bytes as an entry of a ring.
fn entry(bytes: &[u8]) -> Entry {
    let number = |at: usize, width: usize| {
        let mut value = [0; 8];
        value[..width].copy_from_slice(&bytes[at..at + width]);
        u64::from_le_bytes(value)
    };
    Entry {
        stamp: number(0, 8),
        seq: number(8, 8),
        // A day and more is refused; an hour would be waited for.
        value: number(16, 8) % 1_000_000,
        key: number(24, 1),
        number: number(24, 4) as u32,
        parties: number(32, 1) as u32 % 4,
        context: bytes[28].into(),
        stream: bytes[29].into(),
        kind: bytes[30],
        device: bytes[31],
        priority: bytes[32] as i8,
    }
}

#[test]
fn whatever_a_peer_sends_or_writes_concerns_itself_alone() {
    let mut node = Node::start(config());
    let mut turns = 0;
    let kernel = |seq: u64, stream: u64| {
        let words = [
            (0, 8),
            (seq, 8),
            (1000, 8),
            (132, 4),
            (0, 1),
            (stream, 1),
            (u64::from(kind::KERNEL), 1),
            (0, 1),
            (0, 1),
        ];
        seed(0, &words)[1..].to_vec()
    };
    let seeds = vec![
        seed(
            GREETING,
            &[
                (MAGIC, 8),
                (u64::from(VERSION), 4),
                (u64::from(role::OBSERVER), 4),
            ],
        ),
        seed(
            REQUESTS,
            &[
                (ask::CHARGE.into(), 4),
                (0, 4),
                (1 << 20, 8),
                (ask::DISCHARGE.into(), 4),
                (0, 4),
                (1 << 20, 8),
            ],
        ),
        seed(
            REQUESTS,
            &[
                (ask::REPORT.into(), 4),
                (0, 4),
                (0, 8),
                (ask::UNSHARE.into(), 4),
                (0, 4),
                (7, 8),
            ],
        ),
        [vec![2], kernel(1, 0), kernel(2, 1), kernel(3, 0)].concat(),
    ];
    fuzz("stand-in", seeds, |bytes| {
        let Some((first, rest)) = bytes.split_first() else {
            return;
        };
        turns += 1;
        if turns % 1000 == 0 {
            node = Node::start(config()); // the watchdog of one node waits two minutes
        }
        match *first {
            GREETING => {
                let socket = connect(&node.place.socket, 30).expect("a connection");
                say(socket.as_fd(), rest);
            }
            REQUESTS => {
                let socket = connect(&node.place.socket, 30).expect("a connection");
                let hello = Hello {
                    magic: MAGIC,
                    version: VERSION,
                    role: role::OBSERVER,
                    ..Hello::default()
                };
                send(socket.as_fd(), &hello, &[]).expect("sent");
                for request in rest.chunks(size_of::<Request>()) {
                    // Anybody may end a node; here it is needed.
                    if !request.starts_with(&ask::STOP.to_le_bytes()) {
                        say(socket.as_fd(), request);
                    }
                }
            }
            _ => {
                let rogue = Rogue::connect(&node);
                let entries: Vec<Entry> = rest.chunks_exact(33).map(entry).collect();
                rogue.write(&entries);
            }
        }
        works(&node);
    });
}
