//! What a client sees of time: order, exactness, waiting, callbacks, dilation, loss.

use super::{Node, config, until};
use crate::client::{Client, Cost, StreamId, Wait};
use crate::facts::Costs;
use driver::CudaError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

const WAITS: [Wait; 4] = [Wait::Auto, Wait::Spin, Wait::Yield, Wait::Block];

/// Holds the stream until it is dropped, so that what is queued behind does not depend on the host.
fn gate(client: &Client, stream: StreamId) -> mpsc::Sender<()> {
    let (open, opened) = mpsc::channel();
    let function = move || assert!(opened.recv().is_err(), "nobody sends");
    client
        .host_function(stream, Box::new(function))
        .expect("host function");
    open
}

/// The device time that queued kernels of `ns` take, by events around them.
fn elapsed(client: &Client, stream: StreamId, kernels: u64, ns: u64) -> i64 {
    let (start, end) = (client.event().expect("event"), client.event().expect("event"));
    let gate = gate(client, stream);
    client.record(start, stream).expect("record");
    for _ in 0..kernels {
        client.launch(stream, ns, 132).expect("launch");
    }
    client.record(end, stream).expect("record");
    drop(gate);
    client.event_synchronize(end, Wait::Auto).expect("wait");
    client.event_elapsed(start, end).expect("both complete")
}

#[test]
fn queued_work_is_timed_to_the_nanosecond() {
    let node = Node::start(config());
    let client = node.client();
    for device in 0..2 {
        let stream = client.stream(device, 0, 0).expect("stream");
        assert_eq!(elapsed(&client, stream, 500, 20_001), 500 * 20_001);
    }
    drop(client);
    let truth = node.report();
    assert_eq!(truth.devices[0].busy_ns, 500 * 20_001);
    assert_eq!(truth.processes[0].launches, 500);
}

#[test]
fn every_way_of_waiting_returns_after_completion() {
    let node = Node::start(config());
    let client = node.client();
    let stream = client.stream(0, 0, 0).expect("stream");
    let event = client.event().expect("event");
    for wait in WAITS {
        for ns in [0, 1_000, 300_000] {
            client.launch(stream, ns, 132).expect("launch");
            client.record(event, stream).expect("record");
            client.synchronize(stream, wait).expect("wait");
            assert!(client.event_query(event).expect("query"));
            assert!(
                client.now() >= client.event_time(event).expect("complete"),
                "{wait:?}"
            );
        }
    }
    let sync = node.report().sync;
    println!("host noise: {sync}");
    assert!(sync.count >= 1 && sync.p50_ns <= sync.p99_ns && sync.p99_ns <= sync.max_ns);
}

#[test]
fn what_a_sampling_driver_shows_lags_behind_the_truth() {
    let node = Node::start(config());
    let client = node.client();
    let stream = client.stream(0, 0, 0).expect("stream");
    client.launch(stream, 600_000_000, 132).expect("launch");
    until("a whole sample is busy", || {
        let report = node.report();
        let shown = report.devices[0].sampled_permille;
        assert!(report.sample_age_ns < 166_666_667);
        assert_eq!(shown, report.processes.first().map_or(0, |p| p.sampled_permille));
        shown == 1000
    });
    client.synchronize(stream, Wait::Block).expect("wait");
    until("the last busy sample is over", || {
        node.report().devices[0].sampled_permille == 0
    });
    let report = node.report();
    assert_eq!(report.devices[0].busy_ns, 600_000_000);
    assert_eq!(report.devices[1].sampled_permille, 0);
}

#[test]
fn queries_alone_see_completion() {
    let node = Node::start(config());
    let client = node.client();
    let stream = client.stream(0, 0, 0).expect("stream");
    let gate = gate(&client, stream);
    client.launch(stream, 2_000_000, 132).expect("launch");
    assert!(!client.query(stream).expect("query"));
    drop(gate);
    until("the query says so", || client.query(stream).expect("query"));
}

#[test]
fn streams_follow_one_another_across_devices() {
    let node = Node::start(config());
    let client = node.client();
    let (a, b) = (
        client.stream(0, 0, 0).expect("stream"),
        client.stream(1, 0, 0).expect("stream"),
    );
    let (start, end) = (client.event().expect("event"), client.event().expect("event"));
    let first = gate(&client, a);
    client.record(start, a).expect("record");
    client.launch(a, 1_000_000, 132).expect("launch");
    client.follow(b, a).expect("follow");
    client.launch(b, 2_000_000, 132).expect("launch");
    client.record(end, b).expect("record");
    drop(first);
    client.synchronize(b, Wait::Auto).expect("wait");
    assert_eq!(client.event_elapsed(start, end), Ok(3_000_000));
    // An event does the same, and one never recorded does nothing.
    let second = gate(&client, a);
    client.record(start, a).expect("record");
    client.wait_event(b, start).expect("wait");
    client
        .wait_event(b, client.event().expect("event"))
        .expect("no-op");
    client.copy(b, 1, 500_000).expect("copy");
    client.record(end, b).expect("record");
    drop(second);
    client.synchronize(b, Wait::Block).expect("wait");
    assert_eq!(client.event_elapsed(start, end), Ok(500_000));
}

#[test]
fn events_report_what_they_cannot_say() {
    let node = Node::start(config());
    let client = node.client();
    let stream = client.stream(0, 0, 0).expect("stream");
    let (a, b) = (client.event().expect("event"), client.event().expect("event"));
    assert_eq!(client.event_query(a), Ok(true));
    assert_eq!(client.event_elapsed(a, b), Err(CudaError::INVALID_HANDLE));
    client.record(a, stream).expect("record");
    let gate = gate(&client, stream);
    client.record(b, stream).expect("record");
    assert_eq!(client.event_elapsed(a, b), Err(CudaError::NOT_READY));
    drop(gate);
    client.event_synchronize(b, Wait::Auto).expect("wait");
    client.drop_event(b);
    assert_eq!(client.event_query(b), Err(CudaError::INVALID_HANDLE));
    // Its number lives again, without a memory.
    assert_eq!(
        client.event().map(|event| client.event_query(event)),
        Ok(Ok(true))
    );
}

#[test]
fn host_functions_run_in_order_and_hold_their_stream() {
    let node = Node::start(config());
    let client = node.client();
    let stream = client.stream(0, 0, 0).expect("stream");
    let seen = Arc::new(AtomicU64::new(0));
    for i in 0..20 {
        client.launch(stream, 50_000, 132).expect("launch");
        let seen = seen.clone();
        let function = move || {
            assert_eq!(seen.fetch_add(1, Ordering::SeqCst), i);
            assert!(i != 7, "swallowed");
        };
        client
            .host_function(stream, Box::new(function))
            .expect("host function");
    }
    client.synchronize(stream, Wait::Auto).expect("wait");
    assert_eq!(seen.load(Ordering::SeqCst), 20);
}

#[test]
fn a_full_queue_blocks_and_loses_nothing() {
    let node = Node::start(config());
    let client = node.client();
    let stream = client.stream(0, 0, 0).expect("stream");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..10_000).for_each(|_| client.launch(stream, 700, 132).expect("launch")));
        }
    });
    client.synchronize(stream, Wait::Auto).expect("wait");
    let truth = node.report();
    assert_eq!(
        (truth.processes[0].launches, truth.processes[0].busy_ns),
        (20_000, 20_000 * 700)
    );
}

#[test]
fn a_dropped_stream_finishes_its_work_and_its_number_comes_back() {
    let node = Node::start(config());
    let client = node.client();
    let stream = client.stream(0, 0, 0).expect("stream");
    let gate = gate(&client, stream);
    client.launch(stream, 5_000_000, 132).expect("launch");
    client.drop_stream(stream);
    assert_eq!(client.launch(stream, 1, 1), Err(CudaError::INVALID_HANDLE));
    assert_ne!(client.stream(0, 0, 0), Ok(stream));
    drop(gate);
    client.synchronize_context(0, 0, Wait::Auto).expect("wait");
    assert_eq!(node.report().devices[0].busy_ns, 5_000_000);
    assert_eq!(client.stream(0, 3, 0), Ok(stream));
    client
        .launch(stream, 1_000, 132)
        .expect("launch in another context");
    client.synchronize(stream, Wait::Auto).expect("wait");
}

#[test]
fn contexts_of_two_processes_share_a_device_and_the_truth_adds_up() {
    let node = Node::start(config());
    let (a, b) = (node.client(), node.client());
    for client in [&a, &b] {
        let stream = client.stream(0, 0, 0).expect("stream");
        (0..200).for_each(|_| client.launch(stream, 50_000, 132).expect("launch"));
    }
    a.synchronize_context(0, 0, Wait::Auto).expect("wait");
    drop(a);
    b.synchronize_context(0, 0, Wait::Auto).expect("wait");
    until("both are on record", || {
        node.report().processes.iter().any(|p| p.exited)
    });
    let truth = node.report();
    assert_eq!(truth.devices[0].busy_ns, 2 * 200 * 50_000);
    assert_eq!(
        truth.processes.iter().map(|p| p.busy_ns).collect::<Vec<_>>(),
        [10_000_000; 2]
    );
    assert!(truth.devices[0].switch_ns > 0);
    let switched: u64 = truth.processes.iter().map(|p| p.switch_ns).sum();
    assert_eq!(switched, truth.devices[0].switch_ns);
}

#[test]
fn device_time_is_dilated() {
    let mut slow = config();
    slow.facts.time_scale = 20;
    let node = Node::start(slow);
    let client = node.client();
    let stream = client.stream(0, 0, 0).expect("stream");
    let started = Instant::now();
    assert_eq!(elapsed(&client, stream, 10, 100_000), 1_000_000);
    assert!(started.elapsed() >= Duration::from_millis(20));
    let before = client.now();
    std::thread::sleep(Duration::from_millis(20));
    assert!(client.now() - before >= 1_000_000);
    assert_eq!(node.report().time_scale, 20);
}

#[test]
fn calls_cost_what_the_node_says() {
    let mut dear = config();
    dear.facts.costs = Costs {
        alloc: 3_000_000,
        alloc_per_mib: 1_000_000,
        ..Costs::OFF
    };
    let node = Node::start(dear);
    let client = node.client();
    let started = Instant::now();
    drop(client.spend(Cost::Launch));
    drop(client.spend(Cost::Alloc(2 << 20)));
    assert!(started.elapsed() >= Duration::from_millis(5));
}

#[test]
fn kernels_of_two_processes_on_two_devices_meet_and_end_together() {
    let node = Node::start(config());
    let (a, b) = (node.client(), node.client());
    let (here, there) = (
        a.stream(0, 0, 0).expect("stream"),
        b.stream(1, 0, 0).expect("stream"),
    );
    let ends = [a.event().expect("event"), b.event().expect("event")];
    a.launch_party(here, 3_000_000, 132, 77, 2).expect("party");
    a.record(ends[0], here).expect("record");
    assert!(!a.query(here).expect("query"));
    b.launch(there, 2_000_000, 132).expect("launch");
    b.launch_party(there, 3_000_000, 132, 77, 2).expect("party");
    b.record(ends[1], there).expect("record");
    // The first one's wait ends although only the second one's client did anything for it.
    a.synchronize(here, Wait::Block).expect("wait");
    b.synchronize(there, Wait::Auto).expect("wait");
    assert_eq!(a.event_time(ends[0]), b.event_time(ends[1]));
    let truth = node.report();
    assert_eq!(truth.devices[1].busy_ns, 5_000_000);
    assert!(truth.devices[0].busy_ns >= 5_000_000 - 1_000_000);
    assert_eq!(a.launch_party(here, 1, 1, 77, 0), Err(CudaError::INVALID_VALUE));
}

#[test]
fn a_broken_context_says_so_for_ever_and_spares_the_others() {
    let node = Node::start(config());
    let (client, neighbour) = (node.client(), node.client());
    let bad = CudaError::ILLEGAL_ADDRESS;
    let (first, second) = (
        client.stream(0, 0, 0).expect("stream"),
        client.stream(0, 0, 0).expect("stream"),
    );
    let other = client.stream(0, 1, 0).expect("stream");
    let gate = gate(&client, first);
    client.break_context(first, 100_000, 132, bad).expect("launch");
    client.launch(second, 3_600_000_000_000, 1).expect("an hour");
    assert_eq!(client.query(second), Ok(false), "nothing has happened yet");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| client.synchronize(second, Wait::Block));
        drop(gate);
        assert_eq!(
            waiter.join().expect("no panic"),
            Err(bad),
            "the hour is over early"
        );
    });
    for stream in [first, second] {
        assert_eq!(client.synchronize(stream, Wait::Auto), Err(bad));
        assert_eq!(client.launch(stream, 1, 1), Err(bad));
        assert_eq!(client.query(stream), Err(bad));
    }
    assert_eq!(client.intact(0, 0), Err(bad));
    assert_eq!((client.intact(0, 1), client.intact(1, 0)), (Ok(()), Ok(())));
    client.launch(other, 1_000, 1).expect("another context");
    client.synchronize(other, Wait::Auto).expect("wait");
    let stream = neighbour.stream(0, 0, 0).expect("stream");
    neighbour.launch(stream, 1_000, 1).expect("launch");
    neighbour.synchronize(stream, Wait::Auto).expect("wait");
}

#[test]
fn null_timing_counts_and_takes_no_time() {
    let mut null = config();
    null.facts.timing = 1;
    let node = Node::start(null);
    let client = node.client();
    let stream = client.stream(1, 0, 0).expect("stream");
    let event = client.event().expect("event");
    for _ in 0..5000 {
        client.launch(stream, 1_000_000_000, 132).expect("launch");
    }
    client.record(event, stream).expect("record");
    client.synchronize(stream, Wait::Auto).expect("wait");
    assert_eq!(client.query(stream), Ok(true));
    assert_eq!(client.event_elapsed(event, event), Ok(0));
    client.charge(1, 1 << 30).expect("fits");
    assert_eq!(client.charge(1, u64::MAX), Err(CudaError::OUT_OF_MEMORY));
    let row = node.report().processes[0];
    assert_eq!((row.device, row.launches, row.used_bytes), (1, 5000, 1 << 30));
}

#[test]
fn a_lost_device_ends_waits_and_spares_the_others() {
    let mut bad = config();
    bad.losses = vec![(1, 1_000_000_000)];
    let node = Node::start(bad);
    let client = node.client();
    let (good, lost) = (
        client.stream(0, 0, 0).expect("stream"),
        client.stream(1, 0, 0).expect("stream"),
    );
    client.launch(lost, 3_600_000_000_000, 132).expect("launch");
    assert_eq!(
        client.synchronize(lost, Wait::Block),
        Err(CudaError::DEVICE_UNAVAILABLE)
    );
    assert!(client.device_lost(1) && !client.device_lost(0));
    assert_eq!(client.launch(lost, 1, 1), Err(CudaError::DEVICE_UNAVAILABLE));
    client.launch(good, 1_000, 1).expect("launch");
    client.synchronize(good, Wait::Auto).expect("wait");
    assert!(node.report().devices[1].lost);
}

#[test]
fn a_lost_server_is_a_sticky_error_for_whoever_waits() {
    let mut node = Node::start(config());
    let client = node.client();
    let stream = client.stream(0, 0, 0).expect("stream");
    client.launch(stream, 3_600_000_000_000, 132).expect("launch");
    std::thread::scope(|scope| {
        let client = &client;
        let waiters = WAITS.map(|wait| scope.spawn(move || client.synchronize(stream, wait)));
        node.end();
        for waiter in waiters {
            assert_eq!(waiter.join().expect("no panic"), Err(CudaError::UNKNOWN));
        }
    });
    assert_eq!(client.alive(), Err(CudaError::UNKNOWN));
    assert_eq!(client.launch(stream, 1, 1), Err(CudaError::UNKNOWN));
    assert_eq!(client.charge(0, 1), Err(CudaError::UNKNOWN));
    assert!(!client.forked());
}
