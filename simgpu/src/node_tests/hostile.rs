//! Clients that do not follow the protocol: they are cut off, and nobody else notices.

use super::{Node, config, until};
use crate::client::Wait;
use crate::proto::socket::{connect, hung_up, receive, send};
use crate::proto::{Hello, MAGIC, Request, VERSION, Welcome, role};
use crate::shm::map::Map;
use crate::shm::segment::{Board, Entry, RING, Segment, kind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;

/// A client that writes into its segment what it likes.
pub(super) struct Rogue {
    socket: OwnedFd,
    segment: Map<Segment>,
    kick: OwnedFd,
    board: OwnedFd,
}

impl Rogue {
    pub(super) fn connect(node: &Node) -> Rogue {
        let socket = connect(&node.place.socket, 30).expect("a connection");
        let hello = Hello {
            magic: MAGIC,
            version: VERSION,
            role: role::CLIENT,
            ..Hello::default()
        };
        send(socket.as_fd(), &hello, &[]).expect("sent");
        let (_, mut fds): (Welcome, _) = receive(socket.as_fd()).expect("a welcome");
        let kick = fds.pop().expect("kick");
        let segment = Map::open(fds.pop().expect("segment"), true).expect("mapped");
        Rogue {
            socket,
            segment,
            kick,
            board: fds.pop().expect("board"),
        }
    }

    /// Writes the entries where they belong and rings.
    pub(super) fn write(&self, entries: &[Entry]) {
        for entry in entries {
            let tail = self.segment.tail.0.load(Ordering::Relaxed);
            until("there is room, or we are cut off", || {
                self.ring();
                self.is_cut_off() || tail - self.segment.head.0.load(Ordering::Acquire) < RING
            });
            // SAFETY: inside the mapping; the server copies whatever it finds.
            unsafe { self.segment.entry(tail).write(*entry) };
            self.segment.tail.0.store(tail + 1, Ordering::Release);
        }
        self.ring();
    }

    fn ring(&self) {
        let one = 1u64;
        // SAFETY: eight bytes of a u64 into an eventfd.
        unsafe { libc::write(self.kick.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    fn is_cut_off(&self) -> bool {
        hung_up(self.socket.as_fd())
    }
}

/// The node still works for others, to the nanosecond.
pub(super) fn works(node: &Node) {
    let client = node.client();
    let stream = client.stream(0, 0, 0).expect("stream");
    let (a, b) = (client.event().expect("event"), client.event().expect("event"));
    client.launch(stream, 1_000_000, 132).expect("launch");
    client.record(a, stream).expect("record");
    client.launch(stream, 12_345, 132).expect("launch");
    client.record(b, stream).expect("record");
    client.synchronize(stream, Wait::Auto).expect("wait");
    assert!(client.event_elapsed(a, b).expect("complete") >= 12_345);
}

fn kernel(seq: u64, value: u64) -> Entry {
    Entry {
        seq,
        value,
        number: 132,
        kind: kind::KERNEL,
        ..Entry::default()
    }
}

#[test]
fn every_breach_of_the_protocol_is_cut_off() {
    let node = Node::start(config());
    let breaches: [(&str, Vec<Entry>); 6] = [
        (
            "unknown kind",
            vec![Entry {
                kind: 99,
                ..kernel(1, 1)
            }],
        ),
        (
            "no such device",
            vec![Entry {
                device: 2,
                ..kernel(1, 1)
            }],
        ),
        ("gap in the sequence", vec![kernel(1, 1), kernel(3, 1)]),
        (
            "no such event",
            vec![Entry {
                kind: kind::RECORD,
                number: u32::MAX,
                ..kernel(1, 1)
            }],
        ),
        (
            "a busy stream moves",
            vec![
                kernel(1, 1 << 40),
                Entry {
                    device: 1,
                    ..kernel(2, 1)
                },
            ],
        ),
        ("zeros", vec![Entry::default()]),
    ];
    for (what, entries) in breaches {
        let rogue = Rogue::connect(&node);
        rogue.write(&entries);
        until(what, || rogue.is_cut_off());
        works(&node);
    }
}

#[test]
fn a_wild_tail_is_cut_off() {
    let node = Node::start(config());
    for tail in [RING + 1, u64::MAX, 1 << 63] {
        let rogue = Rogue::connect(&node);
        rogue.segment.tail.0.store(tail, Ordering::Release);
        rogue.ring();
        until("cut off", || rogue.is_cut_off());
    }
    works(&node);
}

#[test]
fn endless_kernels_and_wild_stamps_harm_nobody() {
    let node = Node::start(config());
    let rogue = Rogue::connect(&node);
    let wild = |seq, stamp| Entry {
        stamp,
        ..kernel(seq, u64::MAX)
    };
    rogue.write(&[wild(1, u64::MAX), wild(2, 0), wild(3, 1 << 63)]);
    for stream in 0..3000 {
        rogue.write(&[Entry {
            stream,
            ..kernel(if stream == 0 { 4 } else { 1 }, u64::MAX)
        }]);
    }
    works(&node);
    assert!(!rogue.is_cut_off());
}

#[test]
fn random_entries_never_hurt_the_node() {
    let node = Node::start(config());
    let mut x = 88172645463325252u64;
    let mut random = move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x
    };
    for _ in 0..100 {
        let rogue = Rogue::connect(&node);
        let mut seqs = [0; 8];
        let entries: Vec<_> = (0..1 + random() % 200)
            .map(|_| {
                let stream = (random() % 8) as u16;
                seqs[stream as usize] += 1;
                Entry {
                    stamp: random() >> (random() % 64),
                    seq: seqs[stream as usize],
                    value: random() >> (random() % 64),
                    number: (random() >> (32 + random() % 32)) as u32,
                    context: 0,
                    stream,
                    kind: (random() % 10) as u8,
                    key: random() % 3,
                    parties: (random() % 4) as u32,
                    device: 0,
                    priority: 0,
                }
            })
            .collect();
        rogue.write(&entries);
        // Interest in things that will never be.
        let seq = 1 + random() % 1000;
        rogue.segment.set_target((random() % 65536) as usize, seq);
        rogue.ring();
    }
    works(&node);
    until("all of them are gone", || {
        node.report().processes.iter().all(|p| p.exited)
    });
}

#[test]
fn strangers_and_nonsense_on_the_socket_are_turned_away() {
    let node = Node::start(config());
    // Silent: waits its turn without stopping anybody.
    let silent = connect(&node.place.socket, 30).expect("a connection");
    let other = connect(&node.place.socket, 30).expect("a connection");
    send(
        other.as_fd(),
        &Hello {
            magic: 1,
            version: 2,
            role: 3,
            ..Hello::default()
        },
        &[],
    )
    .expect("sent");
    until("another version is refused", || hung_up(other.as_fd()));
    let short = connect(&node.place.socket, 30).expect("a connection");
    send(short.as_fd(), &Request::default(), &[]).expect("sent");
    until("a message of another size is refused", || hung_up(short.as_fd()));
    let rogue = Rogue::connect(&node);
    let request = Request {
        kind: 4711,
        device: u32::MAX,
        value: u64::MAX,
    };
    // Who asks and never listens.
    until("the flood ends", || {
        send(rogue.socket.as_fd(), &request, &[]).is_err() || rogue.is_cut_off()
    });
    assert!(!hung_up(silent.as_fd()));
    works(&node);
}

#[test]
fn the_board_cannot_be_written_by_a_client() {
    let node = Node::start(config());
    let rogue = Rogue::connect(&node);
    assert!(Map::<Board>::open(rogue.board.try_clone().expect("a copy"), true).is_err());
    assert!(Map::<Board>::open(rogue.board.try_clone().expect("a copy"), false).is_ok());
}

#[test]
fn a_flood_of_kicks_stops_nobody() {
    let node = Node::start(config());
    let rogue = Rogue::connect(&node);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                rogue.ring();
            }
        });
        (0..20).for_each(|_| works(&node));
        stop.store(true, Ordering::Relaxed);
    });
}
