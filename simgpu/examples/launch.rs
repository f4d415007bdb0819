//! Figures of the stand-in: launch cost, null timing, exactness of events, lateness of waits, idle cost.
//!
//! `cargo run --release -p simgpu --example launch [PATH OF stint-sim]`; the server is found beside the
//! example otherwise (`cargo build --release -p simgpu` makes it).

use simgpu::client::{Client, Observer, Place, StreamId, Wait, start};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

struct Node {
    place: Place,
    _dir: tempfile::TempDir,
}

impl Node {
    fn start(server: &Path, settings: &[&str]) -> Outcome<Node> {
        let dir = tempfile::tempdir()?;
        let socket = dir.path().join("sim/sim.sock");
        let mut arguments: Vec<&OsStr> = vec!["serve".as_ref(), "--socket".as_ref(), socket.as_os_str()];
        arguments.extend(settings.iter().map(OsStr::new));
        start(server, &arguments)?;
        let place = Place {
            socket: socket.clone(),
            server: None,
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        while let Err(error) = Observer::connect(&place) {
            if Instant::now() > deadline {
                return Err(format!("no server: {error:?}").into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Node { place, _dir: dir })
    }

    fn client(&self) -> Outcome<Client> {
        Client::connect(&self.place).map_err(|e| format!("{e:?}").into())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Ok(observer) = Observer::connect(&self.place) {
            let _ = observer.stop();
        }
    }
}

fn main() -> Outcome<()> {
    let beside = || {
        Some(
            std::env::current_exe()
                .ok()?
                .parent()?
                .parent()?
                .join("stint-sim"),
        )
    };
    let server = std::env::args()
        .nth(1)
        .map(PathBuf::from)
        .or_else(beside)
        .ok_or("where is stint-sim?")?;
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!("load {}", load.trim_end());
    let node = Node::start(&server, &["--noise=off"])?;
    let client = node.client()?;
    let stream = client.stream(0, 0, 0)?;
    single_launches(&client, stream)?;
    bursts("burst of 1,000 launches", &client, stream)?;
    events(&client, stream)?;
    waits(&client, stream)?;
    idle(&node)?;
    let report = Observer::connect(&node.place)
        .map_err(|e| format!("{e:?}"))?
        .report()?;
    println!("late stamps {}", report.late_stamps);
    drop(client);
    let null = Node::start(&server, &["--timing=null"])?;
    let client = null.client()?;
    let stream = client.stream(0, 0, 0)?;
    bursts("null timing", &client, stream)
}

/// Single launches below the depth of the queue, timed one by one.
fn single_launches(client: &Client, stream: StreamId) -> Outcome<()> {
    let mut spans = Vec::new();
    for _ in 0..300 {
        for _ in 0..900 {
            let start = Instant::now();
            client.launch(stream, 100, 132)?;
            spans.push(start.elapsed().as_nanos() as u64);
        }
        client.synchronize(stream, Wait::Auto)?;
    }
    print("single launch (with the timer's own time)", &mut spans, "ns");
    Ok(())
}

fn bursts(what: &str, client: &Client, stream: StreamId) -> Outcome<()> {
    let mut spans = Vec::new();
    for _ in 0..300 {
        let start = Instant::now();
        for _ in 0..1000 {
            client.launch(stream, 100, 132)?;
        }
        spans.push(start.elapsed().as_nanos() as u64 / 1000);
        client.synchronize(stream, Wait::Auto)?;
    }
    print(&format!("{what}, each"), &mut spans, "ns");
    Ok(())
}

/// Events between queued kernels: the difference to what was asked for.
fn events(client: &Client, stream: StreamId) -> Outcome<()> {
    for ns in [20_000, 100_000, 1_000_000, 20_000_000] {
        let events: Vec<_> = (0..21).map(|_| client.event()).collect::<Result<_, _>>()?;
        let mut errors = Vec::new();
        for _ in 0..(400_000_000 / 20 / ns).clamp(1, 100) {
            // Keeps the stream busy while the others are queued.
            client.launch(stream, 2_000_000, 132)?;
            for event in &events {
                client.record(*event, stream)?;
                client.launch(stream, ns, 132)?;
            }
            client.synchronize(stream, Wait::Auto)?;
            for pair in events.windows(2) {
                errors.push(client.event_elapsed(pair[0], pair[1])?.abs_diff(ns as i64));
            }
        }
        print(
            &format!("event error, kernels of {} us", ns / 1000),
            &mut errors,
            "ns",
        );
        events.into_iter().for_each(|event| client.drop_event(event));
    }
    Ok(())
}

/// How late a wait returns after the work is complete.
fn waits(client: &Client, stream: StreamId) -> Outcome<()> {
    let event = client.event()?;
    for wait in [Wait::Auto, Wait::Yield, Wait::Block] {
        for (ns, count) in [
            (20_000, 2000),
            (100_000, 2000),
            (1_000_000, 600),
            (20_000_000, 40),
        ] {
            let mut late = Vec::new();
            for _ in 0..count {
                client.launch(stream, ns, 132)?;
                client.record(event, stream)?;
                client.synchronize(stream, wait)?;
                late.push(client.now() - client.event_time(event)?);
            }
            print(
                &format!("{wait:?}: wait late, kernel of {} us", ns / 1000),
                &mut late,
                "ns",
            );
        }
    }
    Ok(())
}

/// What the server uses of a core while a client holds a connection and does nothing.
fn idle(node: &Node) -> Outcome<()> {
    let observer = Observer::connect(&node.place).map_err(|e| format!("{e:?}"))?;
    let before = cpu_ticks(&node.place)?;
    std::thread::sleep(Duration::from_secs(2));
    let ticks = cpu_ticks(&node.place)? - before;
    drop(observer);
    println!("server idle for 2 s: {} ms of processor time", ticks * 10);
    Ok(())
}

/// User and system time of the server, in ticks of 10 ms.
fn cpu_ticks(place: &Place) -> Outcome<u64> {
    for process in std::fs::read_dir("/proc")?.flatten() {
        let Ok(line) = std::fs::read(process.path().join("cmdline")) else {
            continue;
        };
        let socket = place.socket.as_os_str().as_encoded_bytes();
        if line.windows(socket.len()).any(|part| part == socket)
            && line.windows(5).any(|part| part == b"serve")
        {
            let stat = std::fs::read_to_string(process.path().join("stat"))?;
            let fields: Vec<_> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
            let tick = |i: usize| fields.get(i).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
            return Ok(tick(11) + tick(12));
        }
    }
    Err("the server's process is not to be found".into())
}

fn print(what: &str, values: &mut [u64], unit: &str) {
    values.sort_unstable();
    let at = |permille: usize| values[(values.len() - 1) * permille / 1000];
    println!(
        "{what}: p50 {} p99 {} max {} {unit} (n = {})",
        at(500),
        at(990),
        at(1000),
        values.len()
    );
}
