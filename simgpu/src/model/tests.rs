//! The timeline's promises: exact times, fair turns, nothing left of the dead.

use super::*;

mod history;
mod kinds;

const US: u64 = 1000;
const FOREVER: Ns = NEVER - 1;

#[derive(Default)]
struct Log {
    done: Vec<(Lane, u64, Ns)>,
    events: Vec<(u32, u64, Ns)>,
    host: Vec<(usize, u64, Ns)>,
}

impl Sink for Log {
    fn completed(&mut self, lane: Lane, seq: u64, at: Ns) {
        self.done.push((lane, seq, at));
    }
    fn recorded(&mut self, _client: usize, event: u32, generation: u64, at: Ns) {
        self.events.push((event, generation, at));
    }
    fn host(&mut self, lane: Lane, cookie: u64, at: Ns) {
        self.host.push((lane.stream, cookie, at));
    }
}

impl Log {
    /// (client, stream, seq, time) of every completion.
    fn done(&self) -> Vec<(usize, usize, u64, Ns)> {
        self.done
            .iter()
            .map(|&(l, seq, at)| (l.client, l.stream, seq, at))
            .collect()
    }
}

struct Bench {
    model: Model,
    log: Log,
    seqs: HashMap<Lane, u64>,
}

impl Bench {
    fn new(devices: &[DeviceConfig], clients: usize) -> Bench {
        let mut model = Model::new(devices);
        for _ in 0..clients {
            model.add_client(100);
        }
        Bench {
            model,
            log: Log::default(),
            seqs: HashMap::new(),
        }
    }

    fn submit(&mut self, client: usize, stream: usize, home: Home, at: Ns, kind: Kind) {
        let lane = Lane { client, stream };
        let seq = self.seqs.entry(lane).or_default();
        *seq += 1;
        let op = Op { seq: *seq, kind };
        self.model
            .submit(lane, home, at, op, &mut self.log)
            .expect("follows the protocol");
    }

    fn kernel(&mut self, client: usize, stream: usize, at: Ns, us: u64, sms: u32) {
        self.submit(client, stream, HOME, at, Kind::Kernel { ns: us * US, sms });
    }

    fn run(&mut self) {
        self.model.advance(FOREVER, &mut self.log);
    }
}

const HOME: Home = Home {
    device: 0,
    context: 0,
    priority: 0,
};

#[test]
fn queued_kernels_follow_one_another_exactly_however_late_the_server() {
    let mut b = Bench::new(&[DeviceConfig::default()], 1);
    for _ in 0..5 {
        b.kernel(0, 0, 100, 20, 132);
    }
    b.model.advance(1_000_000_000, &mut b.log);
    let at: Vec<_> = b.log.done.iter().map(|d| d.2).collect();
    assert_eq!(at, [20_100, 40_100, 60_100, 80_100, 100_100]);
    // An idle device does not move on: a later stamp before the limit is still exact.
    b.kernel(0, 0, 500_000, 20, 132);
    b.run();
    assert_eq!(b.log.done[5].2, 520_000);
    assert_eq!(b.model.late(), (0, 0));
}

#[test]
fn streams_of_a_context_share_the_sms() {
    let mut b = Bench::new(&[DeviceConfig::default()], 1);
    for stream in 0..3 {
        b.kernel(0, stream, 0, 100, 66);
    }
    b.run();
    assert_eq!(
        b.log.done(),
        [(0, 0, 1, 100_000), (0, 1, 1, 100_000), (0, 2, 1, 200_000)]
    );
    let truth = b.model.truth(0, 0, 200_000);
    assert_eq!(
        (truth.busy_ns, truth.sm_ns, truth.kernels),
        (200_000, 300_000 * 66, 3)
    );
}

#[test]
fn a_kernel_with_too_few_sms_is_slower_in_proportion() {
    let mut b = Bench::new(&[DeviceConfig::default()], 1);
    b.kernel(0, 0, 0, 100, 88);
    b.kernel(0, 1, 0, 100, 132);
    b.run();
    // A third of the SMs for 100 us, then all: 33.3 us done, 66.7 us to go.
    assert_eq!(b.log.done(), [(0, 0, 1, 100_000), (0, 1, 1, 166_667)]);
}

#[test]
fn urgent_streams_go_first() {
    let mut b = Bench::new(&[DeviceConfig::default()], 1);
    b.kernel(0, 0, 0, 100, 132);
    b.submit(
        0,
        1,
        Home { priority: -1, ..HOME },
        10 * US,
        Kind::Kernel {
            ns: 50 * US,
            sms: 132,
        },
    );
    b.run();
    assert_eq!(b.log.done(), [(0, 1, 1, 60_000), (0, 0, 1, 150_000)]);
}

#[test]
fn contexts_take_turns_and_the_incoming_one_pays() {
    let mut b = Bench::new(&[DeviceConfig::default()], 2);
    b.kernel(0, 0, 0, 2048, 132);
    b.kernel(1, 0, 0, 1024, 132);
    b.run();
    // A 0..1024, switch, B 1074..2098, switch, A 2148..3172.
    assert_eq!(b.log.done(), [(1, 0, 1, 2_098_000), (0, 0, 1, 3_172_000)]);
    assert_eq!(b.model.device_truth(0, FOREVER).0, 3_072_000);
    assert_eq!(b.model.device_truth(0, FOREVER).1, 100_000);
    assert_eq!(b.model.truth(0, 0, FOREVER).busy_ns, 2_048_000);
}

#[test]
fn two_contexts_of_one_process_take_turns_too() {
    let mut b = Bench::new(&[DeviceConfig::default()], 1);
    b.kernel(0, 0, 0, 100, 1);
    b.submit(
        0,
        1,
        Home { context: 1, ..HOME },
        0,
        Kind::Kernel { ns: 100 * US, sms: 1 },
    );
    b.run();
    assert_eq!(b.log.done(), [(0, 0, 1, 100_000), (0, 1, 1, 250_000)]);
}

#[test]
fn a_saturated_device_is_shared_evenly_whatever_the_length_of_kernels() {
    let sharing = Sharing::Sliced {
        slice: 1_024_000,
        switch: 0,
    };
    let mut b = Bench::new(
        &[DeviceConfig {
            sharing,
            ..DeviceConfig::default()
        }],
        2,
    );
    for _ in 0..1000 {
        b.kernel(0, 0, 0, 100, 132);
    }
    for _ in 0..5 {
        b.kernel(1, 0, 0, 20_000, 132);
    }
    b.model.advance(100_000_000, &mut b.log);
    let (a, c) = (
        b.model.truth(0, 0, 100_000_000).busy_ns,
        b.model.truth(1, 0, 100_000_000).busy_ns,
    );
    assert_eq!(a + c, 100_000_000);
    assert!(a.abs_diff(c) <= 1_024_000, "{a} {c}");
}

#[test]
fn side_by_side_processes_are_capped_and_disturb_one_another() {
    let sharing = Sharing::Together { interference: 500 };
    let mut b = Bench::new(
        &[DeviceConfig {
            sharing,
            ..DeviceConfig::default()
        }],
        0,
    );
    for client in 0..2 {
        b.model.add_client(50);
        b.kernel(client, 0, 0, 100, 132);
    }
    b.run();
    // Half the SMs: 200 us; the other half busy: times 1/0.75.
    assert_eq!(b.log.done[0].2, 266_667);
}

#[test]
fn events_copies_and_host_functions_order_streams() {
    let mut b = Bench::new(&[DeviceConfig::default()], 1);
    b.kernel(0, 0, 0, 100, 132);
    b.submit(
        0,
        0,
        HOME,
        0,
        Kind::Record {
            event: 7,
            generation: 1,
        },
    );
    b.submit(
        0,
        1,
        HOME,
        0,
        Kind::Await {
            event: 7,
            generation: 1,
        },
    );
    b.submit(
        0,
        1,
        HOME,
        0,
        Kind::Copy {
            engine: 0,
            ns: 50 * US,
            traffic: 0,
        },
    );
    b.submit(0, 1, HOME, 0, Kind::Host { cookie: 9 });
    b.kernel(0, 1, 0, 10, 132);
    b.model.advance(1_000_000, &mut b.log);
    assert_eq!(b.log.events, [(7, 1, 100_000)]);
    assert_eq!(b.log.host, [(1, 9, 150_000)]);
    b.model
        .host_done(Lane { client: 0, stream: 1 }, 400_000, &mut b.log);
    b.run();
    assert_eq!(b.log.done().last(), Some(&(0, 1, 4, 410_000)));
    assert_eq!(b.model.host_ops(), 0);
}

#[test]
fn a_long_chain_of_releases_needs_no_stack() {
    let mut b = Bench::new(&[DeviceConfig::default()], 1);
    let streams = 20_000u32;
    for i in 1..streams {
        b.submit(
            0,
            i as usize,
            HOME,
            0,
            Kind::Await {
                event: i - 1,
                generation: 1,
            },
        );
        b.submit(
            0,
            i as usize,
            HOME,
            0,
            Kind::Record {
                event: i,
                generation: 1,
            },
        );
    }
    b.submit(
        0,
        0,
        HOME,
        5,
        Kind::Record {
            event: 0,
            generation: 1,
        },
    );
    assert_eq!(b.log.events.last(), Some(&(streams - 1, 1, 5)));
}

#[test]
fn kernels_beyond_the_resident_limit_wait_for_room() {
    let mut b = Bench::new(&[DeviceConfig::default()], 1);
    for stream in 0..op::RESIDENT_KERNELS + 1 {
        b.kernel(0, stream, 0, 100, 1);
    }
    b.run();
    assert_eq!(b.log.done().last(), Some(&(0, op::RESIDENT_KERNELS, 1, 200_000)));
}

#[test]
fn the_window_forgets_after_a_second() {
    let mut b = Bench::new(&[DeviceConfig::default()], 1);
    b.kernel(0, 0, 1_000_000_000, 500_000, 132);
    b.run();
    assert_eq!(b.model.device_truth(0, 1_999_999_999).2, 500);
    assert_eq!(
        b.model.truth(0, 0, 1_999_999_999).window.permille(1_999_999_999),
        500
    );
    assert_eq!(b.model.device_truth(0, 3_000_000_000).2, 0);
}

#[test]
fn gaps_and_moves_are_refused() {
    let mut b = Bench::new(&[DeviceConfig::default()], 1);
    b.kernel(0, 0, 0, 10, 1);
    let lane = Lane { client: 0, stream: 0 };
    let kind = Kind::Kernel { ns: 1, sms: 1 };
    let m = &mut b.model;
    assert_eq!(
        m.submit(lane, HOME, 0, Op { seq: 3, kind }, &mut b.log),
        Err(Refused::Sequence)
    );
    let moved = Home { context: 1, ..HOME };
    assert_eq!(
        m.submit(lane, moved, 0, Op { seq: 2, kind }, &mut b.log),
        Err(Refused::Moved)
    );
    let away = Home { device: 9, ..HOME };
    assert_eq!(
        m.submit(lane, away, 0, Op { seq: 2, kind }, &mut b.log),
        Err(Refused::Device)
    );
}

#[test]
fn death_leaves_nothing_and_the_sum_of_truths_is_the_busy_time() {
    let mut b = Bench::new(&[DeviceConfig::default()], 3);
    for client in 0..3 {
        for stream in 0..2 {
            b.kernel(client, stream, 10, 5000, 100);
            b.submit(
                client,
                stream,
                HOME,
                10,
                Kind::Copy {
                    engine: 0,
                    ns: US,
                    traffic: 0,
                },
            );
        }
    }
    let mut dead = 0;
    for (client, at) in [(0, 3_000_000), (2, 4_000_000)] {
        dead += b.model.remove_client(client, at, &mut b.log)[0].busy_ns;
    }
    b.run();
    assert!(b.log.done.iter().any(|d| d.0.client == 1 && d.1 == 2));
    dead += b.model.remove_client(1, 0, &mut b.log)[0].busy_ns;
    assert_eq!(dead, b.model.device_truth(0, FOREVER).0);
    assert_eq!((b.model.census(), b.model.next()), (Census::default(), NEVER));
}
