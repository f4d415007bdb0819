//! Starting a node's server from inside somebody else's program.
//!
//! The program must not notice: no child it could reap, no SIGCHLD, no descriptor or environment handed
//! on. A first child without an exit signal makes the second, which becomes the server and belongs to
//! nobody; between fork and exec only system calls are made, since the program may have threads.

use std::ffi::{CString, OsStr, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Starts `program` with `arguments`, on its own. `Ok` says nothing about how it fares.
pub fn start(program: &Path, arguments: &[&OsStr]) -> io::Result<()> {
    let text = |s: &OsStr| CString::new(s.as_bytes());
    let program = text(program.as_os_str())?;
    let arguments = arguments.iter().map(|a| text(a)).collect::<Result<Vec<_>, _>>()?;
    let mut argv: Vec<*const c_char> = vec![program.as_ptr()];
    argv.extend(arguments.iter().map(|a| a.as_ptr()));
    argv.push(std::ptr::null());
    let envp = [std::ptr::null::<c_char>()];
    // SAFETY: a C string; the call only looks.
    if unsafe { libc::access(program.as_ptr(), libc::X_OK) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as fork(2) but without an exit signal; the child runs on its copy of this stack, makes
    // system calls only and leaves by _exit or execve.
    let child = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) } as libc::pid_t;
    match child {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            detach();
            // SAFETY: as above.
            if unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } == 0 {
                // SAFETY: all pointers were made before the fork and end with null.
                unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
            }
            // SAFETY: no handler of the program may run here.
            unsafe { libc::_exit(0) }
        }
        child => {
            let mut status = 0;
            // SAFETY: our own child; __WALL since it has no exit signal, which also hides it from the
            // program's own waits.
            while unsafe { libc::waitpid(child, &mut status, libc::__WALL) } < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
            Ok(())
        }
    }
}

/// A session of its own, no descriptor, no blocked signal. System calls only.
fn detach() {
    // SAFETY: runs in a single-threaded child on its own descriptors; zeroed memory is an empty sigset.
    unsafe {
        libc::setsid();
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for fd in 0..3 {
            libc::dup2(null, fd);
        }
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
        let none: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}
