//! Unix sockets: bind, connect, who the peer is, messages with descriptors.

use super::Message;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

/// Most descriptors in one message.
pub(crate) const MAX_FDS: usize = 4;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn address(path: &Path) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: all-zero bytes are a valid sockaddr_un.
    let mut a: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    a.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= a.sun_path.len() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "socket path too long",
        ));
    }
    for (to, from) in a.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok((
        a,
        (size_of::<libc::sa_family_t>() + bytes.len() + 1) as libc::socklen_t,
    ))
}

fn new_socket(flags: libc::c_int) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | flags;
    // SAFETY: a plain system call; the descriptor is new and owned by nobody else.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::socket(libc::AF_UNIX, kind, 0))?)) }
}

/// A non-blocking listener at `path`, replacing what is there.
pub(crate) fn listen(path: &Path) -> io::Result<OwnedFd> {
    let _ = std::fs::remove_file(path);
    let socket = new_socket(libc::SOCK_NONBLOCK)?;
    let (a, length) = address(path)?;
    // SAFETY: `a` is a valid address of `length` bytes.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const a).cast(), length) })?;
    // SAFETY: a plain system call.
    check(unsafe { libc::listen(socket.as_raw_fd(), 256) })?;
    Ok(socket)
}

/// Connects, waiting at most `timeout` seconds for room and, from then on, for each message.
pub(crate) fn connect(path: &Path, timeout: i64) -> io::Result<OwnedFd> {
    let socket = new_socket(0)?;
    set_timeouts(socket.as_fd(), timeout)?;
    let (a, length) = address(path)?;
    // SAFETY: `a` is a valid address of `length` bytes.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const a).cast(), length) })?;
    Ok(socket)
}

/// Seconds to wait for each message from now on; 0: for ever.
pub(crate) fn set_timeouts(socket: BorrowedFd<'_>, seconds: i64) -> io::Result<()> {
    let time = libc::timeval {
        tv_sec: seconds,
        tv_usec: 0,
    };
    for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
        let length = size_of::<libc::timeval>() as libc::socklen_t;
        // SAFETY: `time` is a valid option value of `length` bytes.
        check(unsafe {
            let value = (&raw const time).cast();
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, length)
        })?;
    }
    Ok(())
}

pub(crate) fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no address asked for; the descriptor is new and owned by nobody else.
    unsafe {
        let none = std::ptr::null_mut();
        let fd = check(libc::accept4(
            listener.as_raw_fd(),
            none,
            std::ptr::null_mut(),
            flags,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn option<T: Copy>(socket: BorrowedFd<'_>, name: libc::c_int, start: T) -> io::Result<T> {
    let mut value = start;
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` has room for `length` bytes; only integers and ucred are asked for.
    check(unsafe {
        let to = (&raw mut value).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, to, &mut length)
    })?;
    Ok(value)
}

/// Pid and uid of the process that connected.
pub(crate) fn peer(socket: BorrowedFd<'_>) -> io::Result<libc::ucred> {
    option(
        socket,
        libc::SO_PEERCRED,
        libc::ucred {
            pid: 0,
            uid: 0,
            gid: 0,
        },
    )
}

/// A pidfd of the process that connected. `SO_PEERPIDFD` (Linux 6.5) cannot hit a recycled pid; the
/// fallback can, if the peer died between connect and here, and then the socket is already closed.
pub(crate) fn peer_pidfd(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    const SO_PEERPIDFD: libc::c_int = 77;
    let fd = match option(socket, SO_PEERPIDFD, -1 as libc::c_int) {
        Ok(fd) => fd,
        Err(e) if e.raw_os_error() == Some(libc::ENOPROTOOPT) => {
            let pid = peer(socket)?.pid;
            // SAFETY: a plain system call.
            check(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as libc::c_int)?
        }
        Err(e) => return Err(e),
    };
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Room for the control message of `MAX_FDS` descriptors, aligned as cmsghdr.
type Control = [u64; 8];
const _: () = assert!(size_of::<Control>() >= 16 + MAX_FDS * size_of::<RawFd>());

/// Sends one message; `WouldBlock` or a time-out if there is no room for it.
pub(crate) fn send<T: Message>(
    socket: BorrowedFd<'_>,
    message: &T,
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut iov = libc::iovec {
        iov_base: (message as *const T).cast_mut().cast(),
        iov_len: size_of::<T>(),
    };
    let mut control: Control = Default::default();
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &mut iov;
    header.msg_iovlen = 1;
    if !fds.is_empty() {
        let length = (fds.len().min(MAX_FDS) * size_of::<RawFd>()) as libc::c_uint;
        header.msg_control = control.as_mut_ptr().cast();
        // SAFETY: pure arithmetic; then writes inside `control`, which has room for MAX_FDS.
        unsafe {
            header.msg_controllen = libc::CMSG_SPACE(length) as usize;
            let c = libc::CMSG_FIRSTHDR(&header);
            (*c).cmsg_level = libc::SOL_SOCKET;
            (*c).cmsg_type = libc::SCM_RIGHTS;
            (*c).cmsg_len = libc::CMSG_LEN(length) as usize;
            for (i, fd) in fds.iter().take(MAX_FDS).enumerate() {
                libc::CMSG_DATA(c)
                    .cast::<RawFd>()
                    .add(i)
                    .write_unaligned(fd.as_raw_fd());
            }
        }
    }
    loop {
        // SAFETY: `header` points at live buffers for the whole call.
        let n = unsafe { libc::sendmsg(socket.as_raw_fd(), &header, libc::MSG_NOSIGNAL) };
        match check(n as libc::c_int) {
            Ok(_) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Receives one message of exactly this type; `UnexpectedEof` when the peer has closed.
pub(crate) fn receive<T: Message>(socket: BorrowedFd<'_>) -> io::Result<(T, Vec<OwnedFd>)> {
    let mut message = T::default();
    let mut iov = libc::iovec {
        iov_base: (&raw mut message).cast(),
        iov_len: size_of::<T>(),
    };
    let mut control: Control = Default::default();
    // SAFETY: all-zero bytes are a valid msghdr.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &mut iov;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of::<Control>();
    let n = loop {
        // SAFETY: `header` points at live buffers for the whole call; a Message takes any bytes.
        let n = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut header, libc::MSG_CMSG_CLOEXEC) };
        match check(n as libc::c_int) {
            Ok(n) => break n as usize,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    };
    let mut fds = Vec::new();
    // SAFETY: the kernel wrote the control messages inside `control`; the descriptors are new here.
    unsafe {
        let mut c = libc::CMSG_FIRSTHDR(&header);
        while !c.is_null() {
            if (*c).cmsg_level == libc::SOL_SOCKET && (*c).cmsg_type == libc::SCM_RIGHTS {
                let count = ((*c).cmsg_len - libc::CMSG_LEN(0) as usize) / size_of::<RawFd>();
                for i in 0..count {
                    let fd = libc::CMSG_DATA(c).cast::<RawFd>().add(i).read_unaligned();
                    fds.push(OwnedFd::from_raw_fd(fd));
                }
            }
            c = libc::CMSG_NXTHDR(&header, c);
        }
    }
    match n {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        n if n != size_of::<T>() || header.msg_flags & libc::MSG_TRUNC != 0 => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "message of another size",
        )),
        _ => Ok((message, fds)),
    }
}

/// True when the peer has closed its end. Does not block.
pub(crate) fn hung_up(socket: BorrowedFd<'_>) -> bool {
    let mut poll = libc::pollfd {
        fd: socket.as_raw_fd(),
        events: 0,
        revents: 0,
    };
    // SAFETY: one valid pollfd.
    unsafe { libc::poll(&mut poll, 1, 0) };
    poll.revents & (libc::POLLHUP | libc::POLLERR) != 0
}
