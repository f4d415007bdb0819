//! A node of real processes: `stint-sim` as the server, copies of this test program as its clients.
//!
//! The long form (`STINT_TEST_LONG=1`) kills 1,000 clients instead of 200.

use serde_json::Value;
use simgpu::client::{Client, Observer, Place, Wait};
use simgpu::report::Report;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const SERVER: &str = env!("CARGO_BIN_EXE_stint-sim");
/// Names the socket to a copy of this program that shall be a victim.
const VICTIM: &str = "STINT_TEST_SIM_SOCKET";
/// Set: the victim leaves a child that holds its socket until its standard input ends.
const HEIR: &str = "STINT_TEST_SIM_HEIR";

fn sim(run_dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(SERVER);
    command.args(arguments).arg("--run-dir").arg(run_dir);
    command.output().expect("stint-sim runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A node started as a user would, stopped with the test.
struct Node {
    run_dir: tempfile::TempDir,
}

impl Node {
    fn start(settings: &[&str]) -> Node {
        let node = Node {
            run_dir: tempfile::tempdir().expect("a directory"),
        };
        let output = sim(node.run_dir.path(), &[&["start"], settings].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        node
    }

    fn place(&self) -> Place {
        Place {
            socket: self.run_dir.path().join("sim/sim.sock"),
            server: None,
        }
    }

    fn report(&self) -> Report {
        Observer::connect(&self.place())
            .expect("a connection")
            .report()
            .expect("a report")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        sim(self.run_dir.path(), &["stop"]);
    }
}

/// Waits until it is so; fails the test after a minute.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Processes whose command line contains the text.
fn processes(part: &Path) -> Vec<PathBuf> {
    let part = part.as_os_str().as_encoded_bytes();
    let all = std::fs::read_dir("/proc")
        .expect("proc")
        .flatten()
        .map(|entry| entry.path());
    all.filter(|p| {
        std::fs::read(p.join("cmdline")).is_ok_and(|line| line.windows(part.len()).any(|w| w == part))
    })
    .collect()
}

/// Not a test of its own: what a victim does, on both devices and all kinds of operations, until killed.
#[test]
fn victim() {
    let Some(socket) = std::env::var_os(VICTIM) else {
        return;
    };
    let place = Place {
        socket: socket.into(),
        server: None,
    };
    let client = Client::connect(&place).expect("a connection");
    let streams: Vec<_> = (0..4)
        .map(|i| client.stream(i % 2, 0, 0).expect("stream"))
        .collect();
    let event = client.event().expect("event");
    // SAFETY: the child makes system calls only.
    if std::env::var_os(HEIR).is_some() && unsafe { libc::fork() } == 0 {
        let mut byte = 0u8;
        // SAFETY: room for one byte; no destructor may run in the child.
        unsafe {
            libc::read(0, (&raw mut byte).cast(), 1);
            libc::_exit(0);
        }
    }
    let mut ns = u64::from(std::process::id());
    for round in 0.. {
        client.charge(round % 2, 1 << 20).expect("fits");
        for &stream in &streams {
            ns = ns * 7919 % 200_003;
            client.launch(stream, ns, 1 + (ns % 132) as u32).expect("launch");
            client.copy(stream, 0, ns / 4).expect("copy");
            client.record(event, stream).expect("record");
            client
                .host_function(stream, Box::new(|| ()))
                .expect("host function");
        }
        client.wait_event(streams[0], event).expect("wait");
        if round % 8 == 7 {
            client.synchronize(streams[3], Wait::Auto).expect("wait");
        }
        client.discharge(round % 2, 1 << 19).expect("held");
    }
}

fn victim_of(node: &Node) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", "victim"])
        .env(VICTIM, node.place().socket);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn death_is_seen_though_a_child_keeps_the_socket() {
    let node = Node::start(&["--devices=h200:2"]);
    let mut command = victim_of(&node);
    let mut victim = command
        .env(HEIR, "1")
        .stdin(Stdio::piped())
        .spawn()
        .expect("a victim");
    // Dropped at the end: then the heir leaves.
    let _will = victim.stdin.take();
    until("the victim is at work", || {
        node.report().processes.iter().any(|p| p.launches > 0)
    });
    victim.kill().expect("our own child");
    victim.wait().expect("our own child");
    until("its death is seen", || {
        node.report().processes.iter().all(|p| p.exited)
    });
    assert_eq!(node.report().devices[0].used_bytes, 0);
}

#[test]
fn the_truth_is_exact_after_many_kills_and_nothing_is_left() {
    let kills = if std::env::var_os("STINT_TEST_LONG").is_some() {
        1000
    } else {
        200
    };
    let node = Node::start(&["--devices=h200:2"]);
    let servers = processes(node.run_dir.path());
    let [server] = servers.as_slice() else {
        panic!("one server: {servers:?}")
    };
    let descriptors = || std::fs::read_dir(server.join("fd")).expect("alive").count();
    let before = descriptors();
    let mut x = 0x2545_f491_4f6c_dd1du64;
    let mut victims = Vec::new();
    let mut pids = std::collections::HashSet::new();
    for i in 0..kills + 4 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        if i < kills {
            let victim = victim_of(&node).spawn().expect("a victim");
            pids.insert(victim.id());
            victims.push(victim);
        }
        // Some die before they have said anything, most at work, some stopped.
        if victims.len() < 5 && i < kills || victims.is_empty() {
            continue;
        }
        let mut victim = victims.swap_remove(x as usize % victims.len());
        if !x.is_multiple_of(4) {
            let pid = victim.id();
            until("the victim is at work", || {
                node.report().processes.iter().any(|p| p.pid == pid)
            });
        }
        if x.is_multiple_of(8) {
            // SAFETY: our own child, not yet reaped.
            unsafe { libc::kill(victim.id() as i32, libc::SIGSTOP) };
        }
        victim.kill().expect("our own child");
        victim.wait().expect("our own child");
    }
    for mut victim in victims {
        victim.kill().expect("our own child");
        victim.wait().expect("our own child");
    }
    until("all are on record as dead", || {
        node.report().processes.iter().all(|p| p.exited)
    });
    // The report's own connection closes a moment later, as that of `start` did after the first count.
    until("no descriptor is left", || descriptors() <= before);
    let truth = node.report();
    let busiest = truth.processes.iter().map(|p| p.launches).max();
    assert!(busiest.is_some_and(|launches| launches > 0));
    for (i, device) in truth.devices.iter().enumerate() {
        let rows = truth.processes.iter().filter(|p| p.device as usize == i);
        let busy: u64 = rows.clone().map(|p| p.busy_ns).sum();
        assert_eq!(busy, device.busy_ns, "device {i}");
        assert!(device.busy_ns > 0 && device.used_bytes == 0 && device.high_water_bytes > 0);
        assert!(rows.clone().all(|p| pids.contains(&p.pid)));
    }
    // And it still works, to the nanosecond.
    let client = Client::connect(&node.place()).expect("a connection");
    let stream = client.stream(0, 0, 0).expect("stream");
    client.launch(stream, 12_345, 132).expect("launch");
    client.synchronize(stream, Wait::Auto).expect("wait");
    assert_eq!(
        node.report().devices[0].busy_ns,
        truth.devices[0].busy_ns + 12_345
    );
    eprintln!(
        "{kills} kills, {} rows, late stamps {}",
        truth.processes.len(),
        truth.late_stamps
    );
}

#[test]
fn many_who_start_a_node_at_once_share_one_and_leave_no_child() {
    let run_dir = tempfile::tempdir().expect("a directory");
    let place = Place {
        socket: run_dir.path().join("sim/sim.sock"),
        server: Some(SERVER.into()),
    };
    let clients: Vec<_> = std::thread::scope(|scope| {
        let starters: Vec<_> = (0..8).map(|_| scope.spawn(|| Client::connect(&place))).collect();
        starters
            .into_iter()
            .map(|s| s.join().expect("no panic").expect("a connection"))
            .collect()
    });
    clients[0].charge(0, 4711).expect("fits");
    assert!(clients.iter().all(|client| client.memory(0).used == 4711));
    until("one server is left", || processes(run_dir.path()).len() == 1);
    let server = processes(run_dir.path()).remove(0);
    let status = std::fs::read_to_string(server.join("status")).expect("alive");
    assert!(
        !status.contains(&format!("PPid:\t{}\n", std::process::id())),
        "our child: {status}"
    );
    let environment = std::fs::read(server.join("environ")).expect("alive");
    assert_eq!(text(&environment), "");
    for fd in 0..3 {
        let target = std::fs::read_link(server.join(format!("fd/{fd}"))).expect("open");
        assert_eq!(target, Path::new("/dev/null"));
    }
    sim(run_dir.path(), &["stop"]);
    until("the server is gone", || processes(run_dir.path()).is_empty());
}

#[test]
fn an_unused_node_ends_by_itself_and_a_killed_one_is_replaced() {
    let run_dir = tempfile::tempdir().expect("a directory");
    let socket = run_dir.path().join("sim/sim.sock");
    let serve = || {
        let arguments = ["serve", "--linger", "200ms", "--socket"];
        Command::new(SERVER)
            .args(arguments)
            .arg(&socket)
            .spawn()
            .expect("stint-sim runs")
    };
    let mut first = serve();
    let place = Place {
        socket: socket.clone(),
        server: None,
    };
    until("it answers", || Client::connect(&place).is_ok());
    first.kill().expect("our own child");
    first.wait().expect("our own child");
    assert!(socket.exists());
    let mut second = serve();
    until("the next one answers in its place", || {
        Client::connect(&place).is_ok()
    });
    assert!(second.wait().expect("our own child").success());
    assert!(!socket.exists());
    let started = sim(run_dir.path(), &["start", "--linger=200ms"]);
    assert!(started.status.success(), "{}", text(&started.stderr));
    until("a started one leaves too, if so told", || {
        processes(run_dir.path()).is_empty()
    });
}

#[test]
fn the_command_line_tells_the_truth() {
    let node = Node::start(&["--devices=h200:1,t4:1", "--noise=off", "--seed=5"]);
    let client = Client::connect(&node.place()).expect("a connection");
    let stream = client.stream(1, 0, 0).expect("stream");
    client.charge(1, 1 << 30).expect("fits");
    client.launch(stream, 5_000_000, 40).expect("launch");
    client.synchronize(stream, Wait::Auto).expect("wait");
    let output = sim(node.run_dir.path(), &["status", "--json"]);
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(status["schema"], "stint.sim/v1");
    assert_eq!(status["devices"][1]["busy_ns"], 5_000_000);
    assert_eq!(status["devices"][1]["capacity_bytes"], 15_843_721_216u64);
    let row = &status["processes"][0];
    assert_eq!(
        (&row["pid"], &row["device"]),
        (&Value::from(std::process::id()), &Value::from(1))
    );
    assert_eq!(
        (&row["launches"], &row["exited"]),
        (&Value::from(1), &Value::from(false))
    );
    assert_eq!(row["used_bytes"], 1 << 30);
    let table = text(&sim(node.run_dir.path(), &["status"]).stdout);
    assert!(
        table.contains("Tesla T4") && table.contains("NVIDIA H200"),
        "{table}"
    );
    let again = sim(node.run_dir.path(), &["start"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("is running"));
    let nowhere = tempfile::tempdir().expect("a directory");
    assert_eq!(sim(nowhere.path(), &["status"]).status.code(), Some(69));
    assert_eq!(sim(nowhere.path(), &["stop"]).status.code(), Some(0));
    assert_eq!(
        sim(nowhere.path(), &["start", "--devices=h300"]).status.code(),
        Some(64)
    );
    assert_eq!(
        sim(nowhere.path(), &["start", "--faults=/nonexistent"])
            .status
            .code(),
        Some(78)
    );
}

#[test]
fn a_directory_that_others_may_write_to_is_not_trusted() {
    use std::os::unix::fs::PermissionsExt;
    let run_dir = tempfile::tempdir().expect("a directory");
    let sim_dir = run_dir.path().join("sim");
    std::fs::create_dir(&sim_dir).expect("made");
    std::fs::set_permissions(&sim_dir, std::fs::Permissions::from_mode(0o777)).expect("ours");
    let output = Command::new(SERVER)
        .args(["serve", "--socket"])
        .arg(sim_dir.join("sim.sock"))
        .output();
    let output = output.expect("stint-sim runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("others may write"),
        "{}",
        text(&output.stderr)
    );
    let place = Place {
        socket: sim_dir.join("sim.sock"),
        server: None,
    };
    assert!(matches!(
        Client::connect(&place),
        Err(simgpu::client::ConnectError::Untrusted)
    ));
}

#[test]
fn a_configured_fault_hits_the_call_it_names() {
    let run_dir = tempfile::tempdir().expect("a directory");
    let file = run_dir.path().join("faults.toml");
    std::fs::write(
        &file,
        "[[fault]]\nfunction = \"cuMemAlloc\"\ncall = 2\nerror = 2\n",
    )
    .expect("written");
    let node = Node::start(&["--faults", file.to_str().expect("text")]);
    let client = Client::connect(&node.place()).expect("a connection");
    let codes: Vec<_> = (0..3)
        .map(|_| client.fault("cuMemAlloc").map(|error| error.code()))
        .collect();
    assert_eq!(codes, [None, Some(2), None]);
    assert_eq!(client.fault("cuMemFree"), None);
}
