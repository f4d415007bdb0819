//! Callers and clients that say anything: the daemon answers or hangs up, and goes on answering others.

use std::io::Read;
use std::net::Shutdown;

use crate::fuzzing::fuzz;
use ledger::wire::{Hello, PROTOCOL};
use rustix::net::{SendFlags, send};

use super::*;

#[test]
fn no_line_of_a_caller_silences_the_daemon() {
    let requests = [
        r#"{"request":"status"}"#,
        r#"{"request":"events","follow":true}"#,
        r#"{"request":"launch","tenant":"lab","memory":"64MiB","priority":"low","share":"30%"}"#,
        r#"{"request":"set","target":"lab","values":{"memory":"1GiB"},"for":"2h"}"#,
        r#"{"request":"why","subject":"lab"}"#,
        r#"{"request":"reload"}"#,
    ];
    let seeds = requests
        .iter()
        .map(|line| format!("{line}\n").into_bytes())
        .collect();
    let node = TestNode::start(CAP);
    fuzz("admin", seeds, |bytes| {
        let mut caller = UnixStream::connect(node.path().join("stint.sock")).unwrap();
        caller.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // It may have hung up in the middle.
        let _ = caller
            .write_all(bytes)
            .and_then(|()| caller.shutdown(Shutdown::Write));
        let mut answers = Vec::new();
        let end = caller.read_to_end(&mut answers).map_err(|error| error.kind());
        assert_ne!(
            end,
            Err(std::io::ErrorKind::WouldBlock),
            "it neither answers nor hangs up"
        );
        assert_eq!(node.status().schema, "stint.node/v1");
    });
}

#[test]
fn no_message_of_a_client_silences_the_daemon() {
    let hello = Hello {
        protocol: PROTOCOL,
        flags: 0,
        pid: 1,
        nonce: 1,
        build: [0; 16],
    };
    let node = TestNode::start(CAP);
    fuzz("attach", vec![hello.encode().to_vec()], |bytes| {
        let socket = client::connect(node.path());
        if send(&socket, bytes, SendFlags::NOSIGNAL).is_ok() && !bytes.is_empty() {
            // Whatever it was, the daemon has the last word.
            let mut answer = [0; 256];
            let _ = rustix::net::recv(&socket, &mut answer[..], rustix::net::RecvFlags::empty());
        }
        assert_eq!(node.status().schema, "stint.node/v1");
    });
}
