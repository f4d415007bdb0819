//! A whole node in one process: server thread and clients, as the front ends use them.

mod fuzzed;
mod hostile;
mod memory;
mod timeline;

use crate::catalogue::{CONTEXT_BYTES, Product};
use crate::client::{Client, Observer, Place};
use crate::facts::NodeFacts;
use crate::model::Sharing;
use crate::report::Report;
use crate::server::{Config, Place as ServerPlace, Server};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A node that ends with the test.
struct Node {
    place: Place,
    thread: Option<JoinHandle<()>>,
    /// Dropped at the end of the test: until then a watchdog waits for it.
    _leash: mpsc::Sender<()>,
    _dir: tempfile::TempDir,
}

/// Two H200 without noise or time slices.
fn config() -> Config {
    let facts = NodeFacts::of(&[Product::H200; 2], 1, CONTEXT_BYTES).without_noise();
    let sharing = Sharing::Sliced {
        slice: 1_024_000,
        switch: 50_000,
    };
    Config {
        facts,
        sharing,
        losses: Vec::new(),
        linger_ns: None,
    }
}

impl Node {
    fn start(config: Config) -> Node {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("run/sim/sim.sock");
        let place = ServerPlace::take(&socket).expect("a free place");
        let mut server = Server::new(place, config).expect("a server");
        let thread = std::thread::spawn(move || server.run().expect("serves"));
        Node {
            place: Place { socket, server: None },
            thread: Some(thread),
            _leash: watchdog(),
            _dir: dir,
        }
    }

    fn client(&self) -> Client {
        Client::connect(&self.place).expect("a connection")
    }

    fn report(&self) -> Report {
        self.observer().report().expect("a report")
    }

    fn observer(&self) -> Observer {
        Observer::connect(&self.place).expect("a connection")
    }

    fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A test may have ended it already.
            if let Ok(observer) = Observer::connect(&self.place) {
                observer.stop().expect("may stop it");
            }
            thread.join().expect("no panic in the server");
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.end();
        }
    }
}

/// Waits until it is so; fails the test after half a minute.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends the whole test program, with a word, if the test takes longer than two minutes: a wait that
/// never returns cannot fail by itself.
fn watchdog() -> mpsc::Sender<()> {
    let (leash, held) = mpsc::channel();
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    std::thread::spawn(move || {
        if held.recv_timeout(Duration::from_secs(120)) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("{test} hangs");
            std::process::abort();
        }
    });
    leash
}
