//! A connection that only looks: for NVML, `stint sim status` and the daemon.

use super::fault::Faults;
use super::memory::ask_server;
use super::{ConnectError, Place, connect};
use crate::facts::{DeviceFacts, NodeFacts};
use crate::proto::{Request, ask, role};
use crate::report::Report;
use driver::{CuResult, CudaError};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

/// A connection that only looks: no memory, no streams, not a user of any device. It keeps a node alive.
pub struct Observer {
    link: connect::Link,
    faults: Faults,
    asking: Mutex<()>,
    pid: u32,
}

impl Observer {
    /// As [`super::Client::connect`].
    pub fn connect(place: &Place) -> Result<Observer, ConnectError> {
        let link = connect::establish(place, role::OBSERVER, 0)?;
        let faults = Faults::new(link.facts.faults());
        Ok(Observer {
            link,
            faults,
            asking: Mutex::default(),
            pid: std::process::id(),
        })
    }

    /// True in a forked child: the connection is the parent's, make another.
    pub fn forked(&self) -> bool {
        std::process::id() != self.pid
    }

    pub fn node(&self) -> &NodeFacts {
        &self.link.facts
    }

    pub fn devices(&self) -> &[DeviceFacts] {
        self.node().devices()
    }

    /// True when a configured fault has taken the device away, or the server is gone. No round trip.
    pub fn device_lost(&self, device: usize) -> bool {
        let board = self.link.board.devices.get(device);
        board.is_none_or(|b| b.lost.load(Ordering::Relaxed) != 0) || self.link.is_dead()
    }

    /// The node's truth now. One round trip.
    pub fn report(&self) -> Result<Report, CudaError> {
        let (length, object) = self.ask(ask::REPORT)?;
        let mut file = File::from(object.ok_or(CudaError::UNKNOWN)?);
        let mut bytes = Vec::new();
        // The descriptor shares the position of the server's, which is at the end.
        let read = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.take(length).read_to_end(&mut bytes));
        read.map_err(|_| CudaError::UNKNOWN)?;
        Report::decode(&bytes).ok_or(CudaError::UNKNOWN)
    }

    /// Ends the node at once, whoever uses it. `NOT_PERMITTED` unless it is this user's.
    pub fn stop(&self) -> CuResult {
        self.ask(ask::STOP).map(drop)
    }

    /// As [`super::Client::fault`], with the NVML name; gives an `nvmlReturn_t`.
    #[inline]
    pub fn fault(&self, function: &str) -> Option<u32> {
        Some(self.faults.call(function)).filter(|&code| code != 0)
    }

    fn ask(&self, kind: u32) -> Result<(u64, Option<std::os::fd::OwnedFd>), CudaError> {
        let _turn = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let request = Request {
            kind,
            device: 0,
            value: 0,
        };
        ask_server(self.link.socket.as_fd(), request, None).map_err(|_| CudaError::UNKNOWN)?
    }
}
