//! Memory and objects that belong to the whole node: charged, shared and fetched over the socket.
//!
//! Next file of the walk: `server/request.rs`.

use super::{Client, Shared};
use crate::proto::socket::{receive, send};
use crate::proto::{Reply, Request, ask};
use driver::{CuResult, CudaError};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Memory of one device, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memory {
    pub capacity: u64,
    /// Charged by all processes together.
    pub used: u64,
    /// Charged by this process.
    pub mine: u64,
}

impl Client {
    /// Charges `bytes` of the device's capacity to this process; `OUT_OF_MEMORY` when they do not fit,
    /// and then nothing is charged. Dies with the process. One round trip to the server (none in `null`
    /// timing, where capacity is checked for this process alone).
    pub fn charge(&self, device: usize, bytes: u64) -> CuResult {
        self.shared.usable(device)?;
        let capacity = self
            .devices()
            .get(device)
            .ok_or(CudaError::INVALID_DEVICE)?
            .memory_bytes;
        if self.shared.null {
            let own = &self.shared.segment.own[device];
            let grown = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= capacity);
            let before = own
                .used_bytes
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown);
            let before = before.map_err(|_| CudaError::OUT_OF_MEMORY)?;
            own.high_water_bytes.fetch_max(before + bytes, Ordering::Relaxed);
            return Ok(());
        }
        self.change(ask::CHARGE, device, bytes)
    }

    /// Gives back `bytes`; `INVALID_VALUE` for more than this process has charged.
    pub fn discharge(&self, device: usize, bytes: u64) -> CuResult {
        // A lost device's memory can still be given back.
        self.alive()?;
        if device >= self.devices().len() {
            return Err(CudaError::INVALID_DEVICE);
        }
        if self.shared.null {
            let own = &self.shared.segment.own[device];
            let shrunk = |used: u64| used.checked_sub(bytes);
            let result = own
                .used_bytes
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, shrunk);
            return result.map(drop).map_err(|_| CudaError::INVALID_VALUE);
        }
        self.change(ask::DISCHARGE, device, bytes)
    }

    fn change(&self, kind: u32, device: usize, value: u64) -> CuResult {
        let request = Request {
            kind,
            device: device as u32,
            value,
        };
        self.shared.ask(request, None, |mine, _| {
            self.shared.mine[device].store(mine, Ordering::Relaxed)
        })
    }

    /// Capacity and use of the device; zeros for one that does not exist. No system call.
    pub fn memory(&self, device: usize) -> Memory {
        let Some(facts) = self.devices().get(device) else {
            return Memory::default();
        };
        let board = self.shared.board.devices[device]
            .used_bytes
            .load(Ordering::Acquire);
        let mine = match self.shared.null && !self.forked() {
            true => self.shared.segment.own[device].used_bytes.load(Ordering::Relaxed),
            false => self.shared.mine[device].load(Ordering::Relaxed),
        };
        Memory {
            capacity: facts.memory_bytes,
            used: board.max(mine),
            mine,
        }
    }

    /// Puts a descriptor where every process of the node can fetch it, under an id nobody can guess. It
    /// is gone when this process dies or [`Client::unshare`]s it. `OUT_OF_MEMORY` beyond 1,024 objects.
    pub fn share(&self, object: BorrowedFd<'_>) -> Result<u64, CudaError> {
        self.alive()?;
        let request = Request {
            kind: ask::SHARE,
            device: 0,
            value: 0,
        };
        self.shared.ask(request, Some(object), |id, _| id)
    }

    /// Takes back what [`Client::share`] gave out; `INVALID_HANDLE` if it is not ours.
    pub fn unshare(&self, id: u64) -> CuResult {
        self.alive()?;
        self.shared.ask(
            Request {
                kind: ask::UNSHARE,
                device: 0,
                value: id,
            },
            None,
            |_, _| (),
        )
    }

    /// A descriptor shared by some process; `INVALID_HANDLE` if there is none of this id.
    pub fn fetch(&self, id: u64) -> Result<OwnedFd, CudaError> {
        self.alive()?;
        let request = Request {
            kind: ask::FETCH,
            device: 0,
            value: id,
        };
        self.shared
            .ask(request, None, |_, fd| fd)?
            .ok_or(CudaError::INVALID_HANDLE)
    }
}

impl Shared {
    /// One round trip; `then` takes the answer before another request can be made.
    fn ask<R>(
        &self,
        request: Request,
        object: Option<BorrowedFd<'_>>,
        then: impl FnOnce(u64, Option<OwnedFd>) -> R,
    ) -> Result<R, CudaError> {
        let _turn = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let (value, fd) =
            ask_server(self.socket.as_fd(), request, object).map_err(|_| self.state.lose())??;
        Ok(then(value, fd))
    }
}

/// One round trip over a socket. The outer error: the server is gone or speaks nonsense.
pub(super) fn ask_server(
    socket: BorrowedFd<'_>,
    request: Request,
    object: Option<BorrowedFd<'_>>,
) -> std::io::Result<Result<(u64, Option<OwnedFd>), CudaError>> {
    send(socket, &request, object.as_slice())?;
    let (reply, fds): (Reply, _) = receive(socket)?;
    Ok(CudaError::check(reply.status).map(|()| (reply.value, fds.into_iter().next())))
}
