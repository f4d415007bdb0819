//! Who answers for a process in a user namespace. A user may make one, and in it take numbers of other users
//! (`newuidmap`): each would have an account of its own. The kernel remembers who made the namespace; that user is meant.
#![allow(unsafe_code, reason = "two ioctls that no crate wraps")]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};

/// `NS_GET_PARENT` and `NS_GET_OWNER_UID` of ioctl_ns(2).
const PARENT: Opcode = 0xb702;
const OWNER: Opcode = 0xb704;
/// The kernel nests no deeper.
const DEEPEST: usize = 32;

/// The user, by the number it has here, who made the outermost user namespace that holds process `pid` and is below ours.
/// `None`: the process is in ours, or in one that is not below it.
pub fn owner(pid: u32) -> io::Result<Option<u32>> {
    let ours = identity(&File::open("/proc/self/ns/user")?)?;
    let mut space = OwnedFd::from(File::open(format!("/proc/{pid}/ns/user"))?);
    if identity(&space)? == ours {
        return Ok(None);
    }
    for _ in 0..DEEPEST {
        // SAFETY: the request takes nothing and returns a descriptor, as `Parent` says.
        let parent = match unsafe { ioctl(&space, Parent) } {
            Ok(parent) => parent,
            Err(Errno::PERM) => return Ok(None), // not below ours
            Err(error) => return Err(error.into()),
        };
        if identity(&parent)? == ours {
            // SAFETY: the request writes one number of 32 bits, for which `Owner` has room.
            return Ok(Some(unsafe { ioctl(&space, Owner(0)) }?));
        }
        space = parent;
    }
    Ok(None)
}

fn identity(space: &impl AsFd) -> io::Result<(u64, u64)> {
    let found = fstat(space)?;
    Ok((found.st_dev, found.st_ino))
}

struct Parent;

// SAFETY: NS_GET_PARENT reads and writes no memory and returns a new descriptor of the caller's.
unsafe impl Ioctl for Parent {
    type Output = OwnedFd;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        PARENT
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> rustix::io::Result<OwnedFd> {
        // SAFETY: the kernel just made this descriptor and nobody else knows it.
        Ok(unsafe { OwnedFd::from_raw_fd(out) })
    }
}

struct Owner(u32);

// SAFETY: NS_GET_OWNER_UID writes one `uid_t` to where `as_ptr` points, which is one.
unsafe impl Ioctl for Owner {
    type Output = u32;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        OWNER
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, number: *mut c_void) -> rustix::io::Result<u32> {
        // SAFETY: `number` is what `as_ptr` returned, and the kernel has written there.
        Ok(unsafe { number.cast::<u32>().read() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip::skip;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_in_our_namespace_answers_for_itself() {
        assert_eq!(owner(std::process::id()).unwrap(), None);
    }

    #[test]
    fn who_made_a_namespace_answers_for_those_in_it() {
        let mut command = Command::new("unshare");
        command.args([
            "--user",
            "--map-root-user",
            "unshare",
            "--user",
            "sh",
            "-c",
            "echo in; read x",
        ]);
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = match child.spawn() {
            Ok(child) => child,
            Err(error) => return skip("who made a user namespace", &format!("unshare: {error}")),
        };
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        if line == "in\n" {
            let me = rustix::process::geteuid().as_raw();
            assert_eq!(owner(child.id()).unwrap(), Some(me));
        } else {
            skip("who made a user namespace", "nobody may make one here");
        }
        let _ = child.stdin.take().unwrap().write_all(b"\n");
        child.wait().unwrap();
    }
}
