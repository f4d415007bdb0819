//! The thread of `stint top` that asks the daemon, again and again, and connects anew where it has gone.

use std::io;
use std::path::Path;
use std::time::Duration;

use crossbeam::channel::{Receiver, bounded};

use crate::exit::Failure;
use crate::protocol::Connection;
use crate::protocol::node::Node;
use crate::status;

/// What was found: the node, or why there is none.
pub type News = Result<Box<Node>, Failure>;

/// Asks every `every`. The thread ends soon after the receiver is dropped.
pub fn start(run_dir: Option<&Path>, every: Duration) -> io::Result<Receiver<News>> {
    let run_dir = run_dir.map(Path::to_path_buf);
    let (sender, receiver) = bounded(1);
    let ask = move || {
        let mut connection: Option<Connection> = None;
        loop {
            let mut look = || -> News {
                let connection = match &mut connection {
                    Some(connection) => connection,
                    none => none.insert(status::connect(run_dir.as_deref())?),
                };
                connection.status().map(Box::new)
            };
            let news = look();
            if news.is_err() {
                connection = None;
            }
            if sender.send(news).is_err() {
                return;
            }
            std::thread::sleep(every);
        }
    };
    std::thread::Builder::new().name("stint-top".into()).spawn(ask)?;
    Ok(receiver)
}
