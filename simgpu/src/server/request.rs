//! The rare requests that go over the socket: memory, shared objects, the report, stopping.

use super::Server;
use super::capacity::Refused;
use super::conns::Part;
use crate::proto::socket::{receive, send};
use crate::proto::{Reply, Request, ask};
use crate::shm::map::memfd;
use driver::CudaError;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

/// Value and descriptor of an answer, or its error.
type Answer = Result<(u64, Option<OwnedFd>), CudaError>;

impl Server {
    /// Answers one request; an error ends the connection.
    pub(super) fn request(&mut self, i: usize) -> io::Result<()> {
        let Some(conn) = self.conns[i].as_ref() else {
            return Ok(());
        };
        let (request, fds): (Request, _) = receive(conn.socket.as_fd())?;
        let answer = match (&conn.part, request.kind) {
            (_, ask::REPORT) => self.report_object(),
            (_, ask::STOP) => self.stop(conn.uid),
            (Part::Client(_), _) => self.client_request(i, request, fds),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        let (reply, fd) = match answer {
            Ok((value, fd)) => (
                Reply {
                    status: 0,
                    zero: 0,
                    value,
                },
                fd,
            ),
            Err(error) => (
                Reply {
                    status: error.code(),
                    zero: 0,
                    value: 0,
                },
                None,
            ),
        };
        let Some(conn) = self.conns[i].as_ref() else {
            return Ok(());
        };
        // Who does not read its answers is cut off.
        match &fd {
            Some(fd) => send(conn.socket.as_fd(), &reply, &[fd.as_fd()]),
            None => send(conn.socket.as_fd(), &reply, &[]),
        }
    }

    fn client_request(&mut self, i: usize, request: Request, fds: Vec<OwnedFd>) -> Answer {
        let device = request.device as usize;
        match request.kind {
            ask::CHARGE | ask::DISCHARGE => {
                let result = match request.kind {
                    ask::CHARGE => self.capacity.charge(i, device, request.value),
                    _ => self.capacity.discharge(i, device, request.value),
                };
                result.map_err(|refused| match refused {
                    Refused::Full => CudaError::OUT_OF_MEMORY,
                    Refused::NoSuchDevice => CudaError::INVALID_DEVICE,
                    Refused::NotHeld => CudaError::INVALID_VALUE,
                })?;
                self.show_memory(device);
                Ok((self.capacity.client(i, device).used, None))
            }
            ask::SHARE => {
                let fd = fds.into_iter().next().ok_or(CudaError::INVALID_VALUE)?;
                let id = self.objects.add(i, fd).ok_or(CudaError::OUT_OF_MEMORY)?;
                Ok((id, None))
            }
            ask::UNSHARE if self.objects.remove(i, request.value) => Ok((0, None)),
            ask::FETCH => {
                let fd = self.objects.get(request.value).ok_or(CudaError::INVALID_HANDLE)?;
                let fd = fd.try_clone_to_owned().map_err(|_| CudaError::OUT_OF_MEMORY)?;
                Ok((0, Some(fd)))
            }
            ask::UNSHARE => Err(CudaError::INVALID_HANDLE),
            _ => Err(CudaError::INVALID_VALUE),
        }
    }

    /// Only the node's user and root may stop it.
    fn stop(&mut self, uid: u32) -> Answer {
        // SAFETY: geteuid cannot fail.
        if uid != 0 && uid != unsafe { libc::geteuid() } {
            return Err(CudaError::NOT_PERMITTED);
        }
        self.stopped = true;
        Ok((0, None))
    }

    fn report_object(&mut self) -> Answer {
        let bytes = self.report().encode();
        let write = || -> io::Result<OwnedFd> {
            let mut file = File::from(memfd(c"stint-sim-report", 0)?);
            file.write_all(&bytes)?;
            Ok(file.into())
        };
        let fd = write().map_err(|_| CudaError::OPERATING_SYSTEM)?;
        Ok((bytes.len() as u64, Some(fd)))
    }

    /// Puts the device's memory on the board.
    pub(super) fn show_memory(&self, device: usize) {
        let used = self.capacity.device(device).used;
        self.board.devices[device]
            .used_bytes
            .store(used, Ordering::Release);
    }
}
