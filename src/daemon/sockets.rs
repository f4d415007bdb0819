//! The node's two listening sockets.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};

/// Connections the kernel keeps before we take them.
const BACKLOG: i32 = 1024;

/// The attach socket: everybody may connect, the kernel says who they are.
pub fn attach(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    remove_stale(path)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o666))?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// The admin socket: everybody may connect as well; what each may ask goes by the kernel's word on the caller.
pub fn admin(path: &Path) -> io::Result<UnixListener> {
    remove_stale(path)?;
    // Bound in a directory only we can write; until the mode is set nobody listens.
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o666))?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// A connection to the attach socket; `None`: nobody is waiting.
pub fn accept_attach(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes the socket of a daemon that did not end cleanly. The caller holds the run directory's lock.
fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
